"""Subnets cut out of a range, around those in use."""

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Network

from climate.compute.errors import BadRequest, Conflict

LEAST, LARGEST = 8, 1 << 16
"""Minimum and maximum number of addresses of a network; each is a row."""

NOBODYS = {
    IPv4Network("0.0.0.0/8"): "this network",
    IPv4Network("127.0.0.0/8"): "loopback",
    IPv4Network("169.254.0.0/16"): "link-local, where servers reach their metadata",
    IPv4Network("224.0.0.0/4"): "multicast",
    IPv4Network("240.0.0.0/4"): "reserved",
}
"""Ranges unusable for interfaces, and their special purpose (RFC 6890)."""


def check_usable(cidr: IPv4Network) -> None:
    """Raise BadRequest for a range with addresses that no interface can have."""
    result = next(((one, purpose) for one, purpose in NOBODYS.items() if one.overlaps(cidr)), None)
    if result is not None:
        raise BadRequest(f"{cidr} cannot be the range of a network: {result[0]} is reserved ({result[1]})")


def prefix_length(size: int) -> int:
    """Return the prefix length of the smallest network with so many addresses."""
    if not LEAST <= size <= LARGEST:
        raise BadRequest(f"network_size must be between {LEAST} and {LARGEST} addresses, not {size}")
    return 32 - (size - 1).bit_length()


def cut(cidr: IPv4Network, count: int, size: int, taken: Sequence[IPv4Network]) -> list[IPv4Network]:
    """Return the first `count` subnets of `size` addresses in the range that overlap nothing in use.

    Raise BadRequest if the range is too small, Conflict if subnets in use leave no room.
    """
    length = prefix_length(size)
    if length < cidr.prefixlen or count > 1 << (length - cidr.prefixlen):
        raise BadRequest(f"{count} networks of {1 << (32 - length)} addresses do not fit into {cidr}")
    above = next((other for other in taken if other.prefixlen < cidr.prefixlen and cidr.subnet_of(other)), None)
    if above is not None:
        raise Conflict(f"requested cidr ({cidr}) conflicts with existing supernet ({above})")
    near = [other for other in taken if other.overlaps(cidr)]
    subnets = [subnet for _, subnet in zip(range(count), _free(cidr, length, near), strict=False)]
    if len(subnets) < count:
        raise Conflict(_why(cidr, count, near))
    return subnets


def _free(cidr: IPv4Network, length: int, near: Sequence[IPv4Network]) -> Iterator[IPv4Network]:
    size, at, end = 1 << (32 - length), int(cidr.network_address), int(cidr.broadcast_address) + 1
    used = sorted((int(other.network_address), int(other.broadcast_address) + 1) for other in near)
    for first, after in (*used, (end, end)):
        while at + size <= first:
            yield IPv4Network((at, length))
            at += size
        at = max(at, -(-after // size) * size)


def _why(cidr: IPv4Network, count: int, near: Sequence[IPv4Network]) -> str:
    if cidr in near:
        return f"cidr already in use: Network with cidr {cidr} already exists"
    first = near[0]
    if count == 1 and first.subnet_of(cidr):
        return f"requested cidr ({cidr}) conflicts with existing smaller cidr ({first})"
    return f"{cidr} has no room for {count} more networks: {', '.join(str(one) for one in near[:5])} are in use"


def prefix_v6(cidr: IPv6Network, index: int) -> IPv6Network:
    """Return the /64 with that index in a range. Raise BadRequest beyond its end."""
    if cidr.prefixlen > 64 or index >= 1 << (64 - cidr.prefixlen):
        raise BadRequest(f"{cidr} has fewer than {index + 1} prefixes of 64 bits")
    return IPv6Network((int(cidr.network_address) + (index << 64), 64))


def reserved(cidr: IPv4Network, bottom: int, top: int) -> tuple[IPv4Address, ...]:
    """Return the first `bottom` and the last `top` addresses, which no pool assigns."""
    size = cidr.num_addresses
    return tuple(cidr[index] for index in (*range(bottom), *range(size - top, size)))
