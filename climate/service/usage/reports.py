"""Reports of the host hours of leases, by project, user, host, pool or property."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.errors import Forbidden, InvalidInput
from climate.domain.period import Period
from climate.domain.policy import Caller, require
from climate.service.transaction import run
from climate.store.hosts import hosts
from climate.store.usage import host_hours, reports
from climate.store.usage.reports import GroupBy, ReportInterval, UsageLine, UsageQuery

LONGEST = timedelta(days=3660)
USUAL = timedelta(days=30)
MOST_LINES = 20_000


@dataclass(frozen=True, slots=True)
class UsageReport:
    """Lines of a report. The end of its period is not in the future."""

    period: Period
    by: GroupBy
    per: ReportInterval
    lines: Sequence[UsageLine]
    measured_since: datetime | None
    """Time from which on used hours are known; None: no sample was taken yet."""


@dataclass(frozen=True, slots=True)
class UsageRequest:
    """Request for a report. Without `start` it begins 30 days before its end; without `end` it ends now."""

    start: datetime | None = None
    end: datetime | None = None
    by: str = GroupBy.PROJECT
    """A GroupBy, or `property:` and a name."""
    per: ReportInterval = ReportInterval.DAY
    project_id: str | None = None
    """Project to which an administrator restricts the report."""


def report(climate: Climate, caller: Caller, request: UsageRequest, most: int = MOST_LINES) -> UsageReport:
    """Return the usage of the caller's project, or of all projects for an administrator.

    Raise InvalidInput for a period in the future or beyond ten years, an unknown property, or too many lines.
    """
    require(caller, "usage:get")
    by, name = _key(request.by)
    if not caller.is_admin:
        _check_key(climate, by)
        if request.project_id not in (None, caller.project_id):
            raise Forbidden("Usage of other projects is for administrators: leave project out to see your own")
        request = replace(request, project_id=caller.project_id)
    return run(climate, _report, climate, caller, request, (by, name, most))


def _key(text: str) -> tuple[GroupBy, str]:
    word, _, name = text.partition(":")
    if (word == GroupBy.PROPERTY) != bool(name) or word not in set(GroupBy):
        known = ", ".join(one for one in GroupBy if one is not GroupBy.PROPERTY)
        raise InvalidInput(f"by is {text[:100]!r}: it must be one of {known}, or property:NAME")
    return GroupBy(word), name


def _check_key(climate: Climate, by: GroupBy) -> None:
    """Raise Forbidden for keys that owners of leases do not learn."""
    shown = climate.settings.lease_hosts
    allowed = {GroupBy.HOST: shown != "nothing", GroupBy.PROPERTY: shown == "properties", GroupBy.POOL: False}
    if not allowed.get(by, True):
        raise Forbidden(f"Usage by {by} is for administrators: ask for it by project or user")


def _report(
    conn: Connection, climate: Climate, caller: Caller, request: UsageRequest, asked: tuple[GroupBy, str, int]
) -> UsageReport:
    by, name, most = asked
    if name and name not in hosts.property_names(conn, private=caller.is_admin):
        raise InvalidInput(f"by is 'property:{name[:100]}': no host has a property of that name")
    period = _period(request, climate.now(conn))
    wanted = UsageQuery(period, by, request.per, name, request.project_id, most + 1)
    lines = reports.lines(conn, wanted)
    if len(lines) > most:
        raise InvalidInput(
            f"The report has more than {most} lines: ask for a shorter period, or for longer parts of it (per)"
        )
    return UsageReport(period, by, request.per, lines, host_hours.progress(conn).measured_since)


def _period(request: UsageRequest, now: datetime) -> Period:
    end = min(request.end or now, now)
    start = end - USUAL if request.start is None else request.start
    if start >= now:
        raise InvalidInput(f"start is {start:%Y-%m-%d %H:%M} UTC: usage is known up to now, {now:%Y-%m-%d %H:%M} UTC")
    if start >= end:
        raise InvalidInput("end must be later than start")
    if end - start > LONGEST:
        raise InvalidInput(f"The period is {(end - start).days} days long: ask for {LONGEST.days} days at most")
    return Period(start, end)
