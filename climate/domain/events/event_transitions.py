"""Transitions of a lease's events: state and request in, facts out.

Events of a lease run one at a time, in the order of their kinds: an end never overtakes a start that was put
back. Additional events wait only for the end of a hold or a wait, and no event waits for them. `due_at` is the promised
time and moves only with the lease's dates; retries move `run_at`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from climate.domain import facts
from climate.domain.errors import Busy, IllegalMove, InvalidInput, InvalidPeriod
from climate.domain.events.event import Event
from climate.domain.facts import Fact, PlannedEvent
from climate.domain.lease import Lease
from climate.domain.period import Period
from climate.domain.reservation_spec import Spec
from climate.domain.sharing import sublease
from climate.domain.status import (
    CANCELLED,
    DONE,
    ERROR,
    EVENT_MOVES,
    IN_PROGRESS,
    MISSED,
    SKIPPED,
    UNDONE,
    EventKind,
    EventStatus,
    PartState,
)

MAX_ATTEMPTS = {
    EventKind.SYNC: 20,
    EventKind.PREPARE: 10,
    EventKind.START: 10,
    EventKind.ADJUST: 10,
    EventKind.ADDITIONAL: 5,
    EventKind.BEFORE_END: 5,
    EventKind.CLOSE: 10,
    EventKind.END: 50,
}
"""Attempts before an event fails and waits for an operator.

The end of a hold and the end of a wait call no cloud and never fail.
"""

WANTED_AGAIN = frozenset({EventKind.PREPARE, EventKind.BEFORE_END, EventKind.CLOSE})
"""Events that run again when the lease's dates are moved after they ran."""

GIVING_BACK = frozenset({EventKind.EXPIRE, EventKind.END})
"""Events that run however late they are, because others wait for the resources that they release."""

GATES = frozenset({EventKind.WAIT_OVER, EventKind.EXPIRE})
"""Events that no other event of the lease runs beside, not even additional ones."""

NEVER_TOO_LATE = GIVING_BACK | {EventKind.WAIT_OVER, EventKind.ADDITIONAL}
"""Events that run however late they are, as long as the lease exists."""

FIRST_DELAY = timedelta(seconds=1)
LONGEST_DELAY = timedelta(seconds=300)
LATE = timedelta(seconds=60)
"""Delay beyond which an event counts as late."""


class Verdict(StrEnum):
    RUN = "RUN"
    MISSED = "MISSED"
    SKIP = "SKIP"


EVENT_NAME = re.compile(r"\A[A-Za-z][A-Za-z0-9_.-]{0,63}\Z")
"""Event types that a client may use."""

EVENT_NAME_RULE = "1 to 64 letters, digits, '_', '.' or '-', with a letter first, such as notification"
MOST_EVENTS = 64
"""Maximum number of additional events in one request."""


@dataclass(frozen=True, slots=True)
class AdditionalEvent:
    """Event that a client requests beside those of the engine."""

    name: str
    due_at: datetime


@dataclass(frozen=True, slots=True)
class Times:
    """Due times of the events of a lease; None if the lease has no such event."""

    period: Period
    before_end: datetime | None = None
    prepare: datetime | None = None
    grace: timedelta = timedelta(0)
    hold_until: datetime | None = None
    additional: tuple[AdditionalEvent, ...] = ()
    wait_until: datetime | None = None

    @property
    def due(self) -> Mapping[EventKind, datetime]:
        times = {
            EventKind.WAIT_OVER: self.wait_until,
            EventKind.EXPIRE: self.hold_until,
            EventKind.PREPARE: self.prepare,
            EventKind.START: self.period.start,
            EventKind.BEFORE_END: self.before_end,
            EventKind.CLOSE: self.period.end if self.grace else None,
            EventKind.END: self.period.end + self.grace,
        }
        return {kind: due_at for kind, due_at in times.items() if due_at}


