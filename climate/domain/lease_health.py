"""Usable hosts of a reservation, and the amount that it lacks of its promise.

The promise is the result of the last plan: the owner's request, or the owner's last change of it. Facts that
count missing hosts are no plans.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from climate.domain.facts import Fact, Hold, LeaseCreated, ReservationChanged
from climate.domain.hosts.pools import HostPlace, Pool
from climate.domain.lease import Reservation
from climate.domain.planning.preemption_facts import HostPreempted
from climate.domain.sharing.sublease_facts import HostsSublet, SubletHostsReturned, SubletHostsTaken

ToSubleases = HostsSublet | SubletHostsTaken | SubletHostsReturned
"""Facts that change what a parent has of its promise."""


def weight(holds: Iterable[Hold]) -> int:
    """Return the amount held: hosts, or slots on shared hosts."""
    return sum(hold.slots or 1 for hold in holds)


def promised(reservation: Reservation, story: Iterable[Fact]) -> int:
    """Return the amount of the last plan; without a journal, the amount held, which is right if nothing is missing."""
    planned: Sequence[Hold] = reservation.holds
    taken = 0
    sublet: dict[UUID, int] = {}
    away: set[UUID] = set()
    for fact in story:
        if isinstance(fact, LeaseCreated):
            planned = next((r.holds for r in fact.reservations if r.id == reservation.id), planned)
        if isinstance(fact, ReservationChanged) and fact.reservation_id == reservation.id and fact.missing is None:
            planned, taken = fact.holds, 0
        if isinstance(fact, HostPreempted) and fact.reservation_id == reservation.id:
            taken += 1
        if isinstance(fact, ToSubleases) and fact.reservation_id == reservation.id:
            taken += _sublet(sublet, away, fact)
    return max(0, weight(planned) - taken)


def _sublet(
    sublet: dict[UUID, int], away: set[UUID], fact: HostsSublet | SubletHostsTaken | SubletHostsReturned
) -> int:
    """Return the number of hosts that a fact about a sub-lease takes from its parent; negative if it returns some."""
    match fact:
        case HostsSublet():
            sublet[fact.sublease_id] = len(fact.to_take)
            return 0
        case SubletHostsTaken():
            away.add(fact.sublease_id)
            return sublet[fact.sublease_id]
        case SubletHostsReturned():
            return -sublet[fact.sublease_id] if fact.sublease_id in away else 0


def is_in_order(place: HostPlace, hold: Hold, reservation: Reservation, *, active: bool) -> bool:
    """Return whether the host is usable, as far as is known; a cleaned or recycling host is, for a later lease."""
    if place.removed or place.pool in (Pool.FAILED, Pool.MULTI_TENANT):
        return False
    if place.pool is Pool.MAINTENANCE:
        return not active and place.until is not None and place.until <= hold.during.start
    if not active:
        return True
    return place.pool is Pool.RESERVATION or (place.pool is Pool.LENT and place.reservation_id == reservation.id)


def comes_back(place: HostPlace) -> bool:
    """Return whether a host that is unusable now is worth keeping."""
    return not place.removed and place.pool is not Pool.MULTI_TENANT


@dataclass(frozen=True, slots=True)
class SortedHolds:
    """Holds of a reservation, sorted by the state of their hosts."""

    promised: int
    sound: tuple[Hold, ...]
    awaited: tuple[Hold, ...]
    """Hosts that another lease has not given back yet: to be replaced if possible, but nothing is missing."""
    out: tuple[Hold, ...]
    """Holds on hosts that are unusable but may return."""

    @property
    def wants(self) -> int:
        return self.promised - weight(self.sound)

    def settled(self, got: Sequence[Hold], short: int) -> tuple[tuple[Hold, ...], int]:
        """Return the holds after `got` was allocated, `short` of the promise, and the amount that is then missing."""
        held = list(got)
        for hold in (*self.awaited, *self.out):
            if short > weight(held) - weight(got):
                held.append(hold)
        kept_waiting = weight(hold for hold in held if hold in self.awaited)
        return tuple(sorted(held, key=lambda hold: hold.host)), max(0, short - kept_waiting)


def sort_holds(
    reservation: Reservation,
    places: Mapping[int, HostPlace],
    promised: int,
    *,
    active: bool,
    awaited: frozenset[int] = frozenset(),
    given_up: frozenset[int] = frozenset(),
) -> SortedHolds:
    """Sort the holds; those on hosts that are `given_up` are in none of the groups."""
    sound: list[Hold] = []
    waiting: list[Hold] = []
    out: list[Hold] = []
    for hold in reservation.holds:
        if hold.host in given_up:
            continue
        if is_in_order(places[hold.host], hold, reservation, active=active):
            (waiting if hold.host in awaited else sound).append(hold)
        elif comes_back(places[hold.host]):
            out.append(hold)
    return SortedHolds(promised, tuple(sound), tuple(waiting), tuple(out))
