"""Values common to both implementations of address translation."""

from ipaddress import AddressValueError, IPv4Address
from itertools import permutations

from climate.compute.errors import NetworkError
from climate.compute.network.driver import Nat
from climate.compute.network.render.interface_names import interface

METADATA = IPv4Address("169.254.169.254")
"""Address of the metadata service."""

METADATA_PORT = 80
VPN_PORT = 1194
"""UDP port of a cloudpipe server."""


def metadata_target(nat: Nat) -> str | None:
    """Return the target of METADATA as `address:port`, or None. Raise NetworkError if it is a name, not an address."""
    if nat.metadata is None:
        return None
    host, port = nat.metadata
    try:
        return f"{IPv4Address(host)}:{port}"
    except AddressValueError:
        raise NetworkError(f"the metadata service is at {host!r}, which is not an IPv4 address") from None


def routed(nat: Nat) -> list[tuple[str, str]]:
    """Return the ordered pairs of bridges between which this host routes, including each bridge with itself."""
    both_ways = {pair for group in nat.between for pair in permutations(group, 2)}
    alone = {(bridge, bridge) for bridge in nat.bridges}
    return sorted((interface(one), interface(other)) for one, other in both_ways | alone)