def plan(times: Times, new_id: Callable[[], UUID]) -> tuple[PlannedEvent, ...]:
    """Return the events of a new lease."""
    own = (PlannedEvent(new_id(), kind, due_at) for kind, due_at in times.due.items())
    more = (PlannedEvent(new_id(), EventKind.ADDITIONAL, one.due_at, one.name) for one in times.additional)
    return (*own, *more)


def grace(specs: Iterable[Spec]) -> timedelta:
    """Return the grace time of a lease with these reservations: the longest one, because it ends as a whole."""
    return timedelta(seconds=max((int(spec.get("grace_period") or 0) for spec in specs), default=0))


def before_end_time(period: Period, wanted: datetime | None, default: timedelta) -> datetime | None:
    """Return the due time of before_end_lease: as requested, or `default` before the end, but not before the start."""
    if wanted is None:
        return max(period.start, period.end - default) if default else None
    if not period.start < wanted < period.end:
        raise InvalidInput(
            "Datetime is out of lease limits: before_end_date must lie between "
            f"{period.start:%Y-%m-%d %H:%M:%S} and {period.end:%Y-%m-%d %H:%M:%S}"
        )
    return wanted


def due(lease: Lease, now: datetime) -> list[Event]:
    """Return the events of the lease of which one may be claimed now, most urgent first."""
    if any(event.status is IN_PROGRESS for event in lease.events):
        return []
    # At the same time, an additional event comes before the end and after the start.
    at_once = sorted(_at_once(lease), key=lambda event: (event.due_at, lease.events.index(event)))
    return [event for event in at_once if event.run_at <= now]


def _at_once(lease: Lease) -> list[Event]:
    """Return the next event of the engine, and the additional ones unless it is a gate."""
    undone = [event for event in lease.events if event.status is UNDONE]
    at_once = [event for event in undone if event.kind is not EventKind.ADDITIONAL][:1]
    if not at_once or at_once[0].kind not in GATES:
        at_once += [event for event in undone if event.kind is EventKind.ADDITIONAL]
    return at_once


def additional(
    named: Sequence[AdditionalEvent], period: Period, before_end: datetime | None
) -> tuple[AdditionalEvent, ...]:
    """Return the additional events that a client names, without those that every lease has.

    Raises InvalidInput for a time outside the period, and for the name of an event that only the engine plans. Raises
    InvalidInput also for a start, before_end or end at a time other than that of the lease.
    """
    own = {EventKind.START: period.start, EventKind.BEFORE_END: before_end, EventKind.END: period.end}
    for one in named:
        if not period.start <= one.due_at <= period.end:
            raise InvalidInput(
                f"event_date of {one.name} must lie between {period.start:%Y-%m-%d %H:%M:%S} "
                f"and {period.end:%Y-%m-%d %H:%M:%S}, not at {one.due_at:%Y-%m-%d %H:%M:%S}"
            )
        if one.name in set(EventKind) and own.get(EventKind(one.name)) != one.due_at:
            raise InvalidInput(
                f"event_type {one.name} belongs to the lease itself, not at {one.due_at:%Y-%m-%d %H:%M:%S}: "
                "set start_date, end_date or before_end_date, or choose another event_type"
            )
    return tuple(one for one in named if one.name not in set(EventKind))


def started(lease: Lease) -> bool:
    """Return whether the cloud may have been asked to start it: new resources then need an event for the handover."""
    return lease.touched or is_active(lease)


def is_active(lease: Lease) -> bool:
    return lease.event(EventKind.START).carried_out


def claim(lease: Lease, event_id: UUID, token: int, now: datetime) -> facts.EventClaimed:
    _allow(lease.event(event_id), IN_PROGRESS)
    return facts.EventClaimed(event_id, now, token)


def timeliness(lease: Lease, event: Event, now: datetime) -> Verdict:
    """Return whether a claimed event still makes sense: ends always run, starts only before the end."""
    if event.kind in NEVER_TOO_LATE or now < _last_use(lease, event):
        return Verdict.RUN
    return Verdict.MISSED if event.kind is EventKind.START else Verdict.SKIP


