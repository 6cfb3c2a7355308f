"""Lease, reservations and events, and the changes that each fact makes to them.

A lease is the fold of its facts: `reduce(evolve, facts, None)`. This module reads no clock and no database.
Facts are in `climate.domain.facts`, states in `climate.domain.status`; `climate.domain.events` makes facts.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from uuid import UUID

from climate.domain import facts, lease_part
from climate.domain.errors import NotFound
from climate.domain.events import times
from climate.domain.events.event import Event, EventFact, event_after
from climate.domain.facts import AddressHold, AmountHold, Fact, Hold
from climate.domain.period import Period
from climate.domain.planning import preemption
from climate.domain.planning.preemption_facts import HostPreempted, LeasePreempted, PreemptionPlanned, PreemptionWarned
from climate.domain.reservation_spec import Spec
from climate.domain.sharing import sublease
from climate.domain.sharing.sharing import NOT_SHARED, Sharing, SharingChanged
from climate.domain.sharing.sublease_facts import ParentLease, SubleaseFact, SubletFact
from climate.domain.status import (
    CANCELLED,
    DONE,
    ERROR,
    HELD_STATUS,
    LEASE_STATUS,
    SKIPPED,
    UNDONE,
    EventKind,
    EventStatus,
    HoldState,
    LeaseStatus,
    ReservationStatus,
)


@dataclass(frozen=True, slots=True)
class Reservation:
    """Resource request of a lease, and the resources held for it."""

    id: UUID
    resource_type: str
    spec: Spec
    resource_id: str | None = None
    holds: tuple[Hold, ...] = ()
    exists_before_start: bool = False
    """Set if the cloud has some of it before the start, such as a RESERVED server: deleting the lease must end it."""
    missing: int = 0
    """Number of promised hosts that it lacks."""
    resources_changed: bool = False
    """Set if it got other hosts while it was active."""
    addresses: tuple[AddressHold, ...] = ()
    parts: tuple[lease_part.Part, ...] = ()
    """Parts in child zones and cells."""
    aggregate_id: int | None = field(default=None, compare=False)
    """Id of its aggregate in the cloud, if known. No fact holds it, because the cloud may recreate the aggregate."""
    amounts: tuple[AmountHold, ...] = ()
    """Amounts of countable resources that it holds."""
    preemptions: tuple[preemption.Preemption, ...] = ()
    """Plans to take hosts from it, if it is preemptible."""
    sublets: sublease.Sublets = ()
    """Hosts of it that are promised to sub-leases."""

    @property
    def lies_elsewhere(self) -> bool:
        """Return whether all of it lies in child zones and cells."""
        return bool(self.parts) and not self.holds

    @property
    def needs_an_end(self) -> bool:
        """Return whether some of it exists elsewhere before the start, so that only the end event can release it."""
        return self.exists_before_start or any(part.in_force for part in self.parts)

    @property
    def missing_resources(self) -> bool:
        return self.missing > 0

    @property
    def hosts(self) -> tuple[int, ...]:
        return tuple(hold.host for hold in self.holds)


@dataclass(frozen=True, slots=True)
class Lease:
    """Agreement over a period. Its status follows from its start and end events."""

    id: UUID
    name: str
    project_id: str
    user_id: str
    period: Period
    reservations: tuple[Reservation, ...]
    events: tuple[Event, ...]
    created_at: datetime
    updated_at: datetime | None = None
    deleting: bool = False
    """Set after its deletion was requested: it is gone once its end event is done."""
    gone: bool = False
    version: int = 1
    """Number of its facts."""
    series_id: UUID | None = None
    """Series of which it is an occurrence."""
    sharing: Sharing = NOT_SHARED
    """Further projects whose servers may boot on it, and users who may see or prolong it."""
    parent: ParentLease | None = None
    """Lease of which a sub-lease has its hosts."""

    def event(self, key: EventKind | UUID) -> Event:
        """Return the event of that kind or id; raise NotFound if the lease has none."""
        by_id = isinstance(key, UUID)
        for event in self.events:
            if key == (event.id if by_id else event.kind):
                return event
        raise NotFound(f"the lease has no event {key}")

    @property
    def parts(self) -> tuple[lease_part.Part, ...]:
        """Return the parts of all its reservations in child zones and cells."""
        return tuple(part for reservation in self.reservations for part in reservation.parts)

    def reservation(self, reservation_id: UUID) -> Reservation:
        for reservation in self.reservations:
            if reservation.id == reservation_id:
                return reservation
        raise NotFound(f"Object with {{'reservation_id': '{reservation_id}'}} not found")

    @property
    def _edges(self) -> tuple[EventStatus, EventStatus]:
        """Return the stages of its start and end events."""
        return self.event(EventKind.START).stage, self.event(EventKind.END).stage

    @property
    def expiry(self) -> Event | None:
        """Return the event that ends the hold, if the lease was created as a hold."""
        return next((event for event in self.events if event.kind is EventKind.EXPIRE), None)

    @property
    def hold_until(self) -> datetime | None:
        """Return the expiry of the hold; None for a lease that is not, or no longer, held."""
        expiry = self.expiry
        return expiry.due_at if expiry and expiry.status in HELD_STATUS else None

    @property
    def held(self) -> bool:
        """Return whether the lease is a hold that nobody has confirmed yet."""
        return self.hold_until is not None

    @property
    def wait_over(self) -> Event | None:
        """Return the event that ends the wait, if the lease was created in the waiting list."""
        return next((event for event in self.events if event.kind is EventKind.WAIT_OVER), None)

    @property
    def wait_until(self) -> datetime | None:
        """Return when the wait ends; None for a lease that has its resources, or is gone."""
        over = self.wait_over
        return over.due_at if over and over.status is not DONE and not self.gone else None

    @property
    def waits(self) -> bool:
        """Return whether the lease is in the waiting list, without any resources."""
        return self.wait_until is not None

    @property
    def status(self) -> LeaseStatus:
        if (expiry := self.expiry) and expiry.status in HELD_STATUS:
            return HELD_STATUS[expiry.status]
        status = LEASE_STATUS[self._edges]
        return LeaseStatus.DELETING if self.deleting and status is not LeaseStatus.ERROR else status

    @property
    def reservation_status(self) -> ReservationStatus:
        """Return the status of its reservations, unless `status_of` is more specific."""
        start, end = self._edges
        if self.gone or end is DONE:
            return ReservationStatus.DELETED
        return {DONE: ReservationStatus.ACTIVE, ERROR: ReservationStatus.ERROR}.get(start, ReservationStatus.PENDING)

    def status_of(self, reservation: Reservation) -> ReservationStatus:
        """Return the status of one reservation, which may be ahead of those of other types."""
        common, of_type = self.reservation_status, reservation.resource_type
        if common is ReservationStatus.DELETED or self.event(EventKind.END).is_done_for(of_type):
            return ReservationStatus.DELETED
        return ReservationStatus.ACTIVE if self.event(EventKind.START).is_done_for(of_type) else common

    @property
    def resource_types(self) -> tuple[str, ...]:
        """Return the types of its reservations, each once."""
        return tuple(dict.fromkeys(reservation.resource_type for reservation in self.reservations))

    @property
    def hold_state(self) -> HoldState:
        """Return the state of its holds. They are released last: a failed end keeps its hosts."""
        start, end = self._edges
        if (self.gone or end is DONE) and not self.owes_hosts:
            return HoldState.RELEASED
        return HoldState.HELD if start is UNDONE and not self.touched else HoldState.ACTIVE

    def hold_state_of(self, reservation: Reservation) -> HoldState:
        """Return the state of the holds of one reservation: released once the end is done for its type."""
        over = self.event(EventKind.END).is_done_for(reservation.resource_type)
        return HoldState.RELEASED if over and not self.owes_hosts else self.hold_state

    @property
    def owes_hosts(self) -> bool:
        """Return whether it is a sub-lease that has not returned its hosts: it holds them even if it is over."""
        return self.parent is not None and not self.parent.returned

    def state_of(self, reservation: Reservation, hold: AmountHold) -> HoldState:
        """Return the state of an amount: one that is kept outlasts a lease that was handed over."""
        kept = hold.kept and self.event(EventKind.START).is_done_for(reservation.resource_type)
        return HoldState.ACTIVE if kept else self.hold_state_of(reservation)

    @property
    def touched(self) -> bool:
        """Return whether the cloud may have been asked to start it, even if that failed and is retried."""
        return self.event(EventKind.START).token > 0

    @property
    def degraded(self) -> bool:
        return any(r.missing_resources or r.resources_changed for r in self.reservations)

    def in_grace(self, now: datetime) -> bool:
        """Return whether the period is over but the end is not due: resources in use can still be prolonged."""
        start, end = self.event(EventKind.START), self.event(EventKind.END)
        open_still = start.carried_out and end.status is UNDONE and not end.token and not self.deleting
        return open_still and self.period.end <= now < end.due_at

    @property
    def before_end(self) -> datetime | None:
        return next((event.due_at for event in self.events if event.kind is EventKind.BEFORE_END), None)

    @property
    def reason(self) -> str | None:
        """Return the reason of a deviation from the lease's dates, or None."""
        said = [event for event in self.events if event.reason and event.outcome != CANCELLED]
        latest = max(said, key=lambda event: event.updated_at or event.due_at, default=None)
        return f"{latest.type}: {latest.reason}" if latest else None


