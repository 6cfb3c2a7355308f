"""Update of a lease: its name, its dates, its requirements. All of it or nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.errors import Conflict, InvalidInput, NotFound
from climate.domain.events import event_transitions
from climate.domain.events.event_transitions import Times
from climate.domain.facts import (
    Fact,
    Hold,
    LeaseRenamed,
    LeaseRescheduled,
    PlannedEvent,
    ReservationChanged,
)
from climate.domain.lease import Lease, Reservation, fold
from climate.domain.period import Period
from climate.domain.planning import holds, preemption, waiting_list
from climate.domain.policy import Caller, require
from climate.domain.sharing import sublease
from climate.domain.sharing.sharing import Sharing
from climate.domain.status import DONE, EventKind
from climate.plugin import Allocation, ResourcePlugin, ResourceRequest
from climate.service.admission import admission, enforcement
from climate.service.admission.admission import Grant
from climate.service.admission.enforcement import Approval
from climate.service.events import host_power_on, unbegun_claims
from climate.service.leases import joint_allocation, reservation_aggregates, reservations, shortages
from climate.service.leases.joint_allocation import AllocationRequest, Settled
from climate.service.leases.leases import limited, scope, wake_if_soon
from climate.service.preemption import lease_shortening, second_try
from climate.service.preemption.second_try import Turn
from climate.service.sharing import access, accounts
from climate.service.sharing import changes as sharing_changes
from climate.service.subleases import changes as sublease_changes
from climate.store.allocation import preemptible
from climate.store.leases import leases
from climate.time_ordered_ids import time_ordered_id

LAST = datetime(2150, 1, 1, tzinfo=UTC)
"""A time after the end of every lease."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of a lease; None leaves a field unchanged. `now` for an end means at once."""

    name: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    end_now: bool = False
    start_now: bool = False
    before_end: datetime | None = None
    reservations: Sequence[Mapping[str, object]] = ()
    sharing: Sharing | None = None
    agreed: bool = False
    """Set if children with parts of the lease have agreed to a later end."""

    @property
    def allocates_nothing(self) -> bool:
        """Return whether only the name and the sharing change."""
        return self == Changes(name=self.name, sharing=self.sharing)

    @property
    def only_the_end(self) -> bool:
        return self == Changes(end=self.end, end_now=self.end_now, agreed=self.agreed)


class PartsFirst(Exception):
    """The lease is to end later, and children with parts of it have not agreed yet."""


def update(
    climate: Climate,
    caller: Caller,
    lease_id: UUID,
    changes: Changes,
    version: int | None = None,
    *,
    dry_run: bool = False,
) -> Lease:
    """Change the lease in one transaction; a refusal leaves it unchanged.

    Raises Busy while a worker runs one of its events, and Conflict while it is held. Raises NotEnoughHosts or Conflict
    if the hosts are promised to others, and LimitExceeded beyond a limit of the project. Raises PartsFirst for a lease
    over child zones and cells.
    """
    require(caller, "leases:put")
    accounts.check(climate, changes.sharing)
    request = _Request(caller, lease_id, changes, version)
    try:
        changed = _carried_out(climate, request, dry_run=dry_run)
    except NotFound:
        if (lease := access.shared(climate, caller, lease_id)) is None:
            raise
        sharing_changes.check_prolongation(access.relation(caller, lease), lease, changes)
        # Limits and approval are those of the lease's project.
        request = replace(request, caller=replace(caller, project_id=lease.project_id), extender=caller)
        changed = _carried_out(climate, request, dry_run=dry_run)
    if not dry_run and not changes.allocates_nothing:
        changed = reservation_aggregates.announce(climate, changed)
    return access.visible(caller, changed)


def _carried_out(climate: Climate, request: "_Request", *, dry_run: bool) -> Lease:
    with shortages.explained(climate):
        return second_try.if_short(
            climate,
            second_try.reach(climate.settings, None, request.changes.end or LAST),
            lambda turn: enforcement.run_approved(
                climate, request.caller, _update, climate, replace(request, turn=turn), dry_run=dry_run
            ),
        )