def _last_use(lease: Lease, event: Event) -> datetime:
    """Return the time after which an event is too late."""
    if event.kind is EventKind.PREPARE:
        return lease.event(EventKind.START).due_at
    return lease.event(EventKind.END).due_at if event.kind is EventKind.CLOSE else lease.period.end


def finish(lease: Lease, event_id: UUID, now: datetime) -> tuple[Fact, ...]:
    """Return the facts of a successful event. A lease to be deleted is gone with its end, others with the end
    of their hold or wait.
    """
    event = lease.event(event_id)
    _allow(event, DONE)
    outcome = "LATE" if now - event.due_at > LATE else "OK"
    if event.kind is EventKind.EXPIRE:
        return (facts.HoldExpired(event_id, now, outcome), *_deletion(lease, now, "the hold expired"))
    if event.kind is EventKind.WAIT_OVER:
        return (facts.WaitExpired(event_id, now, outcome), *_deletion(lease, now, "the wait was over"))
    done = facts.EventFinished(event_id, now, outcome)
    if event.kind is not EventKind.END:
        return (done,)
    released = parts_released(lease, now)
    return (*released, done, facts.LeaseDeleted(now)) if lease.deleting else (*released, done)


def parts_released(lease: Lease, now: datetime) -> tuple[Fact, ...]:
    """Return the facts that release all parts of the lease in children."""
    left = [part for part in lease.parts if part.state is not PartState.RELEASED]
    return tuple(facts.LeasePartReleased(part.id, now) for part in left)


def skip_or_miss(lease: Lease, event_id: UUID, why: Verdict, now: datetime) -> Fact:
    """Return the fact that skips an event which came too late."""
    if why is Verdict.MISSED:
        late = f"missed: the lease was over at {lease.period.end:%Y-%m-%d %H:%M:%S} UTC, before it could be started"
        return facts.EventFailed(event_id, now, MISSED, late)
    return facts.EventSkipped(event_id, now, SKIPPED, "the lease was over before it could be run")


def retry_or_fail(lease: Lease, event_id: UUID, now: datetime, reason: str, chance: float) -> Fact:
    """Return the facts of a failed attempt: a retry later, or a failure when no attempt is left.

    The delay doubles with each attempt. `chance` in [0, 1) spreads retries of many events (full jitter).
    """
    event = lease.event(event_id)
    if event.kind in MAX_ATTEMPTS and event.attempts >= MAX_ATTEMPTS[event.kind]:
        return fail(lease, event_id, now, reason, "EXHAUSTED")
    delay = min(LONGEST_DELAY, FIRST_DELAY * 2 ** min(event.attempts, 20)) * chance
    return _requeued(lease, event, now, now + delay, reason, spent=True)


def wait(lease: Lease, event_id: UUID, now: datetime, reason: str, limit: timedelta) -> Fact | None:
    """Put the event back while the cloud is still working; None if that took longer than `limit`."""
    event = lease.event(event_id)
    if has_waited(event, now, limit):
        return None
    begun = event.first_claimed_at or now
    pause = min(timedelta(seconds=10), max(timedelta(seconds=0.2), (now - begun) / 4))
    return _requeued(lease, event, now, now + pause, reason, spent=False)


def has_waited(event: Event, now: datetime, limit: timedelta) -> bool:
    return event.first_claimed_at is not None and now - event.first_claimed_at > limit


def _requeued(lease: Lease, event: Event, now: datetime, run_at: datetime, reason: str, *, spent: bool) -> Fact:
    _allow(event, UNDONE)
    if event.kind not in NEVER_TOO_LATE:  # an event that was put back past its use must not delay those after it
        run_at = min(run_at, max(now, _last_use(lease, event)))
    return facts.EventPutBack(event.id, now, run_at, reason, spent)


def fail(lease: Lease, event_id: UUID, now: datetime, reason: str, outcome: str = "FAILED") -> Fact:
    event = lease.event(event_id)
    _allow(event, ERROR)
    if event.kind in GATES:  # an event in ERROR does not delay those after it
        raise IllegalMove("the end of a hold or of a wait cannot be given up")
    return facts.EventFailed(event_id, now, outcome, reason)


