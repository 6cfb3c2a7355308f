"""Which addresses a pool of floating addresses hands out, said anew."""

from collections.abc import Collection, Iterator, Sequence
from ipaddress import IPv4Address

from sqlalchemy import Connection

from climate.compute.network import floating_ips
from climate.compute.store.networks import floating_pools as rows

Stretch = tuple[IPv4Address, IPv4Address]
"""First and last of addresses that stand in a row."""


def reshape(conn: Connection, pool_id: str, stretches: Sequence[Stretch], own: Collection[IPv4Address] = ()) -> None:
    """Let a pool hand out these addresses, but for hosts' `own`, and no others.

    Raises BadRequest for addresses that are not of its network, Conflict when a
    project has one that it would lose.
    """
    for first, last in stretches:
        floating_ips.add(conn, pool_id, first, last, own)
    for start, end in rows.ranges(conn).get(pool_id, ()):
        for stray in without((IPv4Address(start), IPv4Address(end)), stretches):
            floating_ips.remove(conn, pool_id, *stray)


def without(whole: Stretch, kept: Sequence[Stretch]) -> Iterator[Stretch]:
    """The parts of a stretch that are in none of the others."""
    at, end = whole
    for first, last in sorted(kept):
        if first > end:
            break
        if at < first:
            yield at, first - 1
        if last >= end:
            return
        at = max(at, last + 1)
    if at <= end:
        yield at, end
