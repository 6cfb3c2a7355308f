"""Pools of hosts and the legal moves between them, in one table. Each move is a fact in the host's journal.

A host is in exactly one pool. Moves caused by a lease follow from its transitions (`follow`). Administrators
cause the others, and so do the rounds for recycling, cleaning, maintenance and failed hosts. The aggregates
of the cloud follow the database, never the other way round.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import reduce
from uuid import UUID

from climate.domain.errors import IllegalMove
from climate.domain.events.event import Event
from climate.domain.facts import (
    HostDescribed,
    HostEnrolled,
    HostFact,
    HostMoved,
    HostOpened,
    HostPowerCleared,
    HostPowerSet,
    HostRemoved,
    HostSwitched,
    PoolCause,
)
from climate.domain.lease import Lease, Reservation
from climate.domain.status import DONE, EventKind


class Pool(StrEnum):
    MULTI_TENANT = "multi-tenant"  # used by the ordinary scheduler
    RESERVATION = "reservation"  # kept for leases; ordinary servers are never placed there
    LENT = "lent"  # in the aggregate of one reservation
    RECYCLING = "recycling"  # its lease is over and servers still run; no new servers
    DRAINING = "draining"  # to be kept for leases; ordinary servers still run, no new servers
    CLEANING = "cleaning"  # after a lease, for the cleaning time and the hook
    MAINTENANCE = "maintenance"
    FAILED = "failed"


class OnEnd(StrEnum):
    """Action for a host with servers when its lease ends."""

    TERMINATE = "terminate"  # delete the servers; the host goes back to the reservation pool
    RECYCLE = "recycle"  # wait until its last server is gone
    RELEASE = "release"  # move the host to the multi-tenant pool with its servers


class OnIdle(StrEnum):
    """Action for a lease that is still idle after two notices."""

    KEEP = "keep"
    RELEASE = "release"  # end the lease


class DeadlineAction(StrEnum):
    """Action when a recycling host still has servers and its next lease is about to start."""

    TERMINATE = "terminate"  # delete the servers
    MOVE = "move"  # give the next lease another host; if there is none, delete the servers


MULTI_TENANT, RESERVATION, LENT, RECYCLING, DRAINING, CLEANING, MAINTENANCE, FAILED = Pool

MOVES: Mapping[Pool, frozenset[Pool]] = {
    MULTI_TENANT: frozenset({DRAINING, RESERVATION, MAINTENANCE, FAILED}),
    RESERVATION: frozenset({MULTI_TENANT, LENT, MAINTENANCE, FAILED}),
    LENT: frozenset({RESERVATION, CLEANING, RECYCLING, MULTI_TENANT, MAINTENANCE, FAILED}),
    RECYCLING: frozenset({RESERVATION, CLEANING, MULTI_TENANT, MAINTENANCE, FAILED}),
    # It belongs to the multi-tenant pool until its last server is gone, and returns there from the two others.
    DRAINING: frozenset({RESERVATION, MULTI_TENANT, MAINTENANCE, FAILED}),
    CLEANING: frozenset({RESERVATION, MULTI_TENANT, MAINTENANCE, FAILED}),
    # Both return to their pool, to the lease that still holds them, or to recycling with the remaining servers.
    MAINTENANCE: frozenset({RESERVATION, MULTI_TENANT, LENT, RECYCLING, FAILED}),
    FAILED: frozenset({RESERVATION, MULTI_TENANT, LENT, RECYCLING, MAINTENANCE}),
}

BOOKABLE = frozenset({RESERVATION, LENT, RECYCLING, CLEANING, MAINTENANCE})
"""Pools whose hosts may be allocated for later. A maintenance window keeps its own period free by an allocation."""

READY = frozenset({RESERVATION, LENT})
"""Pools from which a host can be handed over when its lease starts."""


@dataclass(frozen=True, slots=True)
class HostPlace:
    """Pool membership of a host: the fold of its facts."""

    host: int
    stream: UUID
    """Stream of its journal."""
    name: str
    pool: Pool
    since: datetime
    reason: str = ""
    token: int = 0
    """Fencing token of the claim that moved it; 0 for a move without an event."""
    reservation_id: UUID | None = None
    """Reservation to which it is lent, or after which it is recycling, cleaned, maintained or failed."""
    until: datetime | None = None
    """End of cleaning or maintenance; for a recycling host, the latest time at which its servers are deleted."""
    home: Pool = RESERVATION
    """Pool to which it returns: RESERVATION or MULTI_TENANT."""
    reservable: bool = True
    """Set if an admin allows new allocations on it."""
    on: bool = True
    """Set if it was last switched on, not off."""
    removed: bool = False
    version: int = 1
    cause: PoolCause = PoolCause.OTHER
    """Cause for which it is in its pool, for decisions of the engine."""


def fold(facts: Iterable[HostFact], stream: UUID, place: HostPlace | None = None) -> HostPlace:
    """Return the membership of the host after its facts."""
    after = reduce(lambda before, fact: evolve(stream, before, fact), facts, place)
    if after is None:
        raise ValueError("nothing has happened to this host")
    return after


def evolve(stream: UUID, place: HostPlace | None, fact: HostFact) -> HostPlace:
    """Return the membership after `fact`. Handles every fact of hosts; no other code computes this state."""
    if isinstance(fact, HostEnrolled):
        pool = Pool(fact.pool)
        home = _home(pool, RESERVATION)
        return HostPlace(fact.host, stream, fact.name, pool, fact.at, token=fact.token, home=home)
    if place is None:
        raise ValueError(f"{type(fact).__name__} before HostEnrolled")
    return replace(_changed(place, fact), version=place.version + 1)


def _changed(place: HostPlace, fact: HostFact) -> HostPlace:
    match fact:
        case HostMoved(at, pool, reason, token, reservation_id, until, cause):
            to = Pool(pool)
            return replace(
                place,
                pool=to,
                since=at,
                reason=reason,
                token=max(token, place.token),
                reservation_id=reservation_id,
                until=until,
                home=_home(to, place.home),
                cause=PoolCause(cause),
            )
        case HostOpened(_, reservable, _):
            return replace(place, reservable=reservable)
        case HostSwitched(_, on, _):
            return replace(place, on=on)
        case HostDescribed() | HostPowerSet() | HostPowerCleared():
            return place  # properties and power of a host do not move it: see `climate.domain.hosts.folded_host`
        case HostRemoved():
            return replace(place, removed=True)
    raise ValueError(f"unknown fact {type(fact).__name__}")


def _home(pool: Pool, home: Pool) -> Pool:
    return pool if pool in (RESERVATION, MULTI_TENANT) else home


def move(place: HostPlace, fact: HostMoved) -> HostMoved:
    """Return the fact if the move is legal or changes no pool; otherwise raise IllegalMove with the legal targets."""
    to = Pool(fact.pool)
    if to is not place.pool and to not in MOVES[place.pool]:
        can = ", ".join(sorted(MOVES[place.pool]))
        raise IllegalMove(f"host {place.name} is in the pool {place.pool} and cannot go to {to}; it can go to {can}")
    return fact


def after(on_end: OnEnd, cleaning: bool, promised: bool = False) -> Pool:
    """Return the pool of a host whose lease has just ended.

    `cleaning`: hosts are cleaned after each lease. `promised`: the host is allocated to another lease, so it is
    recycled instead of released.
    """
    if on_end is OnEnd.TERMINATE:
        return CLEANING if cleaning else RESERVATION
    return RECYCLING if on_end is OnEnd.RECYCLE or promised else MULTI_TENANT


def on_end(reservation: Reservation) -> OnEnd:
    """Return the action at the end of a reservation of hosts; reservations of servers have other words and no hosts."""
    word = reservation.spec.get("on_end")
    return OnEnd(word) if word in set(OnEnd) else OnEnd.TERMINATE


@dataclass(frozen=True, slots=True)
class Transition:
    """Change of a lease from one state to the next, and the claim under which it happened."""

    before: Lease
    after: Lease
    at: datetime
    token: int = 0

    def did(self, kind: EventKind) -> bool:
        """Return whether the transition completes that event for all reservations."""
        was, now = self._pair(kind)
        return now is not None and now.carried_out and not (was and was.status is DONE)

    def did_for(self, kind: EventKind, resource_type: str) -> bool:
        """Return whether the transition completes that event for the reservations of a type."""
        was, now = self._pair(kind)
        before = was is not None and (was.status is DONE or was.is_done_for(resource_type))
        return now is not None and now.is_done_for(resource_type) and not before

    def did_for_some(self, kind: EventKind) -> bool:
        """Return whether the transition completes that event for the reservations of any type."""
        return any(self.did_for(kind, resource_type) for resource_type in self.after.resource_types)

    def _pair(self, kind: EventKind) -> tuple[Event | None, Event | None]:
        """Return the event before and after the transition."""
        was, now = (next((e for e in lease.events if e.kind is kind), None) for lease in (self.before, self.after))
        return was, now

    @property
    def additional(self) -> tuple[Event, ...]:
        """Return the additional events that the transition completes."""
        known = {event.id for event in self.before.events if event.status is DONE}
        done = (event for event in self.after.events if event.kind is EventKind.ADDITIONAL and event.carried_out)
        return tuple(event for event in done if event.id not in known)


Move = tuple[HostPlace, HostMoved]


def follow(
    transition: Transition, places: Mapping[int, HostPlace], cleaning: timedelta | None, promised: Collection[int] = ()
) -> Iterator[Move]:
    """Yield the moves of hosts that follow from a transition of a lease.

    `cleaning` is the time of cleaning after it. The hosts in `promised` are allocated to other leases. A host
    that is not in the expected pool stays where it is: a failed or maintained host returns by itself later.
    """
    for reservation in transition.after.reservations:
        of_type = reservation.resource_type
        if transition.did_for(EventKind.START, of_type) or transition.did_for(EventKind.ADJUST, of_type):
            yield from _lending_moves(transition, reservation, places)
        if transition.did_for(EventKind.END, of_type):
            yield from _returned(transition, reservation, places, cleaning, promised)
        yield from _dropped(transition, reservation, places)


def _lending_moves(transition: Transition, reservation: Reservation, places: Mapping[int, HostPlace]) -> Iterator[Move]:
    for hold in reservation.holds:
        place = places.get(hold.host)
        if place and not hold.slots and place.pool is RESERVATION:
            lent = HostMoved(
                transition.at, LENT, f"lent to lease {transition.after.id}", transition.token, reservation.id
            )
            yield place, move(place, lent)


def _returned(
    transition: Transition,
    reservation: Reservation,
    places: Mapping[int, HostPlace],
    cleaning: timedelta | None,
    promised: Collection[int],
) -> Iterator[Move]:
    for hold in reservation.holds:
        if place := _if_lent_to(reservation, places.get(hold.host)):
            to = after(on_end(reservation), cleaning is not None, hold.host in promised)
            until = transition.at + cleaning if to is CLEANING and cleaning is not None else None
            traced = reservation.id if to in (CLEANING, RECYCLING) else None
            back = HostMoved(transition.at, to, f"lease {transition.after.id} ended", transition.token, traced, until)
            yield place, move(place, back)


def _dropped(transition: Transition, reservation: Reservation, places: Mapping[int, HostPlace]) -> Iterator[Move]:
    """Yield moves of hosts taken out of a running lease, whose servers may run as long as the lease would.

    Servers on a host that was taken for another lease may run no longer than its owner was told.
    """
    kept = {hold.host for hold in reservation.holds}
    was = next((r for r in transition.before.reservations if r.id == reservation.id), reservation)
    ends = transition.after.event(EventKind.END).due_at if on_end(reservation) is OnEnd.TERMINATE else None
    taken = {plan.host: max(transition.at, plan.take_at) for plan in was.preemptions}
    taken |= {sublet.host: max(transition.at, sublet.take_at) for sublet in was.sublets}
    reason = f"lease {transition.after.id} goes on without it"
    for hold in was.holds:
        if hold.host not in kept and (place := _if_lent_to(reservation, places.get(hold.host))):
            until = min(ends, taken.get(hold.host, ends)) if ends else None
            moved = HostMoved(transition.at, RECYCLING, reason, transition.token, reservation.id, until)
            yield place, move(place, moved)


def _if_lent_to(reservation: Reservation, place: HostPlace | None) -> HostPlace | None:
    return place if place and place.pool is LENT and place.reservation_id == reservation.id else None
