"""Execution of claimed events: IN_PROGRESS to DONE, or to ERROR."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

import structlog
from sqlalchemy import Connection
from structlog.contextvars import bound_contextvars

from climate.cloud import CloudError, Fenced, NotYet, Refused
from climate.context import Climate
from climate.database.connections import reading
from climate.domain.errors import UnreadableLease
from climate.domain.events import event_transitions, share_transitions
from climate.domain.events.event import Event
from climate.domain.events.event_transitions import AdditionalEvent, Verdict
from climate.domain.facts import Fact
from climate.domain.hosts import pools
from climate.domain.hosts.pools import LENT, HostPlace, Pool, Transition
from climate.domain.lease import Lease, Reservation
from climate.domain.policy import Caller, require
from climate.domain.status import EventKind, HoldState
from climate.plugin import ReservationContext, ResourcePlugin, not_loaded
from climate.service import transaction
from climate.service.events import host_handover, host_power_on
from climate.service.events.claim_heartbeat import ClaimHeartbeat
from climate.service.events.cloud_steps import Steps
from climate.service.events.event_dispatch import system
from climate.service.events.event_shares import Outcome, facts_of
from climate.service.hosts import lease_transitions
from climate.service.lease_tree import parts
from climate.service.leases.leases import is_soon
from climate.service.notifications import delivery, lease_events, notice_texts
from climate.store import inventories
from climate.store.hosts import pool_membership
from climate.store.leases import event_claims, leases
from climate.store.leases.event_claims import Limits, Message
from climate.store.leases.leases import ReadLease

log = structlog.get_logger(__name__)

HANDS_OVER = (EventKind.START, EventKind.ADJUST)
HOOKS: Mapping[str, str] = {
    **dict.fromkeys(HANDS_OVER, "on_start"),
    EventKind.BEFORE_END: "before_end",
    EventKind.CLOSE: "close",
    EventKind.END: "on_end",
}

WORKED_ON = "a later claim changed one of its resources"
"""Reason of a retry that follows soon, because the event met a later token than its own."""


@dataclass(frozen=True, slots=True)
class Run:
    """Run of one event by one worker."""

    climate: Climate
    lease: Lease
    event: Event
    token: int
    worker: str
    begun: datetime
    places: Mapping[int, HostPlace]
    promised: frozenset[int] = frozenset()
    """Hosts to be released that are allocated to another lease."""
    backends: Mapping[int, str] = field(default_factory=dict)
    """Names of the inventories in the cloud, by number."""

    @property
    def claim(self) -> Message:
        return Message(self.event.id, self.token)

    @property
    def reservations(self) -> tuple[Reservation, ...]:
        """Return the reservations of the run: all, or those of the type of its share."""
        share = share_transitions.claimed_share(self.event, self.token)
        own = self.lease.reservations
        return own if share is None else tuple(r for r in own if r.resource_type == share.resource_type)


@dataclass(frozen=True, slots=True)
class RunEffect:
    """Effect of a run on its lease, which is in its former state."""

    run: Run
    lease: Lease
    facts: Sequence[Fact]


def run(climate: Climate, event_id: UUID, token: int, worker: str) -> None:
    """Start, act, record. No transaction is open while the cloud works.

    Skips a duplicate or outdated message. An unforeseen exception leaves the event IN_PROGRESS: its claim expires
    and it is put back.
    """
    begun = _begin(climate, event_id, token, worker)
    if begun is None:
        log.info("message dropped: event already started or claimed by another worker", event_id=str(event_id))
        return
    with bound_contextvars(lease_id=str(begun.lease.id), event_id=str(event_id)):
        _work_on(begun)


def _work_on(begun: Run) -> None:
    climate, event = begun.climate, begun.event
    late = too_late(begun)
    if late is not None:
        settle(begun, [], late)
        return
    with ClaimHeartbeat(climate, [begun.claim]) as pulse:
        steps = Steps(climate, event.id, event.due_at, begun.token, partial(pulse.lost, event.id))
        outcome = _act(begun, steps)
    settle(begun, steps.done, outcome)


def too_late(begun: Run) -> Outcome | None:
    """Return the outcome of an event that makes sense no longer; None if it is to run."""
    event, why = begun.event, event_transitions.timeliness(begun.lease, begun.event, begun.begun)
    return (
        None if why is Verdict.RUN else lambda lease, now: [event_transitions.skip_or_miss(lease, event.id, why, now)]
    )


def _begin(climate: Climate, event_id: UUID, token: int, worker: str) -> Run | None:
    settings = climate.settings
    with climate.engine.begin() as conn:
        limits = Limits(timedelta(seconds=settings.claim_seconds), timedelta(seconds=settings.step_seconds))
        now = event_claims.start(conn, Message(event_id, token), worker, climate.other_time(conn), limits)
        if now is None:
            return None
        lease = leases.of_event(conn, event_id)
        held = pool_membership.of(conn, {host for r in lease.reservations for host in r.hosts})
        event = lease.event(event_id)
        promised = lease_transitions.promised_on(conn, lease) if event.kind is EventKind.END else frozenset()
        amounts = {hold.number for r in lease.reservations for hold in r.amounts}
        backends = inventories.backends(conn, amounts) if amounts else {}
    return Run(climate, lease, event, token, worker, now, held, promised, backends)


def _act(begun: Run, steps: Steps) -> Outcome:
    """Run the hook of every reservation; an error does not stop the others.

    The outcome is that of the worst one. A fenced run stops: if another worker has claimed the event, nothing is
    recorded. If a round has moved a host under a later token since the claim, the event is retried soon under a
    new one.
    """
    troubles: list[Exception] = []
    lacking: dict[UUID, list[HostPlace]] = {}
    # The cloud has nothing of a hold or of a lease that waits: their ends only change rows.
    for reservation in () if begun.event.kind in event_transitions.GATES else begun.reservations:
        try:
            lacking[reservation.id] = _hook(begun, steps, reservation)
            parts.act(begun.climate, begun.event.kind, begun.lease, reservation)
        except Fenced as error:
            log.warning("event stopped: later fencing token in use", reason=str(error))
            return outcome_of(begun, [NotYet(WORKED_ON)], {})
        except (CloudError, NotYet) as error:
            troubles.append(error)
    return outcome_of(begun, troubles, {number: result for number, result in lacking.items() if result})


def _hook(begun: Run, steps: Steps, reservation: Reservation) -> list[HostPlace]:
    """Call the plugin's hook for the event; return the hosts that could not be handed over and were left out."""
    plugin, kind = begun.climate.plugins.get(reservation.resource_type), begun.event.kind
    if reservation.lies_elsewhere or kind is EventKind.SYNC:
        return []
    if plugin is None:
        raise CloudError(not_loaded(reservation.resource_type))
    held = [begun.places[host] for host in reservation.hosts]
    if kind is EventKind.ADDITIONAL:
        _on_event(
            plugin, steps, reservation_context(begun, reservation, tuple(place.name for place in held)), begun.event
        )
        return []
    if kind is EventKind.PREPARE:
        host_power_on.ensure_powered_on(begun.climate, held)
        return []
    out = _unready_hosts(begun, reservation, held) if kind in HANDS_OVER else []
    # healing hands over to the degraded lease the hosts that it finds, or that return
    if held and len(out) == len(held):
        return out
    hook = getattr(plugin, HOOKS[kind])  # only this one: a plugin without grace periods has no `close`
    hook(steps, reservation_context(begun, reservation, tuple(place.name for place in held if place not in out)))
    return out


