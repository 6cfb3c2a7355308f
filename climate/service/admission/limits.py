"""Limits of projects: checked when leases are created and changed, set by admins, shown with their use."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain import limits as rules
from climate.domain.lease import Lease
from climate.domain.limits import IN_USE, NO_LIMIT, NOTHING, SAYS, Limit, LimitRequest
from climate.domain.operator_facts import limits_stream
from climate.domain.period import Period
from climate.domain.policy import Caller, require
from climate.service.transaction import run
from climate.store import limits
from climate.store.journal import journal
from climate.store.journal.journal import Entry
from climate.store.limits import Rule

FAR = timedelta(days=100 * 366)


@dataclass(frozen=True, slots=True)
class LimitUsage:
    """Limit with its use. `project_id` is the project whose limit it is, "" for the default; None without limit."""

    limit: Limit
    value: int | None
    project_id: str | None
    used: float | None = None
    """Maximum use by all leases from now on; None for limits on single leases."""

    @property
    def says(self) -> str:
        return SAYS[self.limit]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of the requester's project. While there are any, requests of the project run one at a time."""

    climate: Climate
    project_id: str
    values: Mapping[Limit, int]

    def check(self, conn: Connection, now: datetime, before: Lease | None, after: Lease) -> None:
        """Raise LimitExceeded if the lease would exceed a limit.

        A lease of another project, which only an admin can change, is not limited.
        """
        if not self.values or after.project_id != self.project_id:
            return
        wish = LimitRequest(after, before, now, _days(self.climate))
        others = NOTHING
        if IN_USE & self.values.keys():
            others = limits.use(conn, self.project_id, wish.horizon, but=after.id)
        rules.check(self.values, wish, others)


def begin(
    conn: Connection, climate: Climate, caller: Caller, known: Mapping[Limit, Rule], *, usual: Limit | None = None
) -> Bounds:
    """Return the limits that apply and, if there are any, wait for other requests under the same limits.

    Call it before any lease or host is locked. `usual` is the limit of which the default of the settings applies, for
    members only: it is read for holds and for leases that wait.
    """
    defaults = {} if usual is None or caller.is_admin else _of_settings(climate)
    result = {**{limit: rule for limit, rule in defaults.items() if limit is usual}, **known}
    values = {limit: rule.value for limit, rule in result.items() if rule.value != NO_LIMIT}
    if values:
        limits.one_at_a_time(conn, caller.project_id)
    return Bounds(climate, caller.project_id, values)


def of(climate: Climate, caller: Caller, project_id: str | None = None) -> list[LimitUsage]:
    """Return all limits of the caller's project with their use; of another project, or of "", for admins."""
    require(caller, "limits:get" if project_id in (None, caller.project_id) else "limits:all")
    wanted = caller.project_id if project_id is None else project_id
    return run(climate, _usages, climate, wanted)


def at(climate: Climate, caller: Caller, moment: datetime, project_id: str | None = None) -> list[LimitUsage]:
    """Return all limits as they were at a time, without their use."""
    require(caller, "limits:get" if project_id in (None, caller.project_id) else "limits:all")
    wanted = caller.project_id if project_id is None else project_id
    known = run(climate, limits.then, wanted, moment)
    result = [(limit, known.get(limit)) for limit in Limit]
    return [
        LimitUsage(limit, rule.value if rule else None, rule.project_id if rule else None) for limit, rule in result
    ]


def history(climate: Climate, caller: Caller, project_id: str) -> list[Entry]:
    """Return the changes of the limits of a project, or of "", with their authors and times."""
    require(caller, "limits:all")
    return run(climate, journal.read, limits_stream(project_id))


def everyones(climate: Climate, caller: Caller) -> list[LimitUsage]:
    """Return the limits of all projects, and the defaults."""
    require(caller, "limits:all")
    result = run(climate, limits.everyones)
    return [LimitUsage(rule.limit, rule.value, rule.project_id) for rule in result]


def put(
    climate: Climate, caller: Caller, project_id: str, values: Mapping[Limit, int | None], *, dry_run: bool = False
) -> list[LimitUsage]:
    """Set limits of a project, or of "", the default; None removes one. Existing leases are kept."""
    require(caller, "limits:put")
    return run(climate, _write, climate, caller, project_id, values, keep=not dry_run)


def _write(
    conn: Connection, climate: Climate, caller: Caller, project_id: str, values: Mapping[Limit, int | None]
) -> list[LimitUsage]:
    limits.store(conn, caller, project_id, values, climate.now(conn))
    return _usages(conn, climate, project_id)


def drop(climate: Climate, caller: Caller, project_id: str, *, dry_run: bool = False) -> int:
    """Remove all limits of a project, so that the default ones apply."""
    require(caller, "limits:delete")
    return run(climate, _drop, climate, caller, project_id, keep=not dry_run)


def _drop(conn: Connection, climate: Climate, caller: Caller, project_id: str) -> int:
    return limits.drop(conn, caller, project_id, climate.now(conn))


def _usages(conn: Connection, climate: Climate, project_id: str) -> list[LimitUsage]:
    known = {**_of_settings(climate), **limits.of(conn, project_id)}
    used: Mapping[Limit, float] = {}
    if project_id != limits.DEFAULT:
        now, days = climate.now(conn), _days(climate)
        ahead = Period(now, now + FAR)
        taken = limits.use(conn, project_id, Period(now - days, ahead.end))
        used = {limit: rules.plain(rules.most(limit, taken, ahead, days)) for limit in IN_USE}
    rows = [(limit, known.get(limit)) for limit in Limit]
    return [
        LimitUsage(limit, rule.value if rule else None, rule.project_id if rule else None, used.get(limit))
        for limit, rule in rows
    ]


def _of_settings(climate: Climate) -> Mapping[Limit, Rule]:
    settings = climate.settings
    usual = {Limit.HELD_LEASES: settings.holds_per_project, Limit.WAITING_LEASES: settings.waiting_per_project}
    return {limit: Rule(limits.DEFAULT, limit, value) for limit, value in usual.items() if value != NO_LIMIT}


def _days(climate: Climate) -> timedelta:
    return timedelta(days=climate.settings.limit_period_days)