def fold(facts: Iterable[Fact], lease: Lease | None = None) -> Lease:
    """Return the lease after its facts."""
    after = reduce(evolve, facts, lease)
    if after is None:
        raise NotFound("nothing has happened to this lease")
    return after


def evolve(lease: Lease | None, fact: Fact) -> Lease:
    """Return the state after `fact`. Handles every fact; no other code computes this state."""
    if isinstance(fact, facts.LeaseCreated):
        return _created(fact)
    if lease is None:
        raise ValueError(f"{type(fact).__name__} before LeaseCreated")
    return replace(_after(lease, fact), version=lease.version + 1, updated_at=fact.at)


def _after(lease: Lease, fact: Fact) -> Lease:
    if isinstance(fact, EventFact):
        return _event_changed(lease, fact)
    if isinstance(fact, SubleaseFact):
        return _sublet(lease, fact)
    return _changed(lease, fact)


def _created(fact: facts.LeaseCreated) -> Lease:
    return Lease(
        id=fact.lease_id,
        name=fact.name,
        project_id=fact.project_id,
        user_id=fact.user_id,
        period=fact.period,
        reservations=tuple(map(_planned, fact.reservations)),
        events=times.in_order(Event(e.id, EventKind(e.kind), e.due_at, e.due_at, name=e.name) for e in fact.events),
        created_at=fact.at,
        series_id=fact.series_id,
        sharing=fact.sharing or NOT_SHARED,
        parent=fact.parent,
    )