def _unready_hosts(begun: Run, reservation: Reservation, held: Sequence[HostPlace]) -> list[HostPlace]:
    """Bring up the hosts to hand over; return those to leave out for now.

    Raise NotYet while others are not up, and for late hosts as long as the event has not waited `wait_seconds`.
    """
    limit = timedelta(seconds=begun.climate.settings.wait_seconds)
    patient = not event_transitions.has_waited(begun.event, begun.begun, limit)
    return host_handover.ensure_ready(begun.climate, reservation, held, patient=patient)


def _on_event(plugin: ResourcePlugin, steps: Steps, context: ReservationContext, event: Event) -> None:
    """Call a plugin's hook for an additional event, if it has one."""
    hook = getattr(plugin, "on_event", None)
    if hook is not None:
        hook(steps, context, AdditionalEvent(event.name, event.due_at))


def reservation_context(begun: Run, reservation: Reservation, names: tuple[str, ...]) -> ReservationContext:
    lease = begun.lease
    started = lease.event(EventKind.START).is_done_for(reservation.resource_type)
    cleaned = lease_transitions.cleaning_time(begun.climate.settings) is not None
    lent = [place for place in begun.places.values() if (place.pool, place.reservation_id) == (LENT, reservation.id)]
    return ReservationContext(
        lease.id,
        lease.project_id,
        lease.period,
        reservation,
        names,
        begun.token,
        started=started,
        # Anything that a failed start may have left in the cloud was never handed over.
        after=pools.after(pools.on_end(reservation), cleaned) if started else Pool.RESERVATION,
        backends={hold.number: begun.backends[hold.number] for hold in reservation.amounts},
        shared_with=lease.sharing.projects,
        promised=tuple(place.name for place in lent if place.host in begun.promised),
        slots={begun.places[hold.host].name: hold.slots for hold in reservation.holds if hold.slots},
    )


