"""Matching of the reservations of a lease with hosts, all of them together.

A lease that fits is always matched, and one that does not fit is refused with the demands that cannot be had together.
Whole hosts are a flow (`flow`), slots of several sizes a search (`packing`). Demands without common candidates are
matched apart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from climate.domain.errors import TooComplex
from climate.domain.hosts.min_cost_flow import Flow, Whole
from climate.domain.hosts.packing import Rooms, Slots, Work, pack

Demand = Whole | Slots

Assignment = tuple[Mapping[int, int], ...]
"""Slots by number of host for each demand; 1 for a whole host."""

NO_ROOMS: Rooms = {}


@dataclass(frozen=True, slots=True)
class Unmatched:
    """Demands that cannot be satisfied together, although any of them could be without one of the others."""

    demands: tuple[int, ...]
    """Their indexes, ascending."""
    short: int | None
    """Hosts or slots by which the last of them asks for too much beside the others; None if that is not known."""


def match(demands: Sequence[Demand], rooms: Rooms = NO_ROOMS) -> Assignment | Unmatched:
    """Return the hosts of each demand: at least its least number, and more if some are left.

    A host is whole for one demand, or shared by slots that fit into its room together. Raise TooComplex if the search
    has a result for neither: never refuse for that what may fit.
    """
    parts = [(places, _matched([demands[place] for place in places], rooms)) for places in _apart(demands)]
    result: dict[int, Mapping[int, int]] = {}
    for places, found in parts:
        if found is None:
            return _unmatched(demands, places, rooms)
        result.update(zip(places, found, strict=True))
    return tuple(result[place] for place, _ in enumerate(demands))


def holds(demands: Sequence[Demand], rooms: Rooms, chosen: Assignment) -> bool:
    """Return whether an assignment, as `match` returned it for an earlier state, is still possible."""
    for demand, had in zip(demands, chosen, strict=True):
        if not had.keys() <= {*demand.candidates, *_stay(demand)} or not _within(demand, had):
            return False
    pairs = list(zip(demands, chosen, strict=True))
    shared = {host for demand, had in pairs if isinstance(demand, Slots) for host in had}
    wholes = [host for demand, had in pairs if isinstance(demand, Whole) for host in had]
    if len({*wholes, *shared}) < len(wholes) + len(shared):
        return False
    return all(_suffices(rooms.get(host, {}), host, pairs) for host in shared)


def _within(demand: Demand, had: Mapping[int, int]) -> bool:
    """Return whether a demand may have that: what must stay is there, and no host gives more than it may."""
    if isinstance(demand, Whole):
        return demand.must <= had.keys() and demand.least <= len(had) <= demand.most
    kept = all(had.get(host, 0) >= count for host, count in demand.kept.items())
    return kept and all(count <= demand.caps.get(host, count) for host, count in had.items())


def _suffices(room: Mapping[str, int], host: int, pairs: Sequence[tuple[Demand, Mapping[int, int]]]) -> bool:
    used: dict[str, int] = {}
    for demand, had in pairs:
        if isinstance(demand, Slots):
            for name, part in demand.size.items():
                used[name] = used.get(name, 0) + part * had.get(host, 0)
    return all(part <= room.get(name, 0) for name, part in used.items() if part)


def _stay(demand: Demand) -> frozenset[int]:
    return frozenset() if isinstance(demand, Whole) else frozenset(demand.kept)


def _apart(demands: Sequence[Demand]) -> list[list[int]]:
    """Return the demands in groups that have no candidates in common."""
    group = list(range(len(demands)))
    owner: dict[int, int] = {}
    for index, demand in enumerate(demands):
        for host in {*demand.candidates, *_stay(demand)}:
            first, own = group[owner.setdefault(host, index)], group[index]
            if first != own:
                group = [first if one == own else one for one in group]
    return [[index for index, one in enumerate(group) if one == name] for name in dict.fromkeys(group)]


def _matched(demands: Sequence[Demand], rooms: Rooms, work: Work | None = None) -> list[Mapping[int, int]] | None:
    """Return the hosts of each demand, or None if they cannot all have their least."""
    slots = [demand for demand in demands if isinstance(demand, Slots)]
    stay = frozenset[int]().union(*map(_stay, demands))
    wholes = [_without(demand, stay) for demand in demands if isinstance(demand, Whole)]
    if not all(demand.must.issubset(demand.candidates) for demand in wholes):
        return None
    for placed in pack(slots, wholes, rooms, work or Work()) if slots else [()]:
        flow = Flow(wholes, set[int]().union(*placed))
        if not flow.fill_least():
            flow.fill_most()
            return _in_order(demands, flow, placed)
    return None


def _in_order(demands: Sequence[Demand], flow: Flow, placed: Sequence[Mapping[int, int]]) -> list[Mapping[int, int]]:
    """Return the hosts of the flow and of the slots in the order of the demands."""
    whole, shared = iter([dict.fromkeys(hosts, 1) for hosts in flow.chosen()]), iter(placed)
    return [next(whole) if isinstance(demand, Whole) else next(shared) for demand in demands]


def _without(demand: Whole, stay: frozenset[int]) -> Whole:
    return replace(demand, candidates=[host for host in demand.candidates if host not in stay]) if stay else demand


def _unmatched(demands: Sequence[Demand], places: Sequence[int], rooms: Rooms) -> Unmatched:
    """Return a smallest part of these demands that is too much: each one is left out if the others stay too much."""
    work, needed = Work(), list(places)
    for place in places:
        rest = [demands[one] for one in needed if one != place]
        if rest and _fails(rest, rooms, work):
            needed.remove(place)
    return Unmatched(tuple(needed), _short([demands[place] for place in needed], rooms, work))


def _fails(demands: Sequence[Demand], rooms: Rooms, work: Work) -> bool:
    """Return whether these demands are known to be too much together."""
    try:
        return _matched(demands, rooms, work) is None
    except TooComplex:
        return False


def _short(demands: Sequence[Demand], rooms: Rooms, work: Work) -> int | None:
    """Return the least number by which the last demand has to be reduced."""
    *others, last = demands
    asked = last.least if isinstance(last, Whole) else last.amount
    low, high = 0, asked  # that much fits; that much does not
    try:
        while high - low > 1:
            middle = (low + high) // 2
            fits = _matched([*others, _reduced(last, middle)], rooms, work) is not None
            low, high = (middle, high) if fits else (low, middle)
    except TooComplex:
        return None
    return asked - low


def _reduced(demand: Demand, count: int) -> Demand:
    if isinstance(demand, Whole):
        return replace(demand, least=count, most=max(count, len(demand.must)))
    return replace(demand, amount=count)
