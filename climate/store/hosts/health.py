"""Unhealthy hosts, and the leases that they affect."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import (
    Boolean,
    ColumnElement,
    CompoundSelect,
    Connection,
    Select,
    and_,
    case,
    exists,
    func,
    null,
    or_,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import Range

from climate.domain.hosts.pools import Pool
from climate.domain.period import Period
from climate.domain.status import EventKind
from climate.store.leases import healing_waits
from climate.store.tables.hosts import host_power, hosts
from climate.store.tables.leases import LACKING, allocations, events, has, in_force, leases, reservations

UNFIT = (Pool.FAILED, Pool.MULTI_TENANT, Pool.MAINTENANCE)
"""Pools whose hosts a lease cannot use; those in maintenance may be back in time."""


def suffering(conn: Connection, now: datetime, start_by: datetime | None) -> list[UUID]:
    """Return leases that run, or start by then, and lack resources, earliest first.

    They hold a host that has failed, was removed, or is in maintenance when they need it, or they are recorded as
    degraded. Leases with an event in progress are left out: they can only be healed after it has ended.
    """
    start, end = events.alias("s"), events.alias("e")
    concerned = concerned_leases(now).subquery("concerned")
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


def concerned_leases(now: datetime | ColumnElement[datetime]) -> CompoundSelect[object]:
    """Return the leases that are recorded as degraded or hold an unfit host, whether or not they can be healed."""
    return _degraded().union(_with_unfit_hosts(now))


def in_progress() -> ColumnElement[bool]:
    """Return the condition that the lease of the outer query has an event in progress."""
    running = events.alias("running")
    return exists().where(running.c.lease_id == leases.c.id, has(running.c.status, "IN_PROGRESS")).correlate(leases)


def _degraded() -> Select[object]:
    """Return the leases in force that are recorded as degraded."""
    return select(reservations.c.lease_id, null().cast(Boolean).label("later")).where(text(LACKING))


def _with_unfit_hosts(now: datetime | ColumnElement[datetime]) -> Select[object]:
    """Return leases with an unfit host; `later` means that maintenance may end before a future lease needs it.

    The query starts from unfit hosts and reads only their allocations in force, because most leases have ended.
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
    """Return leases that hold the host at some time within the period, the earliest first."""
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
    """Return the running lease of each of these hosts; any one of several that share a host."""
    a = allocations
    query = (
        select(a.c.host, reservations.c.lease_id, reservations.c.id, a.c.slots)
        .join(reservations, reservations.c.id == a.c.reservation_id)
        .where(a.c.host.in_(sorted(numbers)), in_force(a), has(reservations.c.status, "active"))
    )
    return {row.host: Running(row.lease_id, row.id, row.slots > 0) for row in conn.execute(query)}


def is_held(conn: Connection, running: Running, host: int) -> bool:
    """Return whether a running lease still holds a host, and no event of the lease is in progress."""
    a = allocations
    holds = exists().where(
        reservations.c.id == running.reservation_id,
        has(reservations.c.status, "active"),
        a.c.reservation_id == reservations.c.id,
        a.c.host == host,
        in_force(a),
    )
    is_busy = exists().where(events.c.lease_id == running.lease_id, has(events.c.status, "IN_PROGRESS"))
    return bool(conn.scalar(select(and_(holds, ~is_busy))))


def being_ended(conn: Connection, numbers: Collection[int], now: datetime) -> frozenset[int]:
    """Return the hosts that a started lease holds and will still give back, because its end was not given up."""
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
    """Return the lease of each reservation, deleted or not."""
    query = select(reservations.c.id, reservations.c.lease_id).where(reservations.c.id.in_(list(reservation_ids)))
    return {row.id: row.lease_id for row in conn.execute(query)}


@dataclass(frozen=True, slots=True)
class Unfit:
    """Hosts to avoid as replacements."""

    unwell: frozenset[int]
    busy: frozenset[int]
    """Hosts that cannot be handed over now."""
    off: frozenset[int]
    """Hosts that are off, or shutting down."""


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
    """Health data of a host besides its pool."""

    doubted_since: datetime | None
    """Time since which it has seemed unhealthy, or healthy again if it has failed."""
    wanted: str | None
    """`on` or `off`, for a host with power management."""
    wanted_at: datetime | None
    changed_at: datetime | None
    """Time of the last change of its power state."""
    state: str
    error: str

    @property
    def is_to_come_up(self) -> bool:
        """Return whether power on was requested and has not taken effect."""
        if self.wanted != "on" or self.wanted_at is None:
            return False
        return self.changed_at is None or self.changed_at < self.wanted_at


def health(conn: Connection, numbers: Collection[int] | None = None) -> dict[int, Health]:
    """Return the health of hosts by number; with None, of all registered hosts."""
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
    """Return the failed hosts that an administrator, not the engine, has declared failed."""
    return frozenset(conn.scalars(_TAKEN_OUT))


def doubt(conn: Connection, since: Mapping[int, datetime | None]) -> None:
    """Record since when the health of hosts has seemed to contradict their pool; None clears it."""
    if since:
        conn.execute(_DOUBT, {"rows": json.dumps(_doubts(since), default=str)})
    if None in since.values():
        healing_waits.wake(conn)


def _doubts(since: Mapping[int, datetime | None]) -> Sequence[dict[str, object]]:
    return [{"id": number, "at": at} for number, at in since.items()]


_DOUBT = text("""
    UPDATE hosts h SET doubted_since = n.at
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (id bigint, at timestamptz) WHERE h.id = n.id
""")

# The engine acts as `climate:…`; a move within the pool is not the one that brought the host there.
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
