"""Search for times at which a lease fits: `POST /v1/availability`.

The free times are read once, and the domain names the periods that fit, best first. If the first times are wanted, they
are read in portions, until enough offers are found. Each period is then planned as the lease that it would be, by the
same code that creates leases, and rolled back. A period that is refused there is not offered.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from climate.context import Climate
from climate.database.connections import reading
from climate.domain.availability import free_counts
from climate.domain.availability.free_counts import Point
from climate.domain.availability.search import Candidate, Mode, candidates
from climate.domain.errors import (
    ClimateError,
    InvalidInput,
    LimitExceeded,
    NotEnoughAddresses,
    NotEnoughHosts,
    NotEnoughStorage,
    TooComplex,
)
from climate.domain.errors import Forbidden as Refused
from climate.domain.lease import Lease
from climate.domain.period import Period
from climate.domain.policy import Caller, require
from climate.service.availability import offers, question
from climate.service.availability.offers import Offer, Offered
from climate.service.availability.question import SearchData, SearchRequest, moment
from climate.service.leases import leases, reservations
from climate.service.leases.leases import LeaseRequest
from climate.store.allocation.free_times import seconds

REFUSALS = (NotEnoughHosts, NotEnoughAddresses, NotEnoughStorage, TooComplex, Refused)
"""Refusals of a single period; the search goes on with the next one. Others are about the request itself."""

MOST_REFUSALS = 20
"""Maximum number of refused periods before the search ends."""

FIRST_DAYS = timedelta(days=2)
"""Length of the first portion of starts."""
WIDER = 8
"""Factor by which each portion is longer than the one before."""

LONGEST_SEARCH = timedelta(days=731)
"""Maximum time between the earliest start and the latest end."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Offers, best first, and the free count of each reservation along time."""

    offers: tuple[Offer, ...]
    free: tuple[tuple[Point, ...] | None, ...]
    """None for a reservation that takes nothing of the pools."""
    refusal: ClimateError | None = None
    """Last refusal of a period that seemed to fit."""


@dataclass(frozen=True)
class Inquiry:
    """One search of a caller, and the periods that were tried in it."""

    climate: Climate
    caller: Caller
    wanted: SearchRequest
    requested: Sequence[reservations.Requested]
    refusals: list[ClimateError] = field(default_factory=list)
    """Refusals of periods that seemed to fit."""
    portions: dict[Period, SearchData] = field(default_factory=dict)
    """What was read, so that one search reads nothing twice."""

    def read(self, portion: Period | None = None) -> SearchData:
        """Read what is free in a portion of the time, or in all of it."""
        portion = portion or self.wanted.whole
        if portion not in self.portions:
            with reading(self.climate.engine) as conn:
                found = question.read(conn, self.climate, self.caller, self.wanted, self.requested, portion)
            self.portions[portion] = found
        return self.portions[portion]

    def changed(self, request: SearchRequest, requested: Sequence[reservations.Requested] | None = None) -> "Inquiry":
        """Return another search of the same caller."""
        return Inquiry(self.climate, self.caller, request, self.requested if requested is None else requested)


def prepare(climate: Climate, caller: Caller, request: SearchRequest) -> Inquiry:
    """Return the search, checked by the policy, the limits of its fields and the cloud."""
    require(caller, "leases:post")
    longest = timedelta(days=climate.settings.max_lease_days)
    if request.latest - request.earliest > LONGEST_SEARCH:
        raise InvalidInput(f"latest may be {LONGEST_SEARCH.days} days after earliest at most")
    if request.length > longest:
        raise InvalidInput(f"duration may be {longest.days} days at most: no lease lasts longer here")
    if request.earliest + request.length > request.latest:
        raise InvalidInput("latest must be later than earliest by the duration at least")
    with reading(climate.engine) as conn:
        if request.earliest < climate.now(conn) - leases.GRACE:
            raise InvalidInput("earliest must be later than the current date")
    requested = reservations.requested(climate, request.reservations)
    question.refuse_elsewhere(request, requested)
    return Inquiry(climate, caller, request, reservations.checked(climate, caller, requested, request.latest))


def find(inquiry: Inquiry) -> SearchResult:
    """Return the offers and the free counts; a search that wants no offer tries no period."""
    found = tuple(_accepted(inquiry, _candidates(inquiry))) if inquiry.wanted.offers else ()
    free = _free(inquiry.read(), inquiry.wanted) if inquiry.wanted.points else tuple(None for _ in inquiry.requested)
    return SearchResult(found, free, _last_refusal(inquiry))


