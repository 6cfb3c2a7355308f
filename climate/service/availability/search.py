"""Search for times at which a lease fits: `POST /v1/availability`.

The free times are read once, and the domain names the periods that fit, best first. Each of them is then planned as the
lease that it would be, by the same code that creates leases, and rolled back. A period that is refused there is not
offered.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice

from climate.connections import reading
from climate.context import Climate
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
from climate.domain.period import Period
from climate.domain.policy import Caller, require
from climate.service.availability import offers, question
from climate.service.availability.offers import Offer, Offered
from climate.service.availability.question import Known, Wanted, moment
from climate.service.leases import leases
from climate.service.leases import reservations as planning
from climate.service.leases.leases import Order
from climate.store.allocation.free_times import seconds

REFUSALS = (NotEnoughHosts, NotEnoughAddresses, NotEnoughStorage, TooComplex, Refused)
"""Refusals of a single period; the search goes on with the next one. Others are about the request itself."""

MOST_REFUSALS = 20
"""Maximum number of refused periods before the search ends."""

FIRST_DAYS = timedelta(days=2)
WIDER = 4
"""Factor by which the period that is read grows while too few offers are in it."""

LONGEST_SEARCH = timedelta(days=731)
"""Maximum time between the earliest start and the latest end."""


@dataclass(frozen=True, slots=True)
class Found:
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
    wanted: Wanted
    parts: Sequence[planning.Part]
    tried: dict[Candidate, Offer | ClimateError] = field(default_factory=dict)

    def read(self, until: datetime | None = None) -> Known:
        """Read what is free up to `until`, or to the latest end."""
        with reading(self.climate.engine) as conn:
            end = until or self.wanted.latest
            return question.read(conn, self.climate, self.caller, self.wanted, self.parts, end)

    def changed(self, wanted: Wanted, parts: Sequence[planning.Part] | None = None) -> "Inquiry":
        """Return another search of the same caller."""
        return Inquiry(self.climate, self.caller, wanted, self.parts if parts is None else parts)


def prepare(climate: Climate, caller: Caller, wanted: Wanted) -> Inquiry:
    """Return the search, checked by the policy, the limits of its fields and the cloud."""
    require(caller, "leases:post")
    longest = timedelta(days=climate.settings.max_lease_days)
    if wanted.latest - wanted.earliest > LONGEST_SEARCH:
        raise InvalidInput(f"latest may be {LONGEST_SEARCH.days} days after earliest at most")
    if wanted.length > longest:
        raise InvalidInput(f"duration may be {longest.days} days at most: no lease lasts longer here")
    if wanted.earliest + wanted.length > wanted.latest:
        raise InvalidInput("latest must be later than earliest by the duration at least")
    with reading(climate.engine) as conn:
        if wanted.earliest < climate.now(conn) - leases.GRACE:
            raise InvalidInput("earliest must be later than the current date")
    parts = planning.parts(climate, wanted.reservations)
    question.refuse_elsewhere(wanted, parts)
    return Inquiry(climate, caller, wanted, planning.checked(climate, caller, parts, wanted.latest))


def find(inquiry: Inquiry) -> Found:
    """Return the offers and the free counts."""
    wanted = inquiry.wanted
    whole: Known | None = None
    for until in _horizons(wanted):
        known = inquiry.read(until)
        whole = known if until == wanted.latest else None
        found = tuple(_offered(inquiry, known, until))
        if len(found) >= wanted.offers:
            break
    free = _free(whole or inquiry.read(), wanted) if wanted.points else tuple(None for _ in inquiry.parts)
    return Found(found, free, _last_refusal(inquiry))


def _horizons(wanted: Wanted) -> Iterator[datetime]:
    """Yield the ends of the periods to read: the first days first, if the first times are wanted."""
    if wanted.mode is Mode.FIRST:
        length = wanted.length + FIRST_DAYS
        while wanted.earliest + length < wanted.latest:
            yield wanted.earliest + length
            length *= WIDER
    yield wanted.latest


def _offered(inquiry: Inquiry, known: Known, until: datetime) -> list[Offer]:
    """Return up to the wanted number of offers. With a shorter period, only if it has that many candidates."""
    wanted = inquiry.wanted
    longest = timedelta(days=inquiry.climate.settings.max_lease_days)
    possible = candidates(question.asked(wanted, known, until, longest))
    if until < wanted.latest:
        few = list(islice(possible, wanted.offers))
        return list(_accepted(inquiry, known, iter(few))) if len(few) == wanted.offers else []
    return list(_accepted(inquiry, known, possible))


def _accepted(inquiry: Inquiry, known: Known, possible: Iterator[Candidate]) -> Iterator[Offer]:
    accepted = refused = 0
    for candidate in possible:
        if candidate not in inquiry.tried:
            inquiry.tried[candidate] = _offer(inquiry, known, candidate)
        result = inquiry.tried[candidate]
        if isinstance(result, Offer):
            accepted += 1
            yield result
        else:
            refused += 1
        if accepted == inquiry.wanted.offers or refused == MOST_REFUSALS:
            return


def _offer(inquiry: Inquiry, known: Known, candidate: Candidate) -> Offer | ClimateError:
    """Plan the lease as it would be created, and return the offer of it or the refusal."""
    parts = _narrowed(inquiry.parts, known, candidate)
    period = Period(moment(candidate.start), moment(candidate.end))
    order = Order("offer", period.start, period.end)
    try:
        leases.rehearse(inquiry.climate, inquiry.caller, order, parts)
    except REFUSALS as refusal:
        return refusal
    given = [_as_asked(one, part) for one, part in zip(inquiry.wanted.reservations, parts, strict=True)]
    sealed = offers.seal(inquiry.climate, inquiry.caller, period, given, known.now)
    expires = offers.expiry(period.start, known.now)
    return Offer(sealed, period.start, period.end, expires, _counts(parts, known, candidate), candidate.cost)


def _narrowed(parts: Sequence[planning.Part], known: Known, candidate: Candidate) -> list[planning.Part]:
    """Return the reservations with no more than the candidate has for them, so that limits are kept."""
    counts = iter(candidate.counts)
    result = []
    for part, demand in zip(parts, known.demands, strict=True):
        count = next(counts) if demand is not None else None
        spec = {**part.spec, "max": count} if count is not None and "max" in part.spec else part.spec
        result.append(replace(part, spec=spec))
    return result


def _as_asked(given: Mapping[str, object], part: planning.Part) -> dict[str, object]:
    """Return a reservation as a request has it, with the number of the plan; the cloud adds the rest anew."""
    return {name: part.spec.get(name, value) if name == "max" else value for name, value in given.items()}


def _counts(parts: Sequence[planning.Part], known: Known, candidate: Candidate) -> tuple[Offered, ...]:
    counts = iter(candidate.counts)
    return tuple(
        Offered(part.plugin.resource_type, None, None)
        if demand is None
        else Offered(part.plugin.resource_type, next(counts), demand.number(candidate.start, candidate.end))
        for part, demand in zip(parts, known.demands, strict=True)
    )


def _free(known: Known, wanted: Wanted) -> tuple[tuple[Point, ...] | None, ...]:
    span = (seconds(wanted.earliest), seconds(wanted.latest))
    return tuple(
        None if demand is None else tuple(free_counts.points(demand.level(), span, wanted.points))
        for demand in known.demands
    )


def _last_refusal(inquiry: Inquiry) -> ClimateError | None:
    refusals = [one for one in inquiry.tried.values() if isinstance(one, ClimateError)]
    limits = [one for one in refusals if isinstance(one, LimitExceeded)]
    return (limits or refusals or [None])[-1]
