"""What both ways of address translation say in the same manner."""

from ipaddress import AddressValueError, IPv4Address
from itertools import permutations

from climate.compute.errors import NetworkError
from climate.compute.network.driver import Nat
from climate.compute.network.render.validation import interface

METADATA = IPv4Address("169.254.169.254")
"""Where a server asks about itself."""

METADATA_PORT = 80
VPN_PORT = 1194
"""Where a cloudpipe server listens (UDP)."""


def metadata_target(nat: Nat) -> str | None:
    """Where METADATA leads, as `address:port`; None: nowhere.  NetworkError when it has a name and no address."""
    if nat.metadata is None:
        return None
    host, port = nat.metadata
    try:
        return f"{IPv4Address(host)}:{port}"
    except AddressValueError:
        raise NetworkError(f"the metadata service is at {host!r}, which is not an IPv4 address") from None


def routed(nat: Nat) -> list[tuple[str, str]]:
    """Bridges between which this host routes, from one to the other; each to itself too."""
    both_ways = {pair for group in nat.between for pair in permutations(group, 2)}
    alone = {(bridge, bridge) for bridge in nat.bridges}
    return sorted((interface(one), interface(other)) for one, other in both_ways | alone)