def _candidates(inquiry: Inquiry) -> Iterator[tuple[SearchData, Candidate]]:
    """Yield the periods that fit, best first, and what was read for each."""
    longest = timedelta(days=inquiry.climate.settings.max_lease_days)
    for portion, since in _portions(inquiry.wanted):
        known = inquiry.read(portion)
        for candidate in candidates(question.start_question(inquiry.wanted, known, portion, longest, since)):
            yield known, candidate


def _portions(request: SearchRequest) -> Iterator[tuple[Period, datetime]]:
    """Yield the periods to read and the earliest start to try in each: the first days first, if those are wanted.

    A portion begins earlier than its first start by the step: an end in between is a reason to start then.
    """
    since, days = request.earliest, FIRST_DAYS
    while request.mode is Mode.FIRST and since + days + request.length < request.latest:
        begin = max(request.earliest, since - request.step)
        yield Period(begin, since + days + request.length - timedelta(seconds=1)), since
        since, days = since + days, days * WIDER
    yield Period(max(request.earliest, since - request.step), request.latest), since


def _accepted(inquiry: Inquiry, possible: Iterator[tuple[SearchData, Candidate]]) -> Iterator[Offer]:
    accepted = 0
    for known, candidate in possible:
        result = _offer(inquiry, known, candidate)
        if isinstance(result, Offer):
            accepted += 1
            yield result
        else:
            inquiry.refusals.append(result)
        if accepted == inquiry.wanted.offers or len(inquiry.refusals) == MOST_REFUSALS:
            return


def _offer(inquiry: Inquiry, data: SearchData, candidate: Candidate) -> Offer | ClimateError:
    """Plan the lease as it would be created, and return the offer of it or the refusal."""
    requested = _narrowed(inquiry.requested, data, candidate)
    period = Period(moment(candidate.start), moment(candidate.end))
    order = LeaseRequest("offer", period.start, period.end)
    try:
        planned = leases.dry_run_create(inquiry.climate, inquiry.caller, order, requested)
    except REFUSALS as refusal:
        return refusal
    candidate = _as_planned(requested, data, candidate, planned)
    requested = _narrowed(inquiry.requested, data, candidate)
    given = [_as_asked(one, item) for one, item in zip(inquiry.wanted.reservations, requested, strict=True)]
    sealed = offers.seal(inquiry.climate, inquiry.caller, period, given, data.now)
    expires = offers.expiry(period.start, data.now)
    return Offer(sealed, period.start, period.end, expires, _counts(requested, data, candidate), candidate.cost)


def _as_planned(
    requested: Sequence[reservations.Requested], data: SearchData, candidate: Candidate, planned: Lease
) -> Candidate:
    """Return the candidate with the numbers of hosts of the plan.

    They may be smaller: the plan knows more than the search, and grants fewer hosts where a range allows that.
    """
    counts, result = iter(candidate.counts), []
    for item, demand, reservation in zip(requested, data.demands, planned.reservations, strict=True):
        if demand is not None:
            count = next(counts)
            result.append(min(count, len(reservation.hosts)) if "max" in item.spec else count)
    return replace(candidate, counts=tuple(result))


def _narrowed(
    requested: Sequence[reservations.Requested], data: SearchData, candidate: Candidate
) -> list[reservations.Requested]:
    """Return the reservations with no more than the candidate has for them, so that limits are kept."""
    counts = iter(candidate.counts)
    result = []
    for item, demand in zip(requested, data.demands, strict=True):
        count = next(counts) if demand is not None else None
        spec = {**item.spec, "max": count} if count is not None and "max" in item.spec else item.spec
        result.append(replace(item, spec=spec))
    return result


def _as_asked(given: Mapping[str, object], item: reservations.Requested) -> dict[str, object]:
    """Return a reservation as a request has it, with the number of the plan; the cloud adds the rest anew."""
    return {name: item.spec.get(name, value) if name == "max" else value for name, value in given.items()}


def _counts(requested: Sequence[reservations.Requested], data: SearchData, candidate: Candidate) -> tuple[Offered, ...]:
    counts = iter(candidate.counts)
    return tuple(
        Offered(item.plugin.resource_type, None, None)
        if demand is None
        else Offered(item.plugin.resource_type, next(counts), demand.number(candidate.start, candidate.end))
        for item, demand in zip(requested, data.demands, strict=True)
    )


def _free(data: SearchData, request: SearchRequest) -> tuple[tuple[Point, ...] | None, ...]:
    span = (seconds(request.earliest), seconds(request.latest))
    return tuple(
        None if demand is None else tuple(free_counts.points(demand.level(), span, request.points))
        for demand in data.demands
    )


def _last_refusal(inquiry: Inquiry) -> ClimateError | None:
    limits = [refusal for refusal in inquiry.refusals if isinstance(refusal, LimitExceeded)]
    return (limits or inquiry.refusals or [None])[-1]
