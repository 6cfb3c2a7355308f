"""Allocations of preemptible leases, which give way to ordinary ones."""

from collections.abc import Collection
from uuid import UUID

from sqlalchemy import Connection, bindparam, select, text
from sqlalchemy.dialects.postgresql import TSTZRANGE, Range

from climate.domain.lease import Lease
from climate.domain.period import Period
from climate.store import locks
from climate.store.leases import leases as stored
from climate.store.tables.leases import GIVES_WAY, allocations, reservations

_DURING = bindparam("during", type_=TSTZRANGE)
_OVERLAPS = (text(GIVES_WAY), allocations.c.during.overlaps(_DURING))
_THERE_ARE = select(select(allocations.c.id).where(*_OVERLAPS).exists())
_LEASES = (
    select(reservations.c.lease_id)
    .join(allocations, allocations.c.reservation_id == reservations.c.id)
    .where(*_OVERLAPS)
    .distinct()
)


def are_there(conn: Connection, during: Period) -> bool:
    """Return whether a preemptible lease holds a host at some time of the period."""
    return bool(conn.scalar(_THERE_ARE, {"during": Range(during.start, during.end)}))


def lease_ids(conn: Connection, during: Period) -> list[UUID]:
    """Return the preemptible leases that hold a host at some time of the period."""
    return list(conn.scalars(_LEASES, {"during": Range(during.start, during.end)}))


def read(conn: Connection, locked: Collection[UUID]) -> tuple[Lease, ...]:
    """Return leases that this transaction has locked, as they are now, without those that are gone or unreadable."""
    return tuple(lease for lease in stored.get_readable(conn, sorted(locked)).values() if not lease.gone)


def lock(conn: Connection, during: Period, others: Collection[UUID] = ()) -> tuple[Lease, ...]:
    """Lock the preemptible leases that hold a host at some time of the period, and `others` in the same order.

    Return the preemptible ones. One that this release cannot read is not among them, so it keeps its hosts. Call it
    before any host is locked.
    """
    wanted = frozenset(lease_ids(conn, during))
    locked = locks.lock_leases(conn, wanted.union(others))
    by_id = stored.get_readable(conn, wanted.intersection(locked))
    return tuple(by_id[lease_id] for lease_id in sorted(by_id))
