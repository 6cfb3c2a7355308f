"""Change of the address ranges of a floating pool."""

from collections.abc import Collection, Iterator, Sequence
from ipaddress import IPv4Address

from sqlalchemy import Connection

from climate.compute.network import floating_ips
from climate.compute.store.networks import floating_pools as rows

Stretch = tuple[IPv4Address, IPv4Address]
"""First and last address of a contiguous range."""


def reshape(conn: Connection, pool_id: str, stretches: Sequence[Stretch], own: Collection[IPv4Address] = ()) -> None:
    """Replace the ranges of a pool, except hosts' `own`.

    Raise BadRequest for addresses outside its network, Conflict if a project has a removed one.
    """
    for first, last in stretches:
        floating_ips.add(conn, pool_id, first, last, own)
    for start, end in rows.ranges(conn).get(pool_id, ()):
        for stray in without((IPv4Address(start), IPv4Address(end)), stretches):
            floating_ips.remove(conn, pool_id, *stray)


def without(whole: Stretch, kept: Sequence[Stretch]) -> Iterator[Stretch]:
    """Return the parts of a range that are in none of the others."""
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
