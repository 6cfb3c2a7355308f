"""Hosts that are unwell, and the leases that suffer or would suffer from them."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Boolean, ColumnElement, Connection, Select, and_, case, exists, func, null, or_, select, text
from sqlalchemy.dialects.postgresql import Range

from climate.domain.hosts.pools import Pool
from climate.domain.period import Period
from climate.domain.status import EventKind
from climate.store.leases import healing_waits
from climate.store.tables.hosts import host_power
from climate.store.tables.leases import LACKING, allocations, events, has, hosts, in_force, leases, reservations

UNFIT = (Pool.FAILED, Pool.MULTI_TENANT, Pool.MAINTENANCE)
"""Pools whose hosts are no use to a lease; those that are worked on may be back in time."""


def suffering(conn: Connection, now: datetime, start_by: datetime | None) -> list[UUID]:
    """Leases that run, or are to start by then, and lack something: the earliest first.

    They hold a host that has failed, was taken out or away, or is worked on
    when they need it, or were told that something is missing.  Leases with an event in progress are left out:
    nothing can be done for them until it has ended.
    """
    start, end = events.alias("s"), events.alias("e")
    concerned = _lacking().union(_held_badly(now)).subquery("concerned")
    soon = leases.c.start_date <= start_by if start_by is not None else leases.c.start_date.is_not(None)
    query = (
        select(leases.c.id)
        .select_from(concerned)
        .join(leases, leases.c.id == concerned.c.lease_id)
        .join(start, and_(start.c.lease_id == leases.c.id, start.c.kind == EventKind.START))
        .join(end, and_(end.c.lease_id == leases.c.id, end.c.kind == EventKind.END))
        .where(~leases.c.gone, ~leases.c.deleting, leases.c.end_date > now)
        .where(has(end.c.status, "UNDONE"), end.c.token == 0, ~in_progress())
        .where(or_(has(start.c.status, "DONE"), and_(has(start.c.status, "UNDONE"), soon)))
        .where(or_(concerned.c.later.is_(None), has(start.c.status, "DONE"), ~concerned.c.later))
        .order_by(leases.c.start_date, leases.c.id)
    )
    return list(dict.fromkeys(conn.scalars(query)))


def in_progress() -> ColumnElement[bool]:
    """The lease of the outer query has an event in progress."""
    running = events.alias("running")
    return exists().where(running.c.lease_id == leases.c.id, has(running.c.status, "IN_PROGRESS")).correlate(leases)


def _lacking() -> Select[Any]:
    """Leases in force that were told that something is missing."""
    return select(reservations.c.lease_id, null().cast(Boolean).label("later")).where(text(LACKING))


def _held_badly(now: datetime) -> Select[Any]:
    """Leases that hold an unfit host; `later`: it is worked on, and may be back before a lease to come needs it.

    Read from the hosts that are unfit, and only what is in force of each: not from the leases, most of which are over.
    """
    begins = func.lower(allocations.c.during)
    worked_on = and_(hosts.c.removed_at.is_(None), has(hosts.c.pool, Pool.MAINTENANCE))
    later = case((worked_on, func.coalesce(and_(begins > now, hosts.c.pool_until <= begins), False)))
    return (
        select(reservations.c.lease_id, later.label("later"))
        .select_from(hosts)
        .join(allocations, and_(allocations.c.host == hosts.c.id, in_force(allocations)))
        .join(reservations, reservations.c.id == allocations.c.reservation_id)
        .where(or_(hosts.c.removed_at.is_not(None), has(hosts.c.pool, *UNFIT)))
    )


def holding(conn: Connection, host: int, during: Period) -> list[UUID]:
    """Leases that hold the host at some time within the period, the earliest first."""
    a = allocations
    query = (
        select(reservations.c.lease_id)
        .join(a, a.c.reservation_id == reservations.c.id)
        .where(a.c.host == host, in_force(a), a.c.during.overlaps(Range(during.start, during.end)))
        .order_by(func.lower(a.c.during), reservations.c.lease_id)
    )
    return list(dict.fromkeys(conn.scalars(query)))


@dataclass(frozen=True, slots=True)
class Running:
    """A lease that has started, and a reservation of it that holds a host."""

    lease_id: UUID
    reservation_id: UUID
    shared: bool


def running_on(conn: Connection, numbers: Collection[int]) -> dict[int, Running]:
    """Who counts on these hosts now; of several that share one any."""
    a = allocations
    query = (
        select(a.c.host, reservations.c.lease_id, reservations.c.id, a.c.slots)
        .join(reservations, reservations.c.id == a.c.reservation_id)
        .where(a.c.host.in_(sorted(numbers)), in_force(a), has(reservations.c.status, "active"))
    )
    return {row.host: Running(row.lease_id, row.id, row.slots > 0) for row in conn.execute(query)}


def being_ended(conn: Connection, numbers: Collection[int], now: datetime) -> frozenset[int]:
    """Those of the hosts that a lease has begun to hold and will give back yet: its end was not given up."""
    a = allocations
    query = (
        select(a.c.host)
        .join(reservations, reservations.c.id == a.c.reservation_id)
        .join(events, and_(events.c.lease_id == reservations.c.lease_id, events.c.kind == EventKind.END))
        .where(a.c.host.in_(sorted(numbers)), in_force(a), func.lower(a.c.during) <= now)
        .where(has(events.c.status, "UNDONE", "IN_PROGRESS"))
    )
    return frozenset(conn.scalars(query))


def owners(conn: Connection, reservation_ids: Collection[UUID]) -> dict[UUID, UUID]:
    """Reservation -> its lease, gone or not."""
    found = select(reservations.c.id, reservations.c.lease_id).where(reservations.c.id.in_(list(reservation_ids)))
    return {row.id: row.lease_id for row in conn.execute(found)}


@dataclass(frozen=True, slots=True)
class Unfit:
    """Hosts that had better not be chosen as replacements."""

    unwell: frozenset[int]
    busy: frozenset[int]
    """In no state to be handed over now."""
    off: frozenset[int]
    """Or on their way off."""


def unfit(conn: Connection) -> Unfit:
    going = hosts.c.id.in_(select(host_power.c.host).where(has(host_power.c.wanted, "off")))
    off = or_(~hosts.c.switched_on, going)
    rows = conn.execute(
        select(hosts.c.id, hosts.c.pool, off.label("off"), hosts.c.doubted_since)
        .where(hosts.c.removed_at.is_(None))
        .where(or_(hosts.c.pool != Pool.RESERVATION, hosts.c.doubted_since.is_not(None), off))
    ).all()
    return Unfit(
        unwell=frozenset(row.id for row in rows if row.pool == Pool.FAILED or row.doubted_since is not None),
        busy=frozenset(row.id for row in rows if row.pool != Pool.RESERVATION),
        off=frozenset(row.id for row in rows if row.off),
    )


@dataclass(frozen=True, slots=True)
class Health:
    """What is known of a host beyond where it is."""

    doubted_since: datetime | None
    """Since when it has seemed unwell, or well again where it has failed."""
    wanted: str | None
    """`on` or `off`, of a host that can be switched."""
    wanted_at: datetime | None
    changed_at: datetime | None
    """When it last came up or went off."""
    state: str
    error: str

    @property
    def is_to_come_up(self) -> bool:
        """Whether it was asked to come up, and has not since."""
        if self.wanted != "on" or self.wanted_at is None:
            return False
        return self.changed_at is None or self.changed_at < self.wanted_at


def health(conn: Connection, numbers: Collection[int] | None = None) -> dict[int, Health]:
    """Of hosts by number, of all that are registered with None."""
    p = host_power
    query = (
        select(hosts.c.id, hosts.c.doubted_since, p.c.wanted, p.c.wanted_at, p.c.changed_at, p.c.state, p.c.error)
        .outerjoin(p, p.c.host == hosts.c.id)
        .where(hosts.c.removed_at.is_(None))
    )
    query = query if numbers is None else query.where(hosts.c.id.in_(sorted(numbers)))
    return {
        row.id: Health(
            row.doubted_since, row.wanted, row.wanted_at, row.changed_at, row.state or "unknown", row.error or ""
        )
        for row in conn.execute(query)
    }


def taken_out(conn: Connection) -> frozenset[int]:
    """Failed hosts that somebody, and not the engine itself, has declared failed."""
    return frozenset(conn.scalars(_TAKEN_OUT))


def doubt(conn: Connection, since: Mapping[int, datetime | None]) -> None:
    """Note since when hosts have seemed to be otherwise than their pool says; None: they do not."""
    if since:
        conn.execute(_DOUBT, {"rows": json.dumps(_doubts(since), default=str)})
    if None in since.values():
        healing_waits.wake(conn)


def _doubts(since: Mapping[int, datetime | None]) -> Sequence[dict[str, Any]]:
    return [{"id": number, "at": at} for number, at in since.items()]


_DOUBT = text("""
    UPDATE hosts h SET doubted_since = n.at
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (id bigint, at timestamptz) WHERE h.id = n.id
""")

# What the engine does it does as `climate:…`; a move within the pool is not the one that brought the host there.
_TAKEN_OUT = text("""
    SELECT h.id FROM hosts h
    CROSS JOIN LATERAL (
        SELECT j.actor ->> 'user_id' AS author FROM journal j
        WHERE j.stream = h.stream AND j.kind = 'HostMoved' AND j.version > (
            SELECT coalesce(max(k.version), 0) FROM journal k
            WHERE k.stream = h.stream AND k.kind = 'HostMoved' AND k.body ->> 'pool' <> 'failed')
        ORDER BY j.version LIMIT 1) moved
    WHERE h.removed_at IS NULL AND h.pool = 'failed' AND moved.author NOT LIKE 'climate:%'
""")
