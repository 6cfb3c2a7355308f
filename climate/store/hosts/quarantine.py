"""Hosts that an ended lease could not give back, and the leases that wait for them."""

from collections.abc import Collection
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Select, and_, or_, select

from climate.domain.events.event_transitions import LONGEST_DELAY
from climate.domain.status import EventKind
from climate.store.hosts import health
from climate.store.tables.leases import allocations, events, has, in_force, leases, reservations

PATIENCE = timedelta(minutes=10)
"""Time for which an end may be retried, after its servers should be gone, before its hosts count as unavailable."""


def hosts(conn: Connection, now: datetime) -> tuple[int, ...]:
    """Return hosts still held by leases whose end was given up, or has been retried for a long time."""
    return tuple(conn.scalars(still_held(now).order_by(allocations.c.host)))


def still_held(now: datetime | ColumnElement[datetime]) -> Select[tuple[int]]:
    """Return the query of `hosts`."""
    a, e = allocations, events
    # Its next try is soon, so it is found among the open events.
    tried_for_long = and_(
        has(e.c.status, "UNDONE"), e.c.run_at <= now + LONGEST_DELAY, e.c.first_claimed_at <= now - PATIENCE
    )
    return (
        select(a.c.host)
        .join(reservations, reservations.c.id == a.c.reservation_id)
        .join(e, e.c.lease_id == reservations.c.lease_id)
        .where(in_force(a), e.c.kind == EventKind.END, or_(has(e.c.status, "ERROR"), tried_for_long))
        .distinct()
    )


def waiting(conn: Connection, numbers: Collection[int], start_by: datetime, now: datetime) -> list[UUID]:
    """Return unstarted leases that hold one of these hosts and start by then, earliest first.

    Leases with an event in progress are left out: they can only be healed after it has ended.
    """
    a, e = allocations, events
    query = (
        select(leases.c.id, leases.c.start_date)
        .join(reservations, reservations.c.lease_id == leases.c.id)
        .join(a, a.c.reservation_id == reservations.c.id)
        .join(e, e.c.lease_id == leases.c.id)
        .where(in_force(a), a.c.host.in_(numbers), ~leases.c.gone)
        .where(e.c.kind == EventKind.START, has(e.c.status, "UNDONE"), e.c.token == 0, ~health.in_progress())
        .where(leases.c.start_date <= start_by, leases.c.end_date > now)
        .distinct()
        .order_by(leases.c.start_date, leases.c.id)
    )
    return [row.id for row in conn.execute(query)]