def _planned(one: facts.PlannedReservation) -> Reservation:
    return Reservation(
        one.id,
        one.resource_type,
        one.spec,
        one.resource_id,
        one.holds,
        one.exists_before_start,
        addresses=one.addresses,
        parts=tuple(lease_part.Part(p.id, p.zone_id, p.zone, p.least, p.most, cell=p.cell) for p in one.parts),
        amounts=one.amounts,
    )


def _changed(lease: Lease, fact: Fact) -> Lease:
    match fact:
        case facts.LeaseRenamed() | SharingChanged():
            return _described(lease, fact)
        case facts.LeaseRescheduled():
            return _rescheduled(lease, fact)
        case facts.ReservationChanged():
            return _reservation_changed(lease, fact)
        case facts.KeptAmountsReleased(reservation_id, _, amounts):
            return _amounts_released(lease, reservation_id, amounts)
        case facts.LeasePartHeld() | facts.LeasePartConfirmed() | facts.LeasePartReleased():
            return _part_moved(lease, fact)
        case PreemptionPlanned() | PreemptionWarned() | HostPreempted():
            return replace(lease, reservations=tuple(_preempted(r, fact) for r in lease.reservations))
        case LeasePreempted():
            return lease if lease.touched else _never_started(lease, fact)
        case facts.DeletionRequested():
            return _due_now(replace(lease, deleting=True), fact.at)
        case facts.LeaseDeleted():
            return replace(lease, gone=True)
    raise ValueError(f"unknown fact {type(fact).__name__}")


def _event_changed(lease: Lease, fact: EventFact) -> Lease:
    """Apply a fact to its event; a lease that leaves the waiting list also gets its resources."""
    if isinstance(fact, facts.LeaseGranted):
        lease = replace(lease, reservations=tuple(map(_planned, fact.reservations)))
    return _with_event(lease, event_after(lease.event(fact.event_id), fact))


def _with_event(lease: Lease, changed: Event) -> Lease:
    return replace(lease, events=tuple(changed if event.id == changed.id else event for event in lease.events))


