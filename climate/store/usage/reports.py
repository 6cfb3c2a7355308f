"""Reports of usage: host hours by a key, clipped to a period, and divided by days, weeks or months in UTC.

Reserved time counts whole hosts. Used time is the part of it in which at least one server ran on the host.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import Connection, Interval, Text, bindparam, text

from climate.domain.period import Period
from climate.store.schema import Time


class GroupBy(StrEnum):
    """Key of a report."""

    PROJECT = "project"
    USER = "user"
    HOST = "host"
    POOL = "pool"
    PROPERTY = "property"


class ReportInterval(StrEnum):
    """Division of a report by time; weeks begin on Monday."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class UsageQuery:
    """Question of a report."""

    period: Period
    by: GroupBy = GroupBy.PROJECT
    per: ReportInterval = ReportInterval.DAY
    property_name: str = ""
    """Property whose values are the keys, for GroupBy.PROPERTY."""
    project_id: str | None = None
    """Project to which the report is restricted; None: all."""
    limit: int = 0
    """Maximum number of lines to read."""


@dataclass(frozen=True, slots=True)
class UsageLine:
    """Usage under one key in one part of the period."""

    start: datetime
    key: str
    """Empty for hosts without the property."""
    reserved: timedelta
    used: timedelta
    slots: timedelta
    """Time of slots on shared hosts: two slots for an hour are two hours."""

    @property
    def idle(self) -> timedelta:
        """Return the reserved time in which no server ran."""
        return self.reserved - self.used


def lines(conn: Connection, query: UsageQuery) -> Sequence[UsageLine]:
    """Return the lines of a report, by time and key."""
    given = {
        "start": query.period.start,
        "end": query.period.end,
        "project_id": query.project_id,
        "property": query.property_name,
        "limit": query.limit,
    }
    return [UsageLine(*row) for row in conn.execute(_STATEMENTS[query.by, query.per], given)]


_KEYS = {
    GroupBy.PROJECT: "u.project_id",
    GroupBy.USER: "u.user_id",
    GroupBy.HOST: "h.hypervisor_hostname",
    GroupBy.POOL: "h.home",
    GroupBy.PROPERTY: "coalesce(h.extra ->> :property, '')",
}

_PARTS = {
    ReportInterval.ALL: "SELECT c.clipped AS part, CAST(:start AS timestamptz) AS begins",
    **{
        per: f"""
            SELECT c.clipped * tstzrange(day AT TIME ZONE 'UTC', (day + interval '1 {per}') AT TIME ZONE 'UTC') AS part,
                greatest(day AT TIME ZONE 'UTC', :start) AS begins
            FROM generate_series(date_trunc('{per}', lower(c.clipped) AT TIME ZONE 'UTC'),
                upper(c.clipped) AT TIME ZONE 'UTC', interval '1 {per}') AS day"""  # noqa: S608
        for per in (ReportInterval.DAY, ReportInterval.WEEK, ReportInterval.MONTH)
    },
}

_REPORT = """
    WITH clipped AS (
        SELECT {key} AS key, u.host, u.slots, u.during * tstzrange(:start, :end) AS clipped
        FROM lease_usage u JOIN hosts h ON h.id = u.host
        WHERE u.during && tstzrange(:start, :end)
            AND (CAST(:project_id AS text) IS NULL OR u.project_id = :project_id)),
    parts AS (
        SELECT c.key, c.host, c.slots, p.begins, p.part FROM clipped c CROSS JOIN LATERAL ({parts}) p
        WHERE NOT isempty(p.part))
    SELECT p.begins, p.key,
        coalesce(sum(upper(p.part) - lower(p.part)) FILTER (WHERE p.slots = 0), '0'),
        coalesce(sum(a.used) FILTER (WHERE p.slots = 0), '0'),
        coalesce(sum((upper(p.part) - lower(p.part)) * p.slots), '0')
    FROM parts p
    CROSS JOIN LATERAL (
        SELECT sum(least(x.ends_at, upper(p.part)) - greatest(x.starts_at, lower(p.part))) AS used
        FROM host_activity x
        WHERE x.host = p.host AND x.starts_at < upper(p.part) AND x.ends_at > lower(p.part)) a
    GROUP BY p.begins, p.key ORDER BY p.begins, p.key LIMIT :limit
"""

_STATEMENTS = {
    (by, per): text(_REPORT.format(key=key, parts=parts))
    .bindparams(
        bindparam("start", type_=Time),
        bindparam("end", type_=Time),
        bindparam("project_id", type_=Text),
        *([bindparam("property", type_=Text)] if by is GroupBy.PROPERTY else []),
    )
    .columns(begins=Time, key=Text, reserved=Interval, used=Interval, slots=Interval)
    for by, key in _KEYS.items()
    for per, parts in _PARTS.items()
}