@dataclass(frozen=True, slots=True)
class _Request:
    """A request to change a lease, if it has that version."""

    caller: Caller
    lease_id: UUID
    changes: Changes
    version: int | None
    turn: Turn = Turn.ONLY
    extender: Caller | None = None
    """User of another project, who may move the end to a later time; `caller` is then of the lease's project."""

    @property
    def author(self) -> Caller:
        return self.extender or self.caller


def _update(conn: Connection, patient: bool, gate: Approval, climate: Climate, request: _Request) -> Lease:
    caller, changes, free = request.caller, request.changes, request.changes.allocates_nothing
    grant = admission.without_limits(climate, caller) if free else admission.begin(conn, climate, caller, gate)
    losers = _losers(conn, climate, request) if request.turn is Turn.SECOND else ()
    lease = leases.get(conn, request.lease_id, project_id=scope(caller), lock=True)
    shortages.check_version(lease, request.version)
    now = climate.now(conn)
    if request.extender:
        sharing_changes.check_prolongation(access.relation(request.extender, lease), lease, changes)
    if not free or changes.sharing is not None:
        lease = unbegun_claims.take_back(conn, request.author, lease, now)
    grant = replace(grant, caller=request.author)
    own = () if free else sublease_changes.lock(conn, lease)
    change = Change(lease, changes, now, patient or request.turn is Turn.SECOND, request.turn, losers, own)
    return apply(conn, climate, grant, change)


@dataclass(frozen=True, slots=True)
class Change:
    """Changes of one lease, which is locked, at a time."""

    lease: Lease
    changes: Changes
    now: datetime
    patient: bool
    turn: Turn = Turn.ONLY
    losers: tuple[Lease, ...] = ()
    """Locked preemptible leases, of which hosts may be taken."""
    subleases: tuple[Lease, ...] = ()
    """Locked sub-leases of it."""


def apply(conn: Connection, climate: Climate, grant: Grant, change: Change) -> Lease:
    """Plan and record the changes. A refusal is raised before anything of it is written."""
    lease, now = change.lease, change.now
    liked = {r.id: grant.gate.preferred_hosts(index) for index, r in enumerate(lease.reservations)}
    losing = lease_shortening.reservations(change.losers)
    wish = _UpdateContext(lease, grant.caller, change.changes, now, change.patient, lease.period, liked, losing)
    facts = _facts(conn, climate, wish)
    if change.turn is Turn.FIRST:
        _refuse_fewer(conn, lease, facts)
    after = fold(facts, lease)
    longer = sublease_changes.prolonged(conn, climate, after, change.subleases, losing)
    needed = [*(hold for r in after.reservations for hold in r.holds), *(hold for one in longer for hold in one.holds)]
    lease_shortening.shorten(conn, climate, change.losers, lease.id, needed, now)
    before, lease = lease, grant.record(conn, now, lease, *facts) if facts else lease
    sublease_changes.prolong(conn, grant.caller, longer, now)
    sharing_changes.notify(conn, now, before, lease)
    wake_if_soon(conn, climate, lease, now)
    return lease


def _refuse_fewer(conn: Connection, lease: Lease, facts: Sequence[Fact]) -> None:
    """Raise FewerHosts if an ordinary reservation gets fewer hosts for preemptible ones."""
    if lease.parts or second_try.gives_way(r.spec for r in lease.reservations):
        return
    changes = [fact for fact in facts if isinstance(fact, ReservationChanged) and fact.missing is None and fact.holds]
    if changes:
        second_try.refuse_fewer(conn, _time_of_holds(changes), [(fact.spec, fact.holds) for fact in changes])


def _time_of_holds(changes: Sequence[ReservationChanged]) -> Period:
    """Return the time from the first start of a hold to the last end."""
    periods = [hold.during for fact in changes for hold in fact.holds]
    return Period(min(period.start for period in periods), max(period.end for period in periods))


