"""Allocation for all reservations of a lease: in turn if that succeeds, otherwise exactly, all of them together.

In turn, each plugin chooses beside what was chosen before. That takes the fewest statements and no turn to wait. But
the first may take what only the second could have. If it fails, plugins offer all that their reservations could have,
and `climate.domain.hosts.matching` chooses for all. The rows of the choice are locked, and the offers are read again.
If the choice is not possible any more, another one is made.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

from sqlalchemy import Connection

from climate.domain.errors import Busy, ClimateError, NotEnoughAddresses, NotEnoughHosts, NotEnoughStorage, TooComplex
from climate.domain.hosts import matching
from climate.domain.hosts.matching import Assignment, Unmatched
from climate.domain.hosts.min_cost_flow import Whole
from climate.plugin import HOSTS, Allocation, Offer, ResourcePlugin, ResourceRequest
from climate.store import locks
from climate.store.allocation.candidates import Candidates
from climate.store.allocation.hosts import PATIENT_LOOKS, MustWait

T = TypeVar("T")

SHORTAGES = (NotEnoughHosts, NotEnoughAddresses, NotEnoughStorage)


@dataclass(frozen=True, slots=True)
class Settled(Generic[T]):
    """Result of a reservation that need not be allocated."""

    result: T
    firm: bool = True
    """False if it may be allocated again where the others cannot be allocated beside it."""


@dataclass(frozen=True, slots=True)
class AllocationRequest(Generic[T]):
    """Reservation to allocate."""

    plugin: Callable[[], ResourcePlugin]
    """Returns its plugin. Raises Conflict if that is not loaded, which matters only if it is needed."""
    ask: ResourceRequest
    result: Callable[[Allocation], T]
    """Makes the result of an allocation."""
    settled: Settled[T] | None = None


@dataclass(frozen=True, slots=True)
class Offered:
    """Offer of one reservation, with what was free."""

    place: int
    """Index of the reservation in its lease."""
    plugin: ResourcePlugin
    ask: ResourceRequest
    offer: Offer
    candidates: Candidates


class Unmatchable(ClimateError):
    """Not enough resources available for these reservations together"""

    def __init__(self, offered: Sequence[Offered], everything: Sequence[Offered], short: int | None) -> None:
        """Create the error. `offered` are the reservations of which each could be had without one of the others."""
        super().__init__()
        self.offered, self.everything, self.short = offered, everything, short


_Offers = dict[str, list[tuple[int, ResourcePlugin, ResourceRequest, Offer]]]
"""Offers of plugins by kind, each with the index of its reservation."""

Beside = Callable[[ResourceRequest, Sequence[T]], ResourceRequest]
"""Returns a request beside the results for other reservations."""


def allocate(conn: Connection, requests: Sequence[AllocationRequest[T]], beside: Beside[T]) -> list[T]:
    """Return the results in the order of the reservations.

    Raise TryPatiently where the requests are not patient, and otherwise Unmatchable or the refusal of a single one.
    """
    asked = [place for place, one in enumerate(requests) if one.settled is None]
    movable = [place for place, one in enumerate(requests) if one.settled is None or not one.settled.firm]
    if len(movable) < 2 or not any(requests[place].ask.patient for place in asked):
        return _in_turn(conn, requests, beside)
    try:
        return _together(conn, requests, beside, asked)
    except (*SHORTAGES, Unmatchable):
        results = _or_none(conn, requests, beside, movable) if movable != asked else None
        if results is None:
            raise
        return results


def _or_none(
    conn: Connection, requests: Sequence[AllocationRequest[T]], beside: Beside[T], asked: Sequence[int]
) -> list[T] | None:
    try:
        return _together(conn, requests, beside, asked)
    except (*SHORTAGES, Unmatchable):
        return None


def _in_turn(conn: Connection, requests: Sequence[AllocationRequest[T]], beside: Beside[T]) -> list[T]:
    """Return the results, each beside those before it."""
    results: list[T] = []
    for one in requests:
        if one.settled is not None:
            results.append(one.settled.result)
            continue
        try:
            results.append(one.result(one.plugin().reserve(conn, beside(one.ask, results))))
        except SHORTAGES:
            if one.ask.patient or len(requests) == 1:
                raise
            raise MustWait() from None  # the reservations before it may have what only this one could have
    return results


def _together(
    conn: Connection, requests: Sequence[AllocationRequest[T]], beside: Beside[T], asked: Sequence[int]
) -> list[T]:
    """Return the results, of which those in `asked` are chosen together. Plugins that offer nothing choose first."""
    results = _settled_results(requests, asked)
    for place in asked:
        one, ask = requests[place], beside(requests[place].ask, list(results.values()))
        if offer_of(conn, one.plugin(), ask) is None:
            results[place] = one.result(one.plugin().reserve(conn, ask))
    locks.lock_host_allocation(conn)
    chosen = {place: requests[place] for place in asked if place not in results}
    by_kind = _offers(conn, chosen, lambda ask: beside(ask, list(results.values())))
    for kind in sorted(by_kind, key=lambda kind: (kind != HOSTS, kind)):  # docs/locks.md: hosts before the others
        for place, allocation in _settled(conn, by_kind[kind]).items():
            results[place] = requests[place].result(allocation)
    return [results[place] for place in range(len(requests))]


def _settled_results(requests: Sequence[AllocationRequest[T]], asked: Sequence[int]) -> dict[int, T]:
    return {index: one.settled.result for index, one in enumerate(requests) if one.settled and index not in asked}


def _offers(
    conn: Connection,
    chosen: Mapping[int, AllocationRequest[T]],
    beside_results: Callable[[ResourceRequest], ResourceRequest],
) -> _Offers:
    """Return the offers for these reservations by kind; each request names all of them."""
    together = frozenset(one.ask.reservation_id for one in chosen.values())
    by_kind: _Offers = defaultdict(list)
    for place, one in chosen.items():
        ask = replace(beside_results(one.ask), together=together)
        offer = offer_of(conn, one.plugin(), ask)
        assert offer is not None
        by_kind[offer.kind].append((place, one.plugin(), ask, offer))
    return by_kind


def offer_of(conn: Connection, plugin: ResourcePlugin, request: ResourceRequest) -> Offer | None:
    """Return the offer of a plugin, or None if it has none or lacks the hook."""
    return plugin.offer(conn, request) if hasattr(plugin, "offer") else None


def _settled(
    conn: Connection, offers: Sequence[tuple[int, ResourcePlugin, ResourceRequest, Offer]]
) -> Mapping[int, Allocation]:
    """Return allocations that are possible under the locks of their rows. Raise Unmatchable or a refusal."""
    chosen: Assignment | None = None
    for _ in range(PATIENT_LOOKS):
        offered = read(conn, offers)
        demands = [one.candidates.demand for one in offered]
        rooms = merged(offered)
        if chosen is not None and matching.holds(demands, rooms, chosen):
            pairs = zip(offered, chosen, strict=True)
            return {one.place: one.offer.allocation(had, one.candidates) for one, had in pairs}
        found = matching.match(demands, rooms)
        if isinstance(found, Unmatched):
            raise _refusal(offered, found)
        chosen = found
        offers[0][3].lock(conn, {number for had in chosen for number in had})
    raise Busy("The hosts are being booked by others right now; try again shortly")


def as_many_as_possible(
    conn: Connection, asks: Sequence[tuple[ResourcePlugin, ResourceRequest]]
) -> list[Allocation] | None:
    """Return allocations of what existing reservations hold, and of as many more whole hosts as possible.

    Slots are allocated in full. Return None if a plugin offers nothing, or if that is not possible.
    """
    together = frozenset(ask.reservation_id for _, ask in asks)
    offers = []
    for index, (plugin, ask) in enumerate(asks):
        wanted = replace(ask, together=together)
        offer = offer_of(conn, plugin, wanted)
        if offer is None or offer.kind != HOSTS:
            return None
        offers.append((index, plugin, wanted, replace(offer, read=partial(_no_least, offer.read))))
    try:
        found = _settled(conn, offers)
    except (*SHORTAGES, TooComplex, Unmatchable):
        return None
    return [found[index] for index in range(len(asks))]


def _no_least(read: Callable[[Connection], Candidates], conn: Connection) -> Candidates:
    """Return the candidates for a demand of any number of whole hosts beside those that it must keep."""
    known = read(conn)
    return replace(known, demand=replace(known.demand, least=0)) if isinstance(known.demand, Whole) else known


def read(conn: Connection, offers: Sequence[tuple[int, ResourcePlugin, ResourceRequest, Offer]]) -> list[Offered]:
    return [Offered(place, plugin, ask, offer, offer.read(conn)) for place, plugin, ask, offer in offers]


def merged(offered: Collection[Offered]) -> dict[int, dict[str, int]]:
    """Return what is free of each shared host: one reservation may know of resources that another does not need."""
    rooms: dict[int, dict[str, int]] = {}
    for one in offered:
        for number, room in one.candidates.rooms.items():
            rooms.setdefault(number, {}).update(room)
    return rooms


def _refusal(offered: Sequence[Offered], found: Unmatched) -> ClimateError:
    if len(found.demands) == 1:
        return offered[found.demands[0]].offer.refusal
    return Unmatchable([offered[index] for index in found.demands], offered, found.short)
