"""A search as it is asked for, and what is read from the database for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol, cast

from sqlalchemy import Connection

from climate.context import Climate
from climate.database.connections import reading
from climate.domain import limits as limit_rules
from climate.domain.availability.daily_windows import Window, openings
from climate.domain.availability.demands import ADDRESSES, AMOUNTS, HOSTS, Demand, Horizon, SharedDemand, WholeDemand
from climate.domain.availability.search import Candidate, Mode, Question
from climate.domain.errors import InvalidInput, LimitExceeded
from climate.domain.events import event_transitions
from climate.domain.events.event_transitions import Times
from climate.domain.facts import FOREVER, AddressHold, AmountHold, Hold, LeaseCreated, PlannedReservation
from climate.domain.lease import Lease, fold
from climate.domain.limits import IN_USE, NO_LIMIT, NOTHING, Limit, LimitRequest, Use
from climate.domain.period import Period
from climate.domain.planning import preemption
from climate.domain.policy import Caller
from climate.plugin import ResourceRequest
from climate.service.leases import reservations
from climate.store import admission, limits
from climate.store.allocation.free_times import seconds
from climate.store.hosts import pool_settings
from climate.time_ordered_ids import time_ordered_id

ELSEWHERE = ("zone", "cell", "across")
"""Fields of a reservation that may place it in another deployment."""

ALMOST = timedelta(seconds=1) - timedelta.resolution
"""Added to round a time up to a whole second."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search for a lease with these reservations, within a period."""

    reservations: Sequence[Mapping[str, object]]
    length: timedelta
    earliest: datetime
    latest: datetime
    windows: Sequence[Window] = ()
    step: timedelta = timedelta(seconds=1)
    mode: Mode = Mode.FIRST
    offers: int = 5
    points: int = 0
    """Maximum number of points of the free count; 0: it is not computed."""
    in_maintenance: bool = False
    """True to count hosts as free during maintenance windows, for the reason of a refusal."""

    @property
    def whole(self) -> Period:
        """All of the time in question."""
        return Period(self.earliest, self.latest)


@dataclass(frozen=True, slots=True)
class SearchData:
    """Data that was read for a search."""

    now: datetime
    demands: Sequence[Demand | None]
    """None for a reservation that fits at any time."""
    rules: "ProjectRules"

    @property
    def counted(self) -> list[Demand]:
        return [demand for demand in self.demands if demand is not None]


class Searchable(Protocol):
    """A plugin whose reservations can be searched for."""

    def demand(self, conn: Connection, request: ResourceRequest, horizon: Horizon) -> Demand | None: ...


def refuse_elsewhere(request: SearchRequest, requested: Sequence[reservations.Requested]) -> None:
    """Raise InvalidInput for reservations that cannot be searched for."""
    if not request.reservations:
        raise InvalidInput("reservations must not be empty: say what to search for")
    for item in requested:
        named = [name for name in ELSEWHERE if item.spec.get(name)]
        if named:
            raise InvalidInput(f"{named[0]} cannot be searched for: the search covers the hosts of this deployment")
        if not hasattr(item.plugin, "demand"):
            kind = item.plugin.resource_type
            raise InvalidInput(f"Reservations of the type {kind} cannot be searched for: its plugin has no search")


def read(
    conn: Connection,
    climate: Climate,
    caller: Caller,
    request: SearchRequest,
    requested: Sequence[reservations.Requested],
    portion: Period,
) -> SearchData:
    """Read the free times of a portion of the time in question, and the rules of the project."""
    rules = admission.read(conn, caller.project_id)
    now = climate.other_time(conn) or rules.time
    agreed = pool_settings.of(conn, climate.settings, rules.terms).of_a_lease
    period = Period(portion.start, portion.start + request.length)
    ask = reservations.with_terms(ResourceRequest({}, period, caller, climate.settings), agreed, requested)
    horizon = Horizon(portion, now, request.in_maintenance)
    demands = []
    for item in requested:
        plugin = cast("Searchable", item.plugin)
        demands.append(plugin.demand(conn, _of(ask, item), horizon))
    values = {limit: rule.value for limit, rule in rules.limits.items() if rule.value != NO_LIMIT}
    values = {limit: value for limit, value in values.items() if limit not in (Limit.HELD_LEASES, Limit.WAITING_LEASES)}
    days, use = timedelta(days=climate.settings.limit_period_days), NOTHING
    if IN_USE & values.keys():
        margin = days + timedelta(seconds=ask.tail)
        use = limits.use(conn, caller.project_id, Period(portion.start - margin, portion.end + margin))
    return SearchData(now, demands, ProjectRules(caller, tuple(demands), values, use, now, days, ask.grace_of_lease))