def _losers(conn: Connection, climate: Climate, request: _Request) -> tuple[Lease, ...]:
    """Lock the lease and all preemptible leases that it may take hosts of; none if it is preemptible itself."""
    present = leases.get(conn, request.lease_id, project_id=scope(request.caller))
    if second_try.gives_way(r.spec for r in present.reservations):
        return ()
    during = second_try.reach(climate.settings, present.period.start, request.changes.end or present.period.end)
    early = min(during.start, request.changes.start or during.start)
    own = sublease.ids(present.reservations)
    return preemptible.lock(conn, replace(during, start=early), [request.lease_id, *own])


@dataclass(frozen=True, slots=True)
class _UpdateContext:
    lease: Lease
    caller: Caller
    changes: Changes
    now: datetime
    patient: bool
    period: Period
    """Period of the lease after the change."""
    liked: Mapping[UUID, tuple[int, ...]]
    """Preferred hosts of each reservation."""
    giving_way: frozenset[UUID] = frozenset()
    """Reservations of preemptible leases, whose hosts count as free."""
    specs: Mapping[UUID, Mapping[str, object]] = field(default_factory=dict)
    """Requirements of each reservation after the change."""


def _facts(conn: Connection, climate: Climate, wish: _UpdateContext) -> list[Fact]:
    lease, changes, now = wish.lease, wish.changes, wish.now
    named = changes.name is not None and changes.name != lease.name
    facts: list[Fact] = [LeaseRenamed(now, changes.name or "")] if named else []
    facts += _acknowledged(lease, now)
    facts += sharing_changes.facts(climate.settings, lease, changes.sharing, now)
    if changes.allocates_nothing:
        return facts
    holds.refuse_while_held(lease)
    waiting_list.refuse_while_waiting(lease)
    _refuse_unknown_reservations(lease, changes.reservations)
    _refuse_other_places(lease, changes)
    start = now if changes.start_now else changes.start
    period = limited(event_transitions.new_period(lease, start, now if changes.end_now else changes.end, now), climate)
    sublease_changes.check(climate, wish.caller, lease, changes, period)
    if lease.parts and period.end > lease.period.end and not changes.agreed:
        raise PartsFirst
    specs = {present.id: _spec(present, changes) for present in lease.reservations}
    wish = replace(wish, specs=specs, period=period)
    replanned = _all_replanned(conn, climate, wish)
    moved = _moved(conn, climate, wish, replanned)
    return [*facts, *moved, *replanned]


def _all_replanned(conn: Connection, climate: Climate, wish: _UpdateContext) -> list[ReservationChanged]:
    """Plan all reservations: in turn if that succeeds at once, otherwise together."""
    wanted = [_replanned(climate, wish, present) for present in wish.lease.reservations]
    return [fact for fact in joint_allocation.allocate(conn, wanted, partial(_beside, wish.lease)) if fact]


def _beside(lease: Lease, request: ResourceRequest, known: Sequence[ReservationChanged | None]) -> ResourceRequest:
    """Return a request for a reservation of the lease beside those that are planned already."""
    changed = [fact for fact in known if fact]
    return replace(
        request,
        taken=tuple(hold.host for fact in changed for hold in fact.holds),
        taken_addresses=tuple(hold.number for fact in changed for hold in fact.addresses or ()),
        taken_amounts=tuple(hold for fact in changed for hold in fact.amounts or ()),
        beside=tuple(fold(changed, lease).reservation(fact.reservation_id) for fact in changed),
    )


def _acknowledged(lease: Lease, now: datetime) -> list[Fact]:
    """Clear `resources_changed`, because the owner has seen it; `missing` stays."""
    changed = [r for r in lease.reservations if r.resources_changed]
    return [ReservationChanged(now, r.id, r.spec, r.holds, missing=r.missing, changed=False) for r in changed]


