"""What projects may hold: checked where leases are made and changed, set by admins, shown with its use."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain import limits as rules
from climate.domain.lease import Lease
from climate.domain.limits import IN_USE, NO_LIMIT, NOTHING, SAYS, Limit, Wish
from climate.domain.operator_facts import limits_stream
from climate.domain.period import Period
from climate.domain.policy import Caller, require
from climate.service.transaction import work
from climate.store import limits
from climate.store.journal import journal
from climate.store.journal.journal import Entry
from climate.store.limits import Rule

FAR = timedelta(days=100 * 366)


@dataclass(frozen=True, slots=True)
class Standing:
    """A limit and how it stands.  `project_id`: whose limit it is, "" for everybody's; None where there is none."""

    limit: Limit
    value: int | None
    project_id: str | None
    used: float | None = None
    """By all leases, at its most from now on; None for limits on single leases."""

    @property
    def says(self) -> str:
        return SAYS[self.limit]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of the project of whoever asks.  While there are any, nobody else of it books."""

    climate: Climate
    project_id: str
    values: Mapping[Limit, int]

    def check(self, conn: Connection, now: datetime, before: Lease | None, after: Lease) -> None:
        """LimitExceeded where what the lease would be is beyond a limit.

        A lease of another project, which only an admin can be at, is not held to anything.
        """
        if not self.values or after.project_id != self.project_id:
            return
        wish = Wish(after, before, now, _days(self.climate))
        others = NOTHING
        if IN_USE & self.values.keys():
            others = limits.use(conn, self.project_id, wish.horizon, but=after.id)
        rules.check(self.values, wish, others)


def begin(
    climate: Climate, conn: Connection, caller: Caller, known: Mapping[Limit, Rule], *, hold: bool = False
) -> Bounds:
    """Return the limits that hold and, where there are any, wait for others who are booking under the same.

    To be called before any lease or host is locked.  The number of holds has a limit of
    the settings, which counts for members only and only for a lease that is to be held.
    """
    usual = _of_settings(climate) if hold and not caller.is_admin else {}
    found = {**usual, **known}
    values = {limit: rule.value for limit, rule in found.items() if rule.value != NO_LIMIT}
    if values:
        limits.one_at_a_time(conn, caller.project_id)
    return Bounds(climate, caller.project_id, values)


def of(climate: Climate, caller: Caller, project_id: str | None = None) -> list[Standing]:
    """All limits of the caller's project and how much of them is used; of another project, or "", for admins."""
    require(caller, "limits:get" if project_id in (None, caller.project_id) else "limits:all")
    wanted = caller.project_id if project_id is None else project_id
    return work(climate, lambda conn, patient: _standings(climate, conn, wanted))


def at(climate: Climate, caller: Caller, moment: datetime, project_id: str | None = None) -> list[Standing]:
    """All limits as they were at a moment, without their use."""
    require(caller, "limits:get" if project_id in (None, caller.project_id) else "limits:all")
    wanted = caller.project_id if project_id is None else project_id
    known = work(climate, lambda conn, patient: limits.then(conn, wanted, moment))
    found = [(limit, known.get(limit)) for limit in Limit]
    return [Standing(limit, rule.value if rule else None, rule.project_id if rule else None) for limit, rule in found]


def history(climate: Climate, caller: Caller, project_id: str) -> list[Entry]:
    """Who has set which limits of a project, or of "", and when."""
    require(caller, "limits:all")
    return work(climate, lambda conn, patient: journal.read(conn, limits_stream(project_id)))


def everyones(climate: Climate, caller: Caller) -> list[Standing]:
    """What is set for any project, and for all."""
    require(caller, "limits:all")
    found = work(climate, lambda conn, patient: limits.everyones(conn))
    return [Standing(rule.limit, rule.value, rule.project_id) for rule in found]


def put(
    climate: Climate, caller: Caller, project_id: str, values: Mapping[Limit, int | None], *, dry_run: bool = False
) -> list[Standing]:
    """Set limits of a project, or of "", which is the default; None takes one away.  What is promised stays so."""
    require(caller, "limits:put")

    def act(conn: Connection, patient: bool) -> list[Standing]:
        limits.put(conn, caller, project_id, values, climate.now(conn))
        return _standings(climate, conn, project_id)

    return work(climate, act, keep=not dry_run)


def drop(climate: Climate, caller: Caller, project_id: str, *, dry_run: bool = False) -> int:
    """Take all limits of a project away; the default ones hold for it then."""
    require(caller, "limits:delete")
    return work(
        climate, lambda conn, patient: limits.drop(conn, caller, project_id, climate.now(conn)), keep=not dry_run
    )


def _standings(climate: Climate, conn: Connection, project_id: str) -> list[Standing]:
    known = {**_of_settings(climate), **limits.of(conn, project_id)}
    used: Mapping[Limit, float] = {}
    if project_id != limits.DEFAULT:
        now, days = climate.now(conn), _days(climate)
        ahead = Period(now, now + FAR)
        taken = limits.use(conn, project_id, Period(now - days, ahead.end))
        used = {limit: rules.plain(rules.most(limit, taken, ahead, days)) for limit in IN_USE}
    rows = [(limit, known.get(limit)) for limit in Limit]
    return [
        Standing(limit, rule.value if rule else None, rule.project_id if rule else None, used.get(limit))
        for limit, rule in rows
    ]


def _of_settings(climate: Climate) -> Mapping[Limit, Rule]:
    value = climate.settings.holds_per_project
    return {} if value == NO_LIMIT else {Limit.HELD_LEASES: Rule(limits.DEFAULT, Limit.HELD_LEASES, value)}


def _days(climate: Climate) -> timedelta:
    return timedelta(days=climate.settings.limit_period_days)