def outcome_of(begun: Run, troubles: Sequence[Exception], lacking: Mapping[UUID, Sequence[HostPlace]]) -> Outcome:
    climate, event_id = begun.climate, begun.event.id
    limit = timedelta(seconds=climate.settings.wait_seconds)
    for kind in (Refused, CloudError, NotYet):
        said = "; ".join(str(trouble) or kind.__name__ for trouble in troubles if isinstance(trouble, kind))
        if not said:
            continue
        if kind is Refused:
            return lambda lease, now: [event_transitions.fail(lease, event_id, now, said)]
        if kind is CloudError:
            return lambda lease, now: [event_transitions.retry_or_fail(lease, event_id, now, said, climate.chance())]
        return lambda lease, now: [
            event_transitions.wait(lease, event_id, now, said, limit)
            or event_transitions.retry_or_fail(lease, event_id, now, f"waited too long: {said}", climate.chance())
        ]
    return lambda lease, now: [
        *event_transitions.finish(lease, event_id, now),
        *host_handover.marks(lease, lacking, now),
    ]


def settle(begun: Run, done: Sequence[str], outcome: Outcome) -> None:
    """Record the result, if this worker still claims the event; allocations are released here, last of all."""
    facts = transaction.run(begun.climate, _recorded, begun, done, outcome)
    if facts is None:
        log.warning("result refused: event claimed by another worker")
    else:
        log.info("event settled", kind=begun.event.kind, facts=[type(fact).__name__ for fact in facts])


def _recorded(conn: Connection, begun: Run, done: Sequence[str], outcome: Outcome) -> list[Fact] | None:
    """Return the recorded facts; None if another worker has claimed the event."""
    climate, event = begun.climate, begun.event
    lease = leases.holding(conn, event.id)
    settled = event_claims.settle_run(conn, event.id, begun.token, event.due_at, done)
    if settled is None:
        return None
    now = climate.other_time(conn) or settled
    facts = facts_of(conn, lease, begun.claim, begun.worker, outcome, now)
    write(conn, climate, [RunEffect(begun, lease, facts)], now)
    return facts


def write(conn: Connection, climate: Climate, effects: Sequence[RunEffect], now: datetime) -> None:
    """Record results of events and their consequences: moves of hosts, notifications, and the next due time.

    The leases are locked, each occurs once, and their claims are released.
    """
    author = system(effects[0].run.worker)
    # These facts come from the results only, not from rows, so the journal need not be folded for them.
    after = leases.record_many(conn, author, [(effect.lease, effect.facts) for effect in effects])
    transitions = [Transition(one.lease, lease, now, one.run.token) for one, lease in zip(effects, after, strict=True)]
    moved = lease_transitions.follow_all(conn, climate, author, transitions)
    notices = [
        notice
        for transition, own in zip(transitions, moved, strict=True)
        for notice in (
            *notice_texts.of_lease(transition),
            *notice_texts.of_hosts(own),
            *lease_events.of(climate.settings, transition.before, transition.after),
        )
    ]
    delivery.notify(conn, now, *notices)
    # Others may wait for it: the next lease of these hosts, which may be due already.
    if any(
        is_soon(climate, transition.after, now) or _gave_back(transition.before, transition.after)
        for transition in transitions
    ):
        event_claims.wake_poller(conn)


def _gave_back(before: Lease, after: Lease) -> bool:
    """Return whether resources were released that others may wait for."""
    was, now = (
        {r.id for r in lease.reservations if lease.hold_state_of(r) is HoldState.RELEASED} for lease in (before, after)
    )
    return any(r.id in now - was and (r.holds or r.addresses or r.amounts) for r in after.reservations)


def requeue(climate: Climate, caller: Caller, event_id: UUID) -> Lease:
    """Restart a failed event, as an operator requests."""
    require(caller, "events:requeue")
    with climate.engine.begin() as conn:
        now = climate.now(conn)
        lease = leases.holding(conn, event_id)
        after = leases.record(conn, caller, lease, event_transitions.requeue(lease, event_id, now))
        event_claims.wake_poller(conn)
    return after


def rows(
    climate: Climate, caller: Caller, status: str | None, limit: int, marker: UUID | None = None
) -> list[tuple[UUID, ReadLease]]:
    """Return ids of events of all projects with their leases, by due time; raise InvalidInput for an unknown marker.

    The error of a lease that this release cannot read stands in its place.
    """
    require(caller, "events:get")
    with reading(climate.engine) as conn:
        found = leases.events_with(conn, status, limit, marker)
    leases.readable(dict.fromkeys(lease for _, lease in found if isinstance(lease, UnreadableLease)))
    return found
