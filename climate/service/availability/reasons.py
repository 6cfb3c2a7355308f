"""Reasons why nothing fits: the limit that binds, and alternatives that are offers themselves."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice

from climate.domain.availability.demands import AMOUNTS, Demand, SharedDemand, WholeDemand
from climate.domain.availability.search import Mode, candidates
from climate.domain.errors import TooComplex
from climate.service.availability import question
from climate.service.availability.offers import Offer
from climate.service.availability.question import ProjectRules, SearchData, SearchRequest
from climate.service.availability.search import LONGEST_SEARCH, REFUSALS, Inquiry, SearchResult, find
from climate.service.leases import reservations

LATER = timedelta(days=90)
"""Time after the latest end in which a later time is looked for."""

PROPERTIES = ("hypervisor_properties", "resource_properties")
MOST_REQUIREMENTS = 8
"""Maximum number of requirements that are left out, one at a time."""

SHORTEST = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Binding:
    """The limit that keeps the lease from fitting, and a sentence about it."""

    name: str
    message: str
    reservation: int | None = None
    """Index of the reservation that it is about."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """An offer for another request: `fewer`, `shorter`, `later`, or `without` a requirement."""

    kind: str
    message: str
    offer: Offer


@dataclass(frozen=True, slots=True)
class Reason:
    """Answer to a search without offers."""

    binding: Binding
    alternatives: tuple[Alternative, ...]


def explain(inquiry: Inquiry, found: SearchResult) -> Reason:
    """Return why the search found nothing, and the nearest requests that fit."""
    known = inquiry.read()
    return Reason(_binding(inquiry, known, found), tuple(_alternatives(inquiry, known)))


def _fits(request: SearchRequest, data: SearchData) -> bool:
    """Return whether anything fits, as far as the domain knows."""
    asked = question.start_question(request, data, request.whole, request.length)
    mode = asked.mode if asked.mode is Mode.AT else Mode.FIRST
    try:
        return next(candidates(replace(asked, mode=mode)), None) is not None
    except TooComplex:
        return False


def _binding(inquiry: Inquiry, data: SearchData, found: SearchResult) -> Binding:
    wanted = inquiry.wanted
    for index, demand in enumerate(data.demands):
        if demand is not None and not demand.is_possible:
            return _impossible(inquiry, index, demand)
    unlimited = replace(data, rules=replace(data.rules, values={}))
    if not _fits(wanted, data) and _fits(wanted, unlimited):
        if data.rules.exceeded:
            name, error = next(iter(data.rules.exceeded.items()))
            return Binding(name, str(error))
    elif found.refusal is not None:
        return Binding("refused", str(found.refusal))
    if wanted.windows and _fits(replace(wanted, windows=()), unlimited):
        return Binding("between", "It would fit outside the given windows")
    if _fits(wanted, _read(inquiry, replace(wanted, in_maintenance=True))):
        return Binding("maintenance", "Hosts that would suffice are in maintenance windows")
    return _binding_demand(wanted, unlimited)


def _binding_demand(request: SearchRequest, unlimited: SearchData) -> Binding:
    """Return the first reservation that does not fit alone; if each does, only their sum is too much."""
    for index, demand in enumerate(unlimited.demands):
        if demand is not None and not _fits(request, replace(unlimited, demands=(demand,))):
            return Binding(demand.kind, _taken(demand), index)
    return Binding("together", "Each of the reservations would fit, but not all of them together")


def _read(inquiry: Inquiry, request: SearchRequest) -> SearchData:
    known = inquiry.changed(request).read()
    return replace(known, rules=replace(known.rules, values={}))


def _impossible(inquiry: Inquiry, place: int, demand: Demand) -> Binding:
    """Return the requirement that excludes too many hosts, if it is one alone."""
    there = len(demand.gaps.numbers) if isinstance(demand, WholeDemand) else len(demand.profiles)
    message = f"{there} {demand.kind} match, which is too few for {_wish(demand)} at any time"
    for without, spec in _without_each(inquiry.wanted.reservations[place]):
        changed = _replaced(inquiry, place, spec)
        other = changed.read().demands[place]
        if other is not None and other.is_possible:
            return Binding("property", f"{message}; without {without} there are enough", place)
    return Binding(demand.kind, message, place)


def _wish(demand: Demand) -> str:
    return f"{demand.least} of them" if isinstance(demand, WholeDemand) else f"{demand.amount} pieces"


def _taken(demand: Demand) -> str:
    return f"Too few {demand.kind} are free for {_wish(demand)} at any time in question"


def _alternatives(inquiry: Inquiry, data: SearchData) -> Iterator[Alternative]:
    """Yield the alternatives, each planned as a lease like any offer."""
    wanted = inquiry.wanted
    limit = wanted.earliest + LONGEST_SEARCH
    later = min(wanted.latest + LATER, limit)
    yield from _tried(
        "later", "at a later time", inquiry.changed(replace(wanted, latest=later, mode=Mode.FIRST, offers=1, points=0))
    )
    if shorter := _shorter(inquiry, data):
        yield from _tried("shorter", f"for {_duration_text(shorter.wanted.length)}", shorter)
    if fewer := _fewer(inquiry, data):
        yield from _tried("fewer", "with fewer of each", fewer)
    if wanted.windows:
        yield from _tried("without", "without the windows", inquiry.changed(_single(replace(wanted, windows=()))))
    for index, given in enumerate(wanted.reservations):
        for without, spec in islice(_without_each(given), MOST_REQUIREMENTS):
            yield from _tried("without", f"without {without}", _replaced(inquiry, index, spec))


def _single(request: SearchRequest) -> SearchRequest:
    mode = request.mode if request.mode is Mode.AT else Mode.FIRST
    return replace(request, mode=mode, offers=1, points=0)


def _tried(kind: str, message: str, inquiry: Inquiry) -> Iterator[Alternative]:
    try:
        offers = find(inquiry).offers
    except REFUSALS:
        return
    if offers:
        yield Alternative(kind, message, offers[0])


def _shorter(inquiry: Inquiry, data: SearchData) -> Inquiry | None:
    """Return the search for the longest time that fits."""
    wanted = inquiry.wanted
    if wanted.length <= SHORTEST:
        return None
    asked = question.start_question(replace(wanted, length=SHORTEST), data, wanted.whole, wanted.length)
    at_once = {begin for begin, _ in asked.openings} if wanted.mode is Mode.AT else None
    try:
        longest = candidates(replace(asked, mode=Mode.LONGEST))
        best = next((one for one in longest if at_once is None or one.start in at_once), None)
    except TooComplex:
        return None
    if best is None:
        return None
    length = timedelta(seconds=best.end - best.start)
    return inquiry.changed(_single(replace(wanted, length=length))) if length < wanted.length else None


def _fewer(inquiry: Inquiry, data: SearchData) -> Inquiry | None:
    """Return the search with as few less of each reservation as fit."""
    sizes = [_size(demand) for demand in data.demands]
    low, high = 0, max(sizes, default=1) - 1
    if high < 1 or not _fits(inquiry.wanted, _reduced(data, high)):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _fits(inquiry.wanted, _reduced(data, middle)) else (middle, high)
    given = [
        _fewer_of(spec, demand, high) for spec, demand in zip(inquiry.wanted.reservations, data.demands, strict=True)
    ]
    return _with_specs(inquiry, given)


def _size(demand: Demand | None) -> int:
    """Return the number that can be reduced; volumes of storage are not."""
    if demand is None or demand.kind == AMOUNTS:
        return 1
    return demand.least


def _reduced(data: SearchData, by: int) -> SearchData:
    demands = [_less(demand, by) for demand in data.demands]
    return replace(data, demands=demands, rules=_counting(data.rules, demands))


def _counting(rules: ProjectRules, demands: Sequence[Demand | None]) -> ProjectRules:
    return replace(rules, demands=demands)


def _less(demand: Demand | None, by: int) -> Demand | None:
    if demand is None or _size(demand) == 1:
        return demand
    least = max(1, demand.least - by, len(demand.must) if isinstance(demand, WholeDemand) else 1)
    if isinstance(demand, SharedDemand):
        return replace(demand, amount=least)
    return replace(demand, least=least, most=max(least, demand.most - by))


def _fewer_of(spec: Mapping[str, object], demand: Demand | None, by: int) -> Mapping[str, object]:
    less = _less(demand, by)
    if less is None or less is demand:
        return spec
    if isinstance(less, WholeDemand) and "min" in spec:
        return {**spec, "min": less.least, "max": less.most}
    return {**spec, "amount": less.least}


def _without_each(spec: Mapping[str, object]) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the reservation without each of its requirements, and the text of that requirement."""
    for name in PROPERTIES:
        parts = _terms(spec.get(name))
        for index, part in enumerate(parts):
            rest = [one for other, one in enumerate(parts) if other != index]
            left = json.dumps(["and", *rest] if len(rest) > 1 else rest[0]) if rest else ""
            yield json.dumps(part), {**spec, name: left}


def _terms(text: object) -> list[object]:
    """Return the terms of requirements of which all must hold; none if the text has none, or is no JSON."""
    if not isinstance(text, str) or not text.strip():
        return []
    try:
        tree = json.loads(text)
    except ValueError:
        return []
    return tree[1:] if isinstance(tree, list) and tree and tree[0] == "and" else [tree]


def _replaced(inquiry: Inquiry, place: int, spec: Mapping[str, object]) -> Inquiry:
    given = list(inquiry.wanted.reservations)
    given[place] = spec
    return _with_specs(inquiry, given)


def _with_specs(inquiry: Inquiry, given: Sequence[Mapping[str, object]]) -> Inquiry:
    """Return the search for other reservations of the same types; what the cloud added to them stays."""
    requested = [
        reservations.Requested(
            item.plugin, {**item.spec, **{name: v for name, v in spec.items() if name != "resource_type"}}
        )
        for item, spec in zip(inquiry.requested, given, strict=True)
    ]
    return inquiry.changed(_single(replace(inquiry.wanted, reservations=given)), requested)


def _duration_text(length: timedelta) -> str:
    minutes = int(length.total_seconds()) // 60
    return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"