def _of(request: ResourceRequest, item: reservations.Requested) -> ResourceRequest:
    return ResourceRequest(
        item.spec,
        request.period,
        request.caller,
        request.settings,
        terms=request.terms,
        grace_of_lease=request.grace_of_lease,
        soon=True,
    )


@dataclass(frozen=True)
class ProjectRules:
    """Limits of the project for leases that are only thought of."""

    caller: Caller
    demands: Sequence[Demand | None]
    values: Mapping[Limit, int]
    use: Use
    now: datetime
    days: timedelta
    grace: timedelta
    exceeded: dict[str, LimitExceeded] = field(default_factory=dict)
    """Refusals so far, by the name of the limit."""

    def permit(self, candidate: Candidate) -> float | None:
        """Return the greatest share of a limit in use with the lease, or None beyond a limit."""
        if not self.values:
            return 0.0
        wish = LimitRequest(self._lease(candidate), None, self.now, self.days)
        try:
            limit_rules.check(self.values, wish, self.use)
        except LimitExceeded as error:
            self.exceeded.setdefault(_name(error), error)
            return None
        return limit_rules.share(self.values, wish, self.use)

    def turns(self) -> list[int]:
        """Return the times at which the project's use falls, or old use leaves the period of host-hours."""
        falls = [edge.at for edge in self.use.edges]
        return [seconds(at + more + ALMOST) for at in falls for more in (timedelta(0), self.days) if at.year < 2190]

    def _lease(self, candidate: Candidate) -> Lease:
        period = Period(moment(candidate.start), moment(candidate.end))
        counts = iter(candidate.counts)
        planned = tuple(_planned(demand, next(counts), period) for demand in self.demands if demand is not None)
        events = event_transitions.plan(Times(period, grace=self.grace), time_ordered_id)
        caller = self.caller
        created = LeaseCreated(
            time_ordered_id(), self.now, "", caller.project_id, caller.user_id, period, planned, events
        )
        return fold([created])


def _name(error: LimitExceeded) -> str:
    found = cast("Mapping[str, object]", error.details["limit"])
    return str(found["name"])


def _planned(demand: Demand, count: int, period: Period) -> PlannedReservation:
    kind, number = demand.kind, time_ordered_id()
    if isinstance(demand, WholeDemand) and kind == HOSTS:
        spec = {preemption.FIELD: demand.preemptible}
        return PlannedReservation(number, kind, spec, holds=tuple(Hold(host, period) for host in range(count)))
    if isinstance(demand, SharedDemand) and kind == HOSTS:
        return PlannedReservation(number, kind, {}, holds=(Hold(0, period, count),))
    if kind == ADDRESSES:
        return PlannedReservation(number, kind, {}, addresses=tuple(AddressHold(n, "", period) for n in range(count)))
    if isinstance(demand, SharedDemand) and kind == AMOUNTS:
        amount = count * sum(demand.size.values())
        return PlannedReservation(number, kind, {}, amounts=(AmountHold(0, amount, _demand_period(demand, period)),))
    return PlannedReservation(number, kind, {})


def _demand_period(demand: SharedDemand, period: Period) -> Period:
    return Period(period.start, FOREVER) if demand.lasting else period


def start_question(
    request: SearchRequest, data: SearchData, portion: Period, longest: timedelta, since: datetime | None = None
) -> Question:
    """Return the question for the domain in a portion of the time, for starts since `since` or in all of it."""
    span = (seconds(request.earliest), seconds(portion.end))
    spans = openings(request.windows, span)
    at_once = [one for one in spans if one[0] == span[0]]
    return Question(
        demands=data.counted,
        length=int(request.length.total_seconds()),
        openings=at_once if request.mode is Mode.AT else spans,
        mode=request.mode,
        step=max(1, int(request.step.total_seconds())),
        longest=int(longest.total_seconds()),
        permit=data.rules.permit,
        turns=data.rules.turns() if data.rules.values else (),
        since=seconds(since or request.earliest),
    )


def present(climate: Climate) -> datetime:
    """Return the present time, as the start of a search."""
    with reading(climate.engine) as conn:
        return climate.now(conn).replace(microsecond=0)


def moment(at: int) -> datetime:
    return datetime.fromtimestamp(at, UTC)