def requeue(lease: Lease, event_id: UUID, now: datetime) -> Fact:
    """Return the facts that restart a failed event.

    A start is not restarted once its lease has ended, or begun to end.
    """
    event = lease.event(event_id)
    if event.status is not ERROR:
        raise IllegalMove(f"{event.kind} is {event.status}: only events in ERROR can be requeued")
    end = lease.event(EventKind.END)
    if event.kind not in NEVER_TOO_LATE and (lease.deleting or end.token or end.status is not UNDONE):
        raise IllegalMove(f"{event.kind} cannot be requeued: the lease has ended or is ending")
    return facts.EventRequeued(event_id, now)


def delete(lease: Lease, now: datetime) -> tuple[Fact, ...]:
    """Delete the lease: at once if the cloud has nothing of it, otherwise after its end has run."""
    if lease.deleting and lease.event(EventKind.END).status is not ERROR:
        return ()
    refuse_while_running(lease)
    return _deletion(lease, now, "the lease was deleted")


def _deletion(lease: Lease, now: datetime, reason: str) -> tuple[Fact, ...]:
    end = lease.event(EventKind.END)
    undone = [event for event in lease.events if event.status is UNDONE]
    unwanted = [facts.EventSkipped(event.id, now, CANCELLED, reason) for event in undone]
    if end.status is DONE or not (lease.touched or any(r.needs_an_end for r in lease.reservations)):
        return (*unwanted, *parts_released(lease, now), facts.LeaseDeleted(now))
    skipped = [fact for fact in unwanted if fact.event_id != end.id]
    again = [facts.EventRequeued(end.id, now)] if end.status is ERROR else []
    return (*skipped, *again, facts.DeletionRequested(now))


def is_ending(lease: Lease, now: datetime) -> bool:
    """Return whether the lease is over, or its end is due, has begun or has failed."""
    end = lease.event(EventKind.END)
    return lease.gone or lease.deleting or end.status is not UNDONE or end.token > 0 or end.due_at <= now


def is_over(lease: Lease) -> bool:
    """Return whether the lease is deleted, or its end is done."""
    return lease.gone or lease.event(EventKind.END).status is DONE


def open_subleases(lease: Lease) -> dict[UUID, int]:
    """Return the sub-leases of the lease with their numbers of hosts, oldest first; none of a lease that is over."""
    return {} if is_over(lease) else sublease.counts(lease.reservations)


def is_running(lease: Lease) -> bool:
    """Return whether an event of the lease is in progress."""
    return any(event.status is IN_PROGRESS for event in lease.events)


def refuse_while_running(lease: Lease) -> None:
    for event in lease.events:
        if event.status is IN_PROGRESS:
            raise Busy(f"Invalid lease status: {event.kind} is in progress, try again shortly")


def _new_start(lease: Lease, start: datetime, now: datetime) -> datetime:
    if start == lease.period.start:
        return start
    if lease.event(EventKind.START).status is not UNDONE or lease.touched or lease.period.start <= now:
        raise InvalidInput("Cannot modify the start date of already started leases")
    if start < now.replace(second=0, microsecond=0):
        raise InvalidInput("Start date must be later than current date")
    return start


def new_period(lease: Lease, start: datetime | None, end: datetime | None, now: datetime) -> Period:
    """Return the lease's period with the given dates; refuse invalid ones with Blazar's messages."""
    over = lease.period.end <= now and not lease.in_grace(now)
    if lease.event(EventKind.END).status is DONE or lease.deleting or over:
        raise InvalidInput("Terminated leases can only be renamed")
    start = _new_start(lease, lease.period.start if start is None else start, now)
    end = _new_end(lease, lease.period.end if end is None else end, now)
    if end < now or end <= start:
        raise InvalidPeriod("End date must be later than current and start date")
    return Period(start, end)


