"""Socket of the metadata service, in the network namespace of the network host."""

import socket

from climate.compute.linux import netns
from climate.compute.network.render.nat_common import METADATA

BACKLOG = 128
_IP_FREEBIND = 15
"""Option of Linux, which Python 3.11 does not name."""


def opened(address: tuple[str, int], namespace: str | None) -> socket.socket:
    """Return a listening socket that child processes inherit. Raise OSError.

    The network service adds 169.254.169.254 to its host, perhaps later, so the socket need not find that address.
    """
    return netns.inside(namespace, lambda: _listening(address))


def _listening(address: tuple[str, int]) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if address[0] == str(METADATA):
            listener.setsockopt(socket.IPPROTO_IP, _IP_FREEBIND, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    listener.set_inheritable(True)
    return listener
