"""Search for the times at which several reservations fit together.

A lease can begin to fit only where something changes: something becomes free for long enough, a window opens, a limit
has room again. Only these starts are tried, rounded up to the step, and only in the spans in which the counts are high
enough. The rest is matched (`climate.domain.hosts.matching`), so that the search knows what fits exactly as the
allocation does. Starts are tried in the order of the best that they can have, and the first ones found are the best.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from heapq import heapify, heappop, heappush

from climate.domain.availability.daily_windows import Span
from climate.domain.availability.demands import Demand, Resources, SharedDemand, WholeDemand, latest_ends
from climate.domain.availability.gaps import FAR, Steps, common
from climate.domain.errors import TooComplex
from climate.domain.hosts import matching
from climate.domain.hosts.matching import Unmatched

MOST_TRIES = 20_000
"""Maximum number of matchings in one search; some seconds."""


ONE_DAY = 86400
"""Seconds."""


class Mode(StrEnum):
    """Order of the possible times."""

    FIRST = "first"
    MOST = "most"
    LONGEST = "longest"
    AT = "at"
    CHEAPEST = "cheapest"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A period in which everything fits, and the number of each reservation."""

    start: int
    end: int
    counts: tuple[int, ...]
    cost: float = 0.0


Permit = Callable[[Candidate], float | None]
"""Return the share of the project's limits in use with that lease, or None beyond a limit."""


def _unlimited(candidate: Candidate) -> float:
    return 0.0


@dataclass(frozen=True, slots=True)
class Question:
    """A search: demands, the length of the lease in seconds, and where the lease may lie."""

    demands: Sequence[Demand]
    length: int
    openings: Sequence[Span]
    """Sorted, disjoint; a lease lies within one of them."""
    mode: Mode = Mode.FIRST
    step: int = 1
    """A start is a multiple of it, in seconds since 1970."""
    longest: int = 0
    """Maximum length for the mode `longest`."""
    permit: Permit = _unlimited
    turns: Sequence[int] = ()
    """Further times at which a lease may begin to fit, such as those at which the project gives something back."""
    since: int = -FAR
    """Earliest start to try, within the openings."""


@dataclass
class _Work:
    left: int = MOST_TRIES

    def step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise TooComplex("The search has too many possibilities: ask for a shorter time, or for a coarser step")


@dataclass(frozen=True)
class _Search:
    question: Question
    counts: Mapping[int, Steps]
    """Free numbers by start for each demand of whole hosts, by its index."""
    most: Mapping[int, int]
    """Maximum number of each of these demands."""
    work: _Work = field(default_factory=_Work)


def candidates(question: Question) -> Iterator[Candidate]:
    """Yield the possible periods, best first: each at another start."""
    if any(not demand.is_possible for demand in question.demands):
        return
    search = _begun(question)
    match question.mode:
        case Mode.FIRST | Mode.AT:
            yield from _found(search)
        case Mode.CHEAPEST:
            yield from _cheapest(search)
        case Mode.MOST:
            yield from _most(search)
        case Mode.LONGEST:
            yield from _longest(search)


def _begun(question: Question) -> _Search:
    whole = {place: one for place, one in enumerate(question.demands) if isinstance(one, WholeDemand)}
    counts = {place: one.counts(question.length) for place, one in whole.items()}
    return _Search(question, counts, {place: one.most for place, one in whole.items()})


def _found(search: _Search) -> Iterator[Candidate]:
    """Yield the periods of the question's length that are possible, by their start."""
    for start in _starts(search):
        if found := _tried(search, start):
            yield found


