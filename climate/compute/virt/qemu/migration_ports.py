"""Address and ports on which a compute service receives live migrations."""

import errno
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Self

from climate.compute.errors import VirtError

PORTS = "49152-49215"
"""Default range, as in libvirt, from IANA's dynamic ports."""

SETTING = "CLIMATE_MIGRATION_ADDRESS"

_RANGE = re.compile(r"(\d{1,5})-(\d{1,5})")
_LAST_PORT = 65535
_WAITING = 4

CONNECT_SECONDS = 10.0
DEAD_SECONDS = 30
"""Seconds without acknowledgement after which the other end counts as dead."""

_IDLE_SECONDS, _PROBES = 10, 2


@dataclass(frozen=True, slots=True)
class PortRange:
    """IP address of this machine, and a range of TCP ports; each arriving guest uses two."""

    address: str
    first: int
    last: int

    @classmethod
    def of(cls, address: str, ports: str = PORTS) -> Self:
        """Parse an address and a range such as `49152-49215`. Raise ValueError with the invalid value."""
        try:
            unusable = ip_address(address).is_unspecified  # the source connects to this address
        except ValueError:
            unusable = True
        if unusable:
            raise ValueError(f"{address!r} is not an IP address of this machine; give one as 192.0.2.7")
        match = _RANGE.fullmatch(ports.replace(" ", ""))
        first, last = (int(match[1]), int(match[2])) if match else (0, 0)
        if not 0 < first < last <= _LAST_PORT:
            raise ValueError(f"{ports!r} is not a range of at least two ports from 1 to {_LAST_PORT}; try {PORTS}")
        return cls(address, first, last)

    @property
    def uri(self) -> str:
        """Return the address in QEMU's syntax; QEMU takes the first free port of the range."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"tcp:{host}:{self.first},to={self.last}"

    def bound(self) -> socket.socket:
        """Return a socket that listens on a free port of the range. Raise VirtError if there is none."""
        for port in range(self.last, self.first - 1, -1):
            try:
                return _bound(self.address, port)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    reason = error.strerror or error
                    raise VirtError(f"{SETTING} {self.address} cannot be bound: {reason}") from error
        raise VirtError(f"no port from {self.first} to {self.last} of {self.address} is free; widen the range")


def connected(address: str, port: int) -> socket.socket:
    """Return a connection with keepalive. Raise VirtError if the destination does not answer."""
    try:
        stream = socket.create_connection((address, port), CONNECT_SECONDS)
    except OSError as error:
        raise VirtError(
            f"the destination does not answer at {address} port {port}: {error.strerror or error}"
        ) from error
    stream.settimeout(None)
    for level, option, value in _options():
        stream.setsockopt(level, option, value)
    return stream


def _options() -> Iterable[tuple[int, int, int]]:
    yield socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1
    yield socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _IDLE_SECONDS
    yield socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _IDLE_SECONDS
    yield socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES
    yield socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DEAD_SECONDS * 1000


def _bound(address: str, port: int) -> socket.socket:
    stream = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    try:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stream.bind((address, port))
        stream.listen(_WAITING)
    except OSError:
        stream.close()
        raise
    return stream
