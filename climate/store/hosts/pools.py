"""Counts of the pools, and the allocations of their hosts."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, Connection, Select, bindparam, column, func, select, true
from sqlalchemy.dialects.postgresql import ARRAY, Range

from climate.database.sql_arrays import in_array, in_parameter
from climate.domain.hosts.pools import Pool
from climate.domain.period import Period
from climate.store.hosts.maintenance import NO_END
from climate.store.schema import Time
from climate.store.tables.hosts import hosts, windows
from climate.store.tables.leases import allocations, in_force, leases, reservations


@dataclass(frozen=True, slots=True)
class Count:
    """Counts of the hosts of one pool."""

    hosts: int = 0
    reservable: int = 0
    promised_now: int = 0
    promised_soon: int = 0
    """Hosts that are allocated now or before the requested moment."""
    drifted: int = 0
    """Hosts that the cloud cannot have in the pool that the database records."""


def counted(conn: Connection, now: datetime, soon: datetime) -> dict[Pool, Count]:
    """Return the counts of every pool that has hosts, in one statement."""
    rows = conn.execute(_COUNTED, {"now": now, "soon": Range(now, soon)})
    return {Pool(row[0]): Count(*row[1:]) for row in rows}


def belonging(conn: Connection) -> int:
    """Return the number of hosts belonging to the reservation pool, wherever they are now; failed ones do not count."""
    there = (hosts.c.removed_at.is_(None), hosts.c.home == Pool.RESERVATION, hosts.c.pool != Pool.FAILED)
    return conn.execute(select(func.count()).where(*there, hosts.c.reservable)).scalar_one()


def numbers_of(conn: Connection, names: Collection[str]) -> dict[str, int]:
    """Return the numbers of registered hosts, by name."""
    query = select(hosts.c.hypervisor_hostname, hosts.c.id).where(
        hosts.c.removed_at.is_(None), in_parameter(hosts.c.hypervisor_hostname, "names")
    )
    return {row[0]: row[1] for row in conn.execute(query, {"names": sorted(names)})}


@dataclass(frozen=True, slots=True)
class Promise:
    """Allocated time of a host: a lease, maintenance (`window_id`), or cleaning.

    Dates of a lease are those of the agreement; `during` is the time kept for it.
    """

    host: int
    kind: str
    state: str
    during: Period
    slots: int
    window_id: UUID | None = None
    reason: str | None = None
    """Reason of the maintenance."""
    reservation_id: UUID | None = None
    lease_id: UUID | None = None
    lease_name: str | None = None
    project_id: str | None = None
    start_date: datetime | None = None
    end_date: datetime | None = None

    @property
    def end(self) -> datetime | None:
        """Return its end, or None for maintenance without a known end."""
        return None if self.during.end == NO_END else self.during.end


def promised(conn: Connection, numbers: Collection[int], period: Period) -> list[Promise]:
    """Return all allocations of these hosts within the period, by host and time, in one statement."""
    given = {"ids": sorted(numbers), "period": Range(period.start, period.end)}
    return [_promise(row) for row in conn.execute(_PROMISED, given)] if numbers else []


def allocations_on(conn: Connection, numbers: Collection[int]) -> list[Promise]:
    """Return the allocations of leases on these hosts, now and later, by host and time, in one statement."""
    return [_promise(row) for row in conn.execute(_HELD, {"ids": sorted(numbers)})] if numbers else []


def following(conn: Connection, numbers: Collection[int], now: datetime) -> dict[int, Promise]:
    """Return the next allocation of each host that begins later than now, in one statement."""
    rows = conn.execute(_FOLLOWING, {"ids": sorted(numbers), "now": now}) if numbers else ()
    return {row.host: _promise(row) for row in rows}


def owners(conn: Connection, numbers: Collection[int]) -> dict[int, tuple[UUID, str]]:
    """Return lease and project of the present or last reservation of each host, in one statement."""
    query = (
        select(hosts.c.id, leases.c.id, leases.c.project_id)
        .select_from(hosts.join(reservations, reservations.c.id == hosts.c.pool_reservation).join(leases))
        .where(in_array(hosts.c.id, sorted(numbers)))
    )
    return {row[0]: (row[1], row[2]) for row in conn.execute(query)} if numbers else {}


def _counted() -> Select[Any]:
    a, now = allocations, bindparam("now", type_=Time)
    taken = (
        select(a.c.host, func.bool_or(func.lower(a.c.during) <= now).label("now"), true().label("soon"))
        .where(a.c.during.overlaps(bindparam("soon")), in_force(a), a.c.kind == "lease")
        .group_by(a.c.host)
        .subquery("taken")
    )
    return (
        select(
            hosts.c.pool,
            func.count(),
            func.count().filter(hosts.c.reservable),
            func.count().filter(taken.c.now),
            func.count().filter(taken.c.soon),
            func.count().filter(hosts.c.drift != ""),
        )
        .select_from(hosts.outerjoin(taken, taken.c.host == hosts.c.id))
        .where(hosts.c.removed_at.is_(None))
        .group_by(hosts.c.pool)
    )


def _promises() -> Select[object]:
    a, r, lease = allocations, reservations, leases
    joined = a.outerjoin(r, r.c.id == a.c.reservation_id).outerjoin(lease, lease.c.id == r.c.lease_id)
    return (
        select(
            a.c.host,
            a.c.kind,
            a.c.state,
            func.lower(a.c.during).label("begins"),
            func.upper(a.c.during).label("ends"),
            a.c.slots,
            a.c.window_id,
            windows.c.reason,
            a.c.reservation_id,
            lease.c.id.label("lease_id"),
            lease.c.name.label("lease_name"),
            lease.c.project_id,
            lease.c.start_date,
            lease.c.end_date,
        )
        .select_from(joined.outerjoin(windows, windows.c.id == a.c.window_id))
        .order_by(a.c.host, func.lower(a.c.during), a.c.id)
    )


def _promises_of_hosts() -> Select[object]:
    wanted = in_parameter(allocations.c.host, "ids")
    return _promises().where(in_force(allocations), wanted)


def _following() -> Select[object]:
    """Look up one row of the index of allocations in force per host, however many follow."""
    wanted = (
        func.unnest(bindparam("ids", type_=ARRAY(BigInteger)))
        .table_valued(column("host", BigInteger), name="wanted")
        .render_derived()
    )
    first = (
        select(allocations.c.id)
        .where(allocations.c.host == wanted.c.host, in_force(allocations))
        .where(func.lower(allocations.c.during) > bindparam("now", type_=Time))
        .order_by(func.lower(allocations.c.during))
        .limit(1)
        .lateral("first")
    )
    chosen = select(first.c.id).select_from(wanted.join(first, true())).scalar_subquery()
    return _promises().where(allocations.c.id == func.any(func.array(chosen)))


_COUNTED = _counted()
_PROMISED = _promises_of_hosts().where(allocations.c.during.overlaps(bindparam("period")))
_HELD = _promises_of_hosts().where(allocations.c.kind == "lease")
_FOLLOWING = _following()


def _promise(row: Any) -> Promise:
    return Promise(row.host, row.kind, row.state, Period(row.begins, row.ends), *row[5:])