def _never_started(lease: Lease, fact: LeasePreempted) -> Lease:
    """End a lease before its start: none of its events runs, and it holds nothing."""
    events = tuple(_skipped(event, fact) if event.status is UNDONE else event for event in lease.events)
    return replace(lease, events=events, reservations=tuple(map(_without_holds, lease.reservations)))


def _skipped(event: Event, fact: LeasePreempted) -> Event:
    return replace(event, updated_at=fact.at, status=DONE, outcome=SKIPPED, reason=fact.reason)


def _without_holds(reservation: Reservation) -> Reservation:
    return replace(reservation, holds=(), preemptions=())


def _due_now(lease: Lease, at: datetime) -> Lease:
    end = lease.event(EventKind.END)
    return _with_event(lease, replace(end, updated_at=at, due_at=min(end.due_at, at), run_at=min(end.run_at, at)))


def _amounts_released(lease: Lease, reservation_id: UUID, left: tuple[AmountHold, ...]) -> Lease:
    kept = (replace(r, amounts=left) if r.id == reservation_id else r for r in lease.reservations)
    return replace(lease, reservations=tuple(kept))


def _described(lease: Lease, fact: facts.LeaseRenamed | SharingChanged) -> Lease:
    return replace(lease, **({"sharing": fact.sharing} if isinstance(fact, SharingChanged) else {"name": fact.name}))


def _part_moved(lease: Lease, fact: facts.LeasePartHeld | facts.LeasePartConfirmed | facts.LeasePartReleased) -> Lease:
    if fact.part_id not in {part.id for part in lease.parts}:
        raise NotFound(f"the lease has no part {fact.part_id}")
    changed = (replace(r, parts=lease_part.moved(r.parts, fact)) for r in lease.reservations)
    return replace(lease, reservations=tuple(changed))


def _preempted(r: Reservation, fact: PreemptionPlanned | PreemptionWarned | HostPreempted) -> Reservation:
    if r.id != fact.reservation_id:
        return r
    holds, plans = preemption.changed(r.holds, r.preemptions, fact)
    return replace(r, holds=holds, preemptions=plans)


def _sublet(lease: Lease, fact: SubleaseFact) -> Lease:
    """Apply a fact to the reservation that has sublet hosts, or to a sub-lease itself."""
    if not isinstance(fact, SubletFact):
        parent = sublease.of_parent(lease.parent, fact)
        longer = (replace(r, holds=sublease.prolonged(r.holds, parent.until)) for r in lease.reservations)
        return replace(lease, parent=parent, reservations=tuple(longer))
    r = lease.reservation(fact.reservation_id)
    holds, sublets = sublease.changed(r.holds, r.sublets, fact)
    changed = replace(r, holds=holds, sublets=sublets)
    return replace(
        lease, reservations=tuple(changed if reservation is r else reservation for reservation in lease.reservations)
    )


def _rescheduled(lease: Lease, fact: facts.LeaseRescheduled) -> Lease:
    """Restart the named events at their new times; the others stay as they are."""
    named = {
        e.id: Event(e.id, EventKind(e.kind), e.due_at, e.due_at, updated_at=fact.at, name=e.name) for e in fact.events
    }
    others = [event for event in lease.events if event.id not in named]
    end = next(event.due_at for event in (*named.values(), *others) if event.kind is EventKind.END)
    over = max(fact.at, fact.period.end)
    kept = [times.not_beyond(event, max(over, end) if event.kind is EventKind.CLOSE else over) for event in others]
    return replace(lease, period=fact.period, events=times.in_order([*kept, *named.values()]))


def _reservation_changed(lease: Lease, fact: facts.ReservationChanged) -> Lease:
    changed = (_changed_reservation(r, fact) if r.id == fact.reservation_id else r for r in lease.reservations)
    return replace(lease, reservations=tuple(changed))


def _changed_reservation(before: Reservation, fact: facts.ReservationChanged) -> Reservation:
    return replace(
        before,
        spec=fact.spec,
        holds=fact.holds,
        missing=before.missing if fact.missing is None else fact.missing,
        resources_changed=before.resources_changed if fact.changed is None else fact.changed,
        addresses=before.addresses if fact.addresses is None else fact.addresses,
        amounts=before.amounts if fact.amounts is None else fact.amounts,
        preemptions=preemption.standing(before.preemptions, fact.holds),
        sublets=sublease.mark_unheld_as_taken(before.sublets, fact.holds),
    )
