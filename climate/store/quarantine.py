"""Hosts that an ended lease could not give back, and the leases that wait for them."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, select

from climate.domain.status import EventKind
from climate.store.tables import allocations, events, has, in_force, leases, reservations


def hosts(conn: Connection) -> tuple[int, ...]:
    """Hosts still held by leases whose end was given up."""
    a, e = allocations, events
    query = (
        select(a.c.host)
        .join(reservations, reservations.c.id == a.c.reservation_id)
        .join(e, e.c.lease_id == reservations.c.lease_id)
        .where(in_force(a), e.c.kind == EventKind.END, has(e.c.status, "ERROR"))
        .distinct()
        .order_by(a.c.host)
    )
    return tuple(conn.scalars(query))


def waiting(conn: Connection, numbers: Collection[int], start_by: datetime, now: datetime) -> list[UUID]:
    """Leases that hold one of these hosts, are to start by then, and were never begun; the earliest first."""
    a, e = allocations, events
    query = (
        select(leases.c.id, leases.c.start_date)
        .join(reservations, reservations.c.lease_id == leases.c.id)
        .join(a, a.c.reservation_id == reservations.c.id)
        .join(e, e.c.lease_id == leases.c.id)
        .where(in_force(a), a.c.host.in_(numbers), ~leases.c.gone)
        .where(e.c.kind == EventKind.START, has(e.c.status, "UNDONE"), e.c.token == 0)
        .where(leases.c.start_date <= start_by, leases.c.end_date > now)
        .distinct()
        .order_by(leases.c.start_date, leases.c.id)
    )
    return [row.id for row in conn.execute(query)]