def _starts(search: _Search) -> Iterator[int]:
    """Yield the starts to try, ascending."""
    question = search.question
    if question.mode is Mode.AT:
        yield from [begin for begin, end in question.openings[:1] if begin + question.length <= end]
        return
    step, changes = question.step, _changes(question)
    for begin, end in (piece for span in _possible(search) for piece in _pieces(span)):
        first = -(-begin // step) * step
        known = (one for some in changes for one in some[bisect_right(some, first - step) : bisect_left(some, end)])
        yield from sorted({start for one in known if (start := -(-one // step) * step) < end})


def _pieces(span: Span) -> Iterator[Span]:
    """Yield the parts of a span, a day and then ever longer, so that a first start needs no look at all of them."""
    begin, length = span[0], ONE_DAY
    while begin + length < span[1]:
        yield begin, begin + length
        begin, length = begin + length, 2 * length
    yield begin, span[1]


def _changes(question: Question) -> list[Sequence[int]]:
    """Return sequences of ascending times at which a lease may begin to fit."""
    opened = [begin for begin, _ in question.openings]
    return [opened, sorted(question.turns), *(demand.changes(question.length) for demand in question.demands)]


def _possible(search: _Search) -> Iterator[Span]:
    """Yield the spans of starts for which the lease lies in an opening, and the counts are high enough."""
    question = search.question
    spans: Iterable[Span] = ((begin, end - question.length + 1) for begin, end in question.openings)
    spans = common([(question.since, FAR)], spans)
    for place, steps in search.counts.items():
        spans = common(spans, steps.at_least(question.demands[place].least))
    yield from spans


def _cheapest(search: _Search) -> Iterator[Candidate]:
    """Yield those that take nothing of a limit as they are found, and then the others by what they take."""
    rest = []
    for found in _found(search):
        if found.cost > 0:
            rest.append(found)
        else:
            yield found
    yield from sorted(rest, key=lambda one: (one.cost, one.start))


def _most(search: _Search) -> Iterator[Candidate]:
    """Yield the leases with the most resources first. The counts are bounds, which a matching or a limit may reduce."""
    demands, starts = search.question.demands, list(_starts(search))
    bounds = [sum(demand.amount for demand in demands if isinstance(demand, SharedDemand))] * len(starts)
    for place, steps in search.counts.items():
        most = search.most[place]
        bounds = [bound + min(most, steps.at(start)) for bound, start in zip(bounds, starts, strict=True)]
    known = zip(bounds, starts, strict=True)
    yield from _best_first(known, lambda start: _tried(search, start), lambda found: sum(found.counts))


def _longest(search: _Search) -> Iterator[Candidate]:
    """Yield the longest lease at each start, the longest of them first."""
    question = search.question
    starts = list(_starts(search))
    begins = [begin for begin, _ in question.openings]
    untils = [min(question.openings[bisect_right(begins, one) - 1][1], one + question.longest) for one in starts]
    for demand in question.demands:
        if isinstance(demand, WholeDemand):
            untils = list(map(min, untils, latest_ends(demand, question.length, starts)))
    until_of = dict(zip(starts, untils, strict=True))

    def tried(start: int) -> Candidate | None:
        shortest = _tried(search, start)
        return shortest and _prolonged(search, shortest, until_of[start])

    bounds = ((until - start, start) for start, until in until_of.items())
    yield from _best_first(bounds, tried, lambda found: found.end - found.start)


def _best_first(
    bounds: Iterable[tuple[int, int]],
    tried: Callable[[int], Candidate | None],
    worth: Callable[[Candidate], int],
) -> Iterator[Candidate]:
    """Yield what is found by its worth, then by its start. A bound says what it is worth at most, and its start."""
    # One number for both, since a hundred thousand of them are sorted.
    waiting = [start - bound * FAR for bound, start in bounds]
    heapify(waiting)
    known: dict[int, Candidate] = {}
    while waiting:
        start = heappop(waiting) % FAR
        if start in known:
            yield known[start]
        elif found := tried(start):
            known[start] = found
            heappush(waiting, start - worth(found) * FAR)


def _tried(search: _Search, start: int) -> Candidate | None:
    """Return the candidate of the question's length if everything fits then, within the limits of the project."""
    question = search.question
    end = start + question.length
    if any(steps.at(start) < question.demands[place].least for place, steps in search.counts.items()):
        return None
    counts = _counts(search, start, end)
    return _permitted(question, Candidate(start, end, counts)) if counts else None


def _counts(search: _Search, start: int, end: int) -> tuple[int, ...] | None:
    """Return the number of each reservation for a lease of the question's length."""
    demands = search.question.demands
    only = demands[0] if len(demands) == 1 else None
    if isinstance(only, WholeDemand) and not only.must:
        return (min(only.most, search.counts[0].at(start)),)
    search.work.step()
    if isinstance(only, SharedDemand):
        return (only.amount,) if only.suffices(only.free(start, end)) else None
    return matched(demands, start, end)


def matched(demands: Sequence[Demand], start: int, end: int) -> tuple[int, ...] | None:
    """Return the number that each demand gets from `start` to `end`; None if they do not fit together."""
    result = dict[int, int]()
    for kind in {demand.kind for demand in demands}:
        places = [place for place, demand in enumerate(demands) if demand.kind == kind]
        found = _matched([demands[place] for place in places], start, end)
        if found is None:
            return None
        result.update(zip(places, found, strict=True))
    return tuple(result[place] for place, _ in enumerate(demands))


def _matched(demands: Sequence[Demand], start: int, end: int) -> list[int] | None:
    """Return the numbers of demands that choose from the same hosts."""
    ends = sorted({demand.until(end) for demand in demands if isinstance(demand, SharedDemand)})
    rooms: dict[int, Resources] = {}
    asked: list[matching.Demand] = []
    for demand in demands:
        if isinstance(demand, WholeDemand):
            asked.append(demand.demanded(start, end))
            continue
        free = demand.free(start, end)
        slots, own = demand.in_stages(free, start, ends[: ends.index(demand.until(end)) + 1])
        asked.append(slots)
        for number, room in own.items():
            rooms[number] = {**room, **rooms.get(number, {})}
    found = matching.match(asked, rooms)
    return None if isinstance(found, Unmatched) else [sum(had.values()) for had in found]


def _permitted(question: Question, wanted: Candidate) -> Candidate | None:
    """Return the candidate with as much as the project's limits allow; None if they do not allow its least.

    The cheapest lease asks for no more than its least.
    """
    least = tuple(demand.least for demand in question.demands)
    few = replace(wanted, counts=least)
    if question.mode is not Mode.CHEAPEST and (cost := question.permit(wanted)) is not None:
        return replace(wanted, cost=cost)
    cost = question.permit(few)
    if cost is None:
        return None
    best = replace(few, cost=cost)
    if question.mode is Mode.CHEAPEST:
        return best
    low, high = 0, max(got - had for got, had in zip(wanted.counts, least, strict=True))
    while high - low > 1:
        more = (low + high) // 2
        counts = tuple(min(had + more, got) for got, had in zip(wanted.counts, least, strict=True))
        tried = replace(wanted, counts=counts)
        cost = question.permit(tried)
        low, high = (low, more) if cost is None else (more, high)
        best = best if cost is None else replace(tried, cost=cost)
    return best


def _prolonged(search: _Search, candidate: Candidate, until: int) -> Candidate:
    """Return the candidate with the latest end up to `until`; what fits for longer fits for less."""

    def to(end: int) -> Candidate | None:
        search.work.step()
        counts = matched(search.question.demands, candidate.start, end)
        return _permitted(search.question, Candidate(candidate.start, end, counts)) if counts else None

    if until <= candidate.end:
        return candidate
    if best := to(until):
        return best
    low, high = candidate.end, until
    while high - low > 1:
        middle = (low + high) // 2
        found = to(middle)
        low, high, candidate = (middle, high, found) if found else (low, middle, candidate)
    return candidate