def _new_end(lease: Lease, end: datetime, now: datetime) -> datetime:
    """Return the end that a client means; refuse one that would prolong the grace of a lease that is over."""
    if lease.in_grace(now) and end <= now:  # repeating "now" again and again would prolong the grace forever
        raise InvalidInput(
            f"The lease is over and ends for good at {lease.event(EventKind.END).due_at:%Y-%m-%d %H:%M:%S} UTC: "
            "prolong it to a later end date, or delete it"
        )
    # Clients without seconds mean "now" by the current minute.
    return now if now.replace(second=0, microsecond=0) <= end < now else end


def reschedule(lease: Lease, times: Times, now: datetime, new_id: Callable[[], UUID]) -> Sequence[Fact]:
    """Move the lease's dates, and with them its pending events.

    Without `times.before_end` that event keeps its distance from the end. An event that already ran and must run
    before a start or an end runs again if its new time is still ahead.
    """
    refuse_while_running(lease)
    period, before_end = times.period, _moved_before_end(lease, times)
    by_kind: dict[EventKind, Event] = {e.kind: e for e in lease.events if e.kind is not EventKind.ADDITIONAL}
    moved = tuple(
        PlannedEvent(event.id if event else new_id(), kind, due_at)
        for kind, due_at in _due(replace(times, before_end=before_end), by_kind).items()
        if _moves(event := by_kind.get(kind), due_at, now)
    ) + tuple(_additional_moved(lease, period))
    if period == lease.period and not moved:
        return ()
    return (facts.LeaseRescheduled(now, period, moved),)


def _moved_before_end(lease: Lease, times: Times) -> datetime | None:
    """Return the new time of before_end_lease; None if the lease has none and gets none."""
    period = times.period
    if times.before_end is not None:
        return before_end_time(period, times.before_end, timedelta(0))
    present = next((e for e in lease.events if e.kind is EventKind.BEFORE_END), None)
    return max(period.start, period.end - (lease.period.end - present.due_at)) if present else None


def _additional_moved(lease: Lease, period: Period) -> Iterator[PlannedEvent]:
    """Return additional events at the same distance from the start, but not beyond the end."""
    for event in lease.events:
        if event.kind is EventKind.ADDITIONAL and event.status is UNDONE:
            due_at = min(period.end, event.due_at + (period.start - lease.period.start))
            if due_at != event.due_at:
                yield PlannedEvent(event.id, event.kind, due_at, event.name)


def _due(times: Times, known: Mapping[EventKind, Event]) -> Mapping[EventKind, datetime]:
    """Return the due times of events; events that are no longer requested move with the dates."""
    edges = {EventKind.PREPARE: times.period.start, EventKind.CLOSE: times.period.end}
    return {**{kind: at for kind, at in edges.items() if kind in known}, **times.due}


def adjustment(lease: Lease, now: datetime, new_id: Callable[[], UUID]) -> PlannedEvent:
    """Return an event, due now, that hands over additions to a running lease."""
    known = next((event for event in lease.events if event.kind is EventKind.ADJUST), None)
    return PlannedEvent(known.id if known else new_id(), EventKind.ADJUST, now)


def sync(lease: Lease, now: datetime, due_at: datetime, new_id: Callable[[], UUID]) -> facts.LeaseRescheduled:
    """Plan the event that sends the lease's dates to its parts."""
    known = next((event for event in lease.events if event.kind is EventKind.SYNC), None)
    planned = PlannedEvent(known.id if known else new_id(), EventKind.SYNC, due_at)
    return facts.LeaseRescheduled(now, lease.period, (planned,))


def _moves(event: Event | None, due_at: datetime, now: datetime) -> bool:
    if event is None:
        return True
    if event.due_at == due_at:
        return False
    return event.status is UNDONE or (event.kind in WANTED_AGAIN and due_at > now)


def _allow(event: Event, status: EventStatus) -> None:
    if status not in EVENT_MOVES[event.status]:
        raise IllegalMove(f"{event.kind} cannot go from {event.status} to {status}")