def _moved(
    conn: Connection, climate: Climate, wish: _UpdateContext, replanned: Sequence[ReservationChanged]
) -> list[Fact]:
    """Return the facts that move the lease's events, and plan one for resources to hand over."""
    lease, now, period = wish.lease, wish.now, wish.period
    times = _times(conn, climate, wish, fold(replanned, lease))
    moved = list(event_transitions.reschedule(lease, times, now, time_ordered_id))
    grown = any(_grown(lease.reservation(fact.reservation_id), fact) for fact in replanned)
    if _started(lease) and (grown or _reopened(lease, now, moved)):
        planned = event_transitions.adjustment(lease, now, time_ordered_id)
        moved = [LeaseRescheduled(now, period, (*_events(moved), planned))]
    if lease.parts and period != lease.period:
        events = event_transitions.sync(lease, now, now, time_ordered_id).events
        moved = [LeaseRescheduled(now, period, (*events, *_events(moved)))]
    return moved


def _times(conn: Connection, climate: Climate, wish: _UpdateContext, after: Lease) -> Times:
    """Return the times of the changed lease; hosts of one that has started are not prepared."""
    hosts = {host for r in after.reservations for host in r.hosts}
    has_started, settings = _started(wish.lease), climate.settings
    return Times(
        wish.period,
        wish.changes.before_end,
        prepare=None if has_started else host_power_on.due_at(conn, settings, wish.period, hosts, wish.now),
        grace=event_transitions.grace(r.spec for r in after.reservations),
    )


def _reopened(lease: Lease, now: datetime, moved: Sequence[Fact]) -> bool:
    """Return whether the lease leaves its grace period, in which it takes no new servers."""
    closed = next((e for e in lease.events if e.kind is EventKind.CLOSE and e.token), None)
    return closed is not None and any(event.id == closed.id for event in _events(moved))


def _events(facts: Sequence[Fact]) -> list[PlannedEvent]:
    """Return the events that these facts plan."""
    return [event for fact in facts if isinstance(fact, LeaseRescheduled) for event in fact.events]


def _refuse_unknown_reservations(lease: Lease, wanted: Sequence[Mapping[str, object]]) -> None:
    own = {str(r.id): r for r in lease.reservations}
    unknown = sorted(str(spec["id"]) for spec in wanted if str(spec["id"]) not in own)
    if unknown:
        raise InvalidInput(f"Please enter valid reservation IDs. Invalid reservation IDs are: {', '.join(unknown)}")
    for spec in wanted:
        if spec.get("resource_type", own[str(spec["id"])].resource_type) != own[str(spec["id"])].resource_type:
            raise Conflict("resource_type cannot be updated")


def _refuse_other_places(lease: Lease, changes: Changes) -> None:
    """Refuse other changes than of the end: parts in children follow only that."""
    if any(spec.keys() & {"zone", "cell", "across"} for spec in changes.reservations):
        raise Conflict("zone, cell and across of a reservation cannot be changed: create another lease")
    if lease.parts and (changes.reservations or changes.start is not None or changes.start_now):
        raise Conflict(
            "In a lease with parts in child zones or cells, only the name, end_date and before_end_date can be changed"
        )


def _spec(present: Reservation, changes: Changes) -> Mapping[str, object]:
    given = next((spec for spec in changes.reservations if str(spec["id"]) == str(present.id)), {})
    return {**present.spec, **{k: v for k, v in given.items() if k not in ("id", "resource_type")}}


def _resource_request(climate: Climate, wish: _UpdateContext, present: Reservation) -> ResourceRequest:
    return ResourceRequest(
        wish.specs[present.id],
        wish.period,
        wish.caller,
        climate.settings,
        present=present,
        active=_started(wish.lease),
        patient=wish.patient,
        grace_of_lease=event_transitions.grace(wish.specs.values()),
        liked=wish.liked[present.id],
        soon=host_power_on.is_soon(climate.settings, wish.period, wish.now),
        project_id=wish.lease.project_id,
        giving_way=wish.giving_way,
    )


