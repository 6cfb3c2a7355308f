"""Hosts and allocations of the calendar: each list is one statement, and history outside the period is not read."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, Connection, Select, Text, bindparam, case, exists, func, literal_column, select, text
from sqlalchemy.dialects.postgresql import ARRAY

from climate.domain.hosts.pools import BOOKABLE
from climate.domain.hosts.timeline import Allocated
from climate.domain.period import Period
from climate.domain.policy import Caller
from climate.store.allocation.host_queries import open_to_project
from climate.store.hosts.hosts import HOST_TYPE
from climate.store.schema import Time
from climate.store.tables.hosts import hosts, properties
from climate.store.tables.leases import IN_FORCE, has

RACK = "rack"
"""Capability by which hosts are grouped."""


@dataclass(frozen=True, slots=True)
class CalendarHost:
    """A host that a calendar shows. `zone` and `rack` are empty if it has none."""

    id: int
    name: str
    pool: str
    zone: str
    rack: str


def visible(conn: Connection, project_id: str | None) -> list[CalendarHost]:
    """Return the hosts that a project may reserve, or with None all registered ones, by name; in one statement.

    The rack is empty for a project if it is a private capability.
    """
    if project_id is None:
        return [CalendarHost(*row) for row in conn.execute(_ALL)]
    return [CalendarHost(*row) for row in conn.execute(_OF_PROJECT, {"project_id": project_id})]


def allocated(conn: Connection, numbers: Collection[int], period: Period, viewer: Caller) -> list[Allocated]:
    """Return the allocations of these hosts within a period, by host and start, in one statement.

    `is_shared` says whether their leases are shared with the viewer.

    Leases that are over are found by their end, unless they were deleted.
    """
    if not numbers:
        return []
    given = {"ids": sorted(numbers), "begin": period.start, "end": period.end}
    given |= {"project_id": viewer.project_id, "user_id": viewer.user_id}
    return [Allocated(*row) for row in conn.execute(_ALLOCATED, given)]


def _visible(rack: object) -> Select[Any]:
    zone = func.coalesce(hosts.c.availability_zone, _EMPTY)
    query = select(hosts.c.id, hosts.c.hypervisor_hostname, hosts.c.pool, zone, func.coalesce(rack, _EMPTY))
    return query.where(hosts.c.removed_at.is_(None)).order_by(hosts.c.hypervisor_hostname, hosts.c.id)


_EMPTY = literal_column("''", Text)
_RACK = hosts.c.extra[RACK].astext
_RACK_IS_PUBLIC = exists().where(
    properties.c.resource_type == HOST_TYPE, properties.c.property_name == RACK, ~properties.c.private
)
_ALL = _visible(_RACK)
_OF_PROJECT = _visible(case((_RACK_IS_PUBLIC, _RACK))).where(
    open_to_project(), hosts.c.reservable, has(hosts.c.pool, *sorted(BOOKABLE))
)


def _grace(lease: str) -> str:
    """Return the SQL of the longest grace period of a lease, in seconds."""
    longest = "max((x.spec ->> 'grace_period')::int)"
    return f"coalesce((SELECT {longest} FROM reservations x WHERE x.lease_id = {lease}.id), 0)"  # noqa: S608


def _over(lease: str) -> str:
    """Return the SQL of the end of a lease with its grace period."""
    return f"({lease}.end_date + make_interval(secs => {_grace(lease)}))"


_IS_SHARED = """
    coalesce(l.sharing <> '{}' AND (jsonb_exists(l.sharing -> 'projects', :project_id)
        OR jsonb_exists(l.sharing -> 'viewers', :user_id) OR jsonb_exists(l.sharing -> 'extenders', :user_id)), false)
"""
_COLUMNS = f"""
    a.id, a.host, a.kind, a.state, lower(a.during) AS begins,
    CASE WHEN l.parent IS NULL THEN upper(a.during) ELSE least(upper(a.during), {_over("l")}) END AS ends,
    a.slots, a.vcpus, a.memory_mb,
    a.reservation_id, l.id AS lease_id, l.name, l.project_id, l.status, l.end_date, {_grace("l")} AS grace,
    a.window_id, w.reason,
    coalesce(l.parent ->> 'project_id' = :project_id, false) OR {_IS_SHARED} AS is_shared
"""
# A sub-lease holds its hosts until the end of its parent, to which they return after its own end.
_RETURNED = f"""
    SELECT -a.id, a.host, a.kind, a.state, greatest(lower(a.during), {_over("s")}), upper(a.during),
        a.slots, a.vcpus, a.memory_mb, (s.parent ->> 'reservation_id')::uuid, l.id, l.name, l.project_id, l.status,
        l.end_date, {_grace("l")}, a.window_id, NULL, {_IS_SHARED}
    FROM allocations a JOIN reservations r ON r.id = a.reservation_id JOIN leases s ON s.id = r.lease_id
    JOIN leases l ON l.id = (s.parent ->> 'lease_id')::uuid
    WHERE a.host = ANY (:ids) AND a.{IN_FORCE} AND lower(a.during) < :end AND upper(a.during) > :begin
        AND greatest(lower(a.during), {_over("s")}) < upper(a.during)
"""  # noqa: S608
# Released allocations have no index by host: they are read through the leases that ended within the period.
_ALLOCATED = text(f"""
    SELECT {_COLUMNS} FROM allocations a
    LEFT JOIN reservations r ON r.id = a.reservation_id LEFT JOIN leases l ON l.id = r.lease_id
    LEFT JOIN maintenance_windows w ON w.id = a.window_id
    WHERE a.host = ANY (:ids) AND a.{IN_FORCE} AND lower(a.during) < :end AND upper(a.during) > :begin
    UNION ALL
    SELECT {_COLUMNS} FROM leases l
    JOIN reservations r ON r.lease_id = l.id JOIN allocations a ON a.reservation_id = r.id
    LEFT JOIN maintenance_windows w ON w.id = a.window_id
    WHERE NOT l.gone AND l.end_date > :begin AND l.start_date < :end AND l.status IN ('TERMINATED', 'TERMINATING')
        AND a.host = ANY (:ids) AND a.state = 'released' AND lower(a.during) < :end AND upper(a.during) > :begin
    UNION ALL
    {_RETURNED}
    ORDER BY host, begins, id
""").bindparams(  # noqa: S608
    bindparam("ids", type_=ARRAY(BigInteger)),
    bindparam("begin", type_=Time),
    bindparam("end", type_=Time),
    bindparam("project_id", type_=Text),
    bindparam("user_id", type_=Text),
)