def _replanned(
    climate: Climate, wish: _UpdateContext, present: Reservation
) -> AllocationRequest[ReservationChanged | None]:
    """Return what a reservation needs to be allocated anew; it is settled if nothing, or less time, is wanted."""

    def plugin() -> ResourcePlugin:
        return climate.plugins[present.resource_type]

    own, _ = sublease.split_by_pending(present.holds, present.sublets)
    ask = _resource_request(climate, wish, replace(present, holds=own))
    result = partial(_change, wish, present)
    if present.lies_elsewhere or wish.lease.parent or (present.sublets and not own):
        return AllocationRequest(plugin, ask, result, Settled(None, firm=not present.lies_elsewhere))
    settled = _settled(climate, wish, present, ask)
    if settled is not None:
        return AllocationRequest(plugin, _unchanged(ask, present), result, settled)
    is_part = present.parts or present.sublets
    return AllocationRequest(plugin, reservations.here(ask, len(own)) if is_part else ask, result)


def _settled(
    climate: Climate, wish: _UpdateContext, present: Reservation, request: ResourceRequest
) -> Settled[ReservationChanged | None] | None:
    """Return the result if nothing, or less time, is wanted; None if the reservation has to be allocated."""
    spec, grace = wish.specs[present.id], event_transitions.grace(wish.specs.values())
    if spec != present.spec:
        return None
    before = event_transitions.grace(r.spec for r in wish.lease.reservations)
    if wish.period == wish.lease.period and grace == before:
        return Settled(None, firm=_is_firm(climate, wish, present))
    if present.holds and (kept := _shrunk(present, request)):
        fact = ReservationChanged(wish.now, present.id, spec, kept)
        return Settled(fact, firm=_is_firm(climate, wish, present))
    return None


def _is_firm(climate: Climate, wish: _UpdateContext, present: Reservation) -> bool:
    """Return whether a reservation that is not to change keeps what it has, whatever the others need."""
    is_whole = not present.missing and not present.parts
    holds_any = present.holds or present.addresses or present.amounts
    return _started(wish.lease) or not is_whole or not holds_any or present.resource_type not in climate.plugins


def _unchanged(request: ResourceRequest, present: Reservation) -> ResourceRequest:
    """Return the request for as many hosts as the reservation has."""
    return reservations.here(request, len(present.holds)) if "max" in request.spec else request


def _change(wish: _UpdateContext, present: Reservation, got: Allocation) -> ReservationChanged | None:
    """Return the change of a reservation, or None if it stays as it is."""
    _, promised = sublease.split_by_pending(present.holds, present.sublets)
    if promised:
        got = replace(got, holds=tuple(sorted((*got.holds, *promised), key=lambda hold: hold.host)))
    if present.parts:
        got = replace(got, spec=wish.specs[present.id])
    elif "max" in got.spec:
        bounds = {name: value for name, value in wish.specs[present.id].items() if name in ("min", "max")}
        got = replace(got, spec={**got.spec, **bounds})
    before_it = (present.spec, present.holds, present.addresses, present.amounts)
    if (got.spec, got.holds, got.addresses, got.amounts) == before_it:
        return None
    return ReservationChanged(wish.now, present.id, got.spec, got.holds, addresses=got.addresses, amounts=got.amounts)


def _shrunk(present: Reservation, request: ResourceRequest) -> tuple[Hold, ...]:
    """Return the same hosts for a part of the time, which needs no allocation."""
    shorter = tuple(
        replace(hold, during=request.shared_window if hold.slots else request.window) for hold in present.holds
    )
    shorter = preemption.not_prolonged(present.holds, shorter, present.preemptions)
    inside = all(
        was.during.start <= now.during.start and now.during.end <= was.during.end
        for was, now in zip(present.holds, shorter, strict=True)
    )
    return shorter if inside else ()


def _started(lease: Lease) -> bool:
    return lease.touched or lease.event(EventKind.START).status is DONE


def _grown(present: Reservation, fact: ReservationChanged) -> bool:
    """Return whether there is more to hand over than before: other hosts or addresses, or more slots or amounts."""
    before = {(hold.host, hold.slots) for hold in present.holds}
    known = {hold.number for hold in present.addresses}
    more = any(hold.number not in known for hold in fact.addresses or ())
    amounts = {hold.number: hold.amount for hold in present.amounts}
    more = more or any(hold.amount > amounts.get(hold.number, 0) for hold in fact.amounts or ())
    return more or any((hold.host, hold.slots) not in before for hold in fact.holds)
