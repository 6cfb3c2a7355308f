"""What an intention means for a lease's events: present state and a wish in, facts out.

Events of a lease run one at a time, in the order of their kinds: an end never
overtakes a start that was put back.  Additional events wait for no other but
the end of a hold, and no other waits for them.  `due_at` is the promise and
moves only with the lease's dates; retries move `run_at`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from climate.domain import facts
from climate.domain.errors import Busy, IllegalMove, InvalidInput, InvalidPeriod
from climate.domain.facts import Fact, PlannedEvent
from climate.domain.lease import Event, Lease
from climate.domain.period import Period
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
"""Tries before an event is given up and waits for an operator (reliability.md 2.7).

The end of a hold asks nothing of the cloud and is never given up.
"""

WANTED_AGAIN = frozenset({EventKind.PREPARE, EventKind.BEFORE_END, EventKind.CLOSE})
"""Events that run once more when the lease's dates are moved after they ran."""

GIVING_BACK = frozenset({EventKind.EXPIRE, EventKind.END})
"""Events that run however late they are: others wait for what they give back."""

NEVER_TOO_LATE = GIVING_BACK | {EventKind.ADDITIONAL}
"""Events that run however late they are, for as long as the lease is there."""

FIRST_DELAY = timedelta(seconds=1)
LONGEST_DELAY = timedelta(seconds=300)
LATE = timedelta(seconds=60)
"""How much later than promised something is called late."""


class Verdict(StrEnum):
    RUN = "RUN"
    MISSED = "MISSED"
    SKIP = "SKIP"


EVENT_NAME = re.compile(r"\A[A-Za-z][A-Za-z0-9_.-]{0,63}\Z")
"""The event types that a client may use."""

EVENT_NAME_RULE = "1 to 64 letters, digits, '_', '.' or '-', with a letter first, such as notification"
MOST_EVENTS = 64
"""Additional events that one request may name."""


@dataclass(frozen=True, slots=True)
class AdditionalEvent:
    """An event that a client asks for beside those of the engine."""

    name: str
    due_at: datetime


@dataclass(frozen=True, slots=True)
class Times:
    """When the events of a lease are due; None where the lease has no such event."""

    period: Period
    before_end: datetime | None = None
    prepare: datetime | None = None
    grace: timedelta = timedelta(0)
    hold_until: datetime | None = None
    additional: tuple[AdditionalEvent, ...] = ()

    @property
    def due(self) -> Mapping[EventKind, datetime]:
        times = {
            EventKind.EXPIRE: self.hold_until,
            EventKind.PREPARE: self.prepare,
            EventKind.START: self.period.start,
            EventKind.BEFORE_END: self.before_end,
            EventKind.CLOSE: self.period.end if self.grace else None,
            EventKind.END: self.period.end + self.grace,
        }
        return {kind: due_at for kind, due_at in times.items() if due_at}


def plan(times: Times, new_id: Callable[[], UUID]) -> tuple[PlannedEvent, ...]:
    """The events of a new lease."""
    own = (PlannedEvent(new_id(), kind, due_at) for kind, due_at in times.due.items())
    more = (PlannedEvent(new_id(), EventKind.ADDITIONAL, one.due_at, one.name) for one in times.additional)
    return (*own, *more)


def grace(specs: Iterable[Mapping[str, Any]]) -> timedelta:
    """How long a lease with these reservations goes on after its period: it ends as a whole, so the longest counts."""
    return timedelta(seconds=max((int(spec.get("grace_period") or 0) for spec in specs), default=0))


def before_end_time(period: Period, wanted: datetime | None, default: timedelta) -> datetime | None:
    """When before_end_lease is due: as asked for, or `default` before the end, but not before the start."""
    if wanted is None:
        return max(period.start, period.end - default) if default else None
    if not period.start < wanted < period.end:
        raise InvalidInput(
            "Datetime is out of lease limits: before_end_date must lie between "
            f"{period.start:%Y-%m-%d %H:%M:%S} and {period.end:%Y-%m-%d %H:%M:%S}"
        )
    return wanted


def due(lease: Lease, now: datetime) -> list[Event]:
    """The events of the lease of which one may be claimed now, the most urgent first."""
    if any(event.status is IN_PROGRESS for event in lease.events):
        return []
    undone = [event for event in lease.events if event.status is UNDONE]
    first = [event for event in undone if event.kind is not EventKind.ADDITIONAL][:1]
    held = any(event.kind is EventKind.EXPIRE for event in first)
    additional = [event for event in undone if event.kind is EventKind.ADDITIONAL and not held]
    # At the same moment, what is named by the client comes before the end, and after the start.
    at_once = sorted([*first, *additional], key=lambda event: (event.due_at, lease.events.index(event)))
    return [event for event in at_once if event.run_at <= now]


def additional(
    named: Sequence[AdditionalEvent], period: Period, before_end: datetime | None
) -> tuple[AdditionalEvent, ...]:
    """Return the events that a client names, without those that every lease has.

    InvalidInput for a time outside the period, for the name of an event that only the engine plans, and for a start,
    a before_end or an end at another time than the dates of the lease say.
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


def claim(lease: Lease, event_id: UUID, token: int, now: datetime) -> facts.EventClaimed:
    _allow(lease.event(event_id), IN_PROGRESS)
    return facts.EventClaimed(event_id, now, token)


def verdict(lease: Lease, event: Event, now: datetime) -> Verdict:
    """Whether a claimed event still makes sense (reliability.md 2.8): ends always run, starts only before the end."""
    if event.kind in NEVER_TOO_LATE or now < _last_use(lease, event):
        return Verdict.RUN
    return Verdict.MISSED if event.kind is EventKind.START else Verdict.SKIP


def _last_use(lease: Lease, event: Event) -> datetime:
    """When it is too late for an event: what is not prepared at the start is so no more, and so on."""
    if event.kind is EventKind.PREPARE:
        return lease.event(EventKind.START).due_at
    return lease.event(EventKind.END).due_at if event.kind is EventKind.CLOSE else lease.period.end


def finish(lease: Lease, event_id: UUID, now: datetime) -> tuple[Fact, ...]:
    """The event's work is done; a lease that was to be deleted is gone with its end, and a hold with its expiry."""
    event = lease.event(event_id)
    _allow(event, DONE)
    outcome = "LATE" if now - event.due_at > LATE else "OK"
    if event.kind is EventKind.EXPIRE:
        return (facts.HoldExpired(event_id, now, outcome), *_given_up(lease, now, "the hold expired"))
    done = facts.EventFinished(event_id, now, outcome)
    if event.kind is not EventKind.END:
        return (done,)
    released = parts_released(lease, now)
    return (*released, done, facts.LeaseDeleted(now)) if lease.deleting else (*released, done)


def parts_released(lease: Lease, now: datetime) -> tuple[Fact, ...]:
    """The facts that nothing of the lease lies in a child any more."""
    left = [part for part in lease.parts if part.state is not PartState.RELEASED]
    return tuple(facts.LeasePartReleased(part.id, now) for part in left)


def pass_over(lease: Lease, event_id: UUID, why: Verdict, now: datetime) -> Fact:
    """The event came too late to be run."""
    if why is Verdict.MISSED:
        late = f"missed: the lease was over at {lease.period.end:%Y-%m-%d %H:%M:%S} UTC, before it could be started"
        return facts.EventFailed(event_id, now, MISSED, late)
    return facts.EventSkipped(event_id, now, SKIPPED, "the lease was over before it could be run")


def fall_short(lease: Lease, event_id: UUID, now: datetime, reason: str, chance: float) -> Fact:
    """The try came to nothing: another one later, or none when all are used up.

    `chance` in [0, 1) spreads the tries of many events: full jitter over a delay that doubles.
    """
    event = lease.event(event_id)
    if event.kind in MAX_ATTEMPTS and event.attempts >= MAX_ATTEMPTS[event.kind]:
        return fail(lease, event_id, now, reason, "EXHAUSTED")
    delay = min(LONGEST_DELAY, FIRST_DELAY * 2 ** min(event.attempts, 20)) * chance
    return _put_back(lease, event, now, now + delay, reason, spent=True)


def wait(lease: Lease, event_id: UUID, now: datetime, reason: str, limit: timedelta) -> Fact | None:
    """The cloud is at it: look again soon.  None when it has had longer than `limit`."""
    event = lease.event(event_id)
    if has_waited(event, now, limit):
        return None
    begun = event.first_claimed_at or now
    pause = min(timedelta(seconds=10), max(timedelta(seconds=0.2), (now - begun) / 4))
    return _put_back(lease, event, now, now + pause, reason, spent=False)


def has_waited(event: Event, now: datetime, limit: timedelta) -> bool:
    return event.first_claimed_at is not None and now - event.first_claimed_at > limit


def _put_back(lease: Lease, event: Event, now: datetime, run_at: datetime, reason: str, *, spent: bool) -> Fact:
    _allow(event, UNDONE)
    if event.kind not in NEVER_TOO_LATE:  # what is put back past its use must not hold up what follows
        run_at = min(run_at, max(now, _last_use(lease, event)))
    return facts.EventPutBack(event.id, now, run_at, reason, spent)


def fail(lease: Lease, event_id: UUID, now: datetime, reason: str, outcome: str = "FAILED") -> Fact:
    event = lease.event(event_id)
    _allow(event, ERROR)
    if event.kind is EventKind.EXPIRE:  # an event in ERROR does not keep those after it from being run
        raise IllegalMove("the end of a hold cannot be given up")
    return facts.EventFailed(event_id, now, outcome, reason)


def requeue(lease: Lease, event_id: UUID, now: datetime) -> Fact:
    """Another round of tries for an event that was given up.

    A start is not taken up again once its lease has ended, or has begun to.
    """
    event = lease.event(event_id)
    if event.status is not ERROR:
        raise IllegalMove(f"{event.kind} is {event.status}: only events in ERROR can be requeued")
    end = lease.event(EventKind.END)
    if event.kind not in NEVER_TOO_LATE and (lease.deleting or end.token or end.status is not UNDONE):
        raise IllegalMove(f"{event.kind} cannot be requeued: the lease has ended or is ending")
    return facts.EventRequeued(event_id, now)


def delete(lease: Lease, now: datetime) -> tuple[Fact, ...]:
    """Forget the lease: at once when nothing of it is in the cloud, else after its end has run."""
    if lease.deleting and lease.event(EventKind.END).status is not ERROR:
        return ()
    refuse_while_running(lease)
    return _given_up(lease, now, "the lease was deleted")


def _given_up(lease: Lease, now: datetime, reason: str) -> tuple[Fact, ...]:
    end = lease.event(EventKind.END)
    undone = [event for event in lease.events if event.status is UNDONE]
    unwanted = [facts.EventSkipped(event.id, now, CANCELLED, reason) for event in undone]
    if end.status is DONE or not (lease.touched or any(r.needs_an_end for r in lease.reservations)):
        return (*unwanted, *parts_released(lease, now), facts.LeaseDeleted(now))
    skipped = [fact for fact in unwanted if fact.event_id != end.id]
    again = [facts.EventRequeued(end.id, now)] if end.status is ERROR else []
    return (*skipped, *again, facts.DeletionRequested(now))


def refuse_while_running(lease: Lease) -> None:
    for event in lease.events:
        if event.status is IN_PROGRESS:
            raise Busy(f"Invalid lease status: {event.kind} is in progress, try again shortly")


def new_period(lease: Lease, start: datetime | None, end: datetime | None, now: datetime) -> Period:
    """The lease's period with the dates that are given; refused in the peer's words (reservation.md 1.1 L6-L8)."""
    minute = now.replace(second=0, microsecond=0)
    over = lease.period.end <= now and not lease.in_grace(now)
    if lease.event(EventKind.END).status is DONE or lease.deleting or over:
        raise InvalidInput("Terminated leases can only be renamed")
    started = lease.event(EventKind.START).status is not UNDONE or lease.touched or lease.period.start <= now
    start = lease.period.start if start is None else start
    if start != lease.period.start:
        if started:
            raise InvalidInput("Cannot modify the start date of already started leases")
        if start < minute:
            raise InvalidInput("Start date must be later than current date")
    end = lease.period.end if end is None else end
    if lease.in_grace(now) and end <= now:  # or "now", said again and again, would make the grace last for ever
        raise InvalidInput(
            f"The lease is over and ends for good at {lease.event(EventKind.END).due_at:%Y-%m-%d %H:%M:%S} UTC: "
            "prolong it to a later end date, or delete it"
        )
    if minute <= end < now:  # this very minute is "now" to clients that know no seconds
        end = now
    if end < now or end <= start:
        raise InvalidPeriod("End date must be later than current and start date")
    return Period(start, end)


def reschedule(lease: Lease, times: Times, now: datetime, new_id: Callable[[], UUID]) -> Sequence[Fact]:
    """Move the lease's dates and with them its undone events.

    Without `times.before_end` that event keeps its distance from the end.  What already
    ran and must run before a start or an end is wanted again when its new time is still ahead.
    """
    refuse_while_running(lease)
    period, before_end = times.period, times.before_end
    before = next((e for e in lease.events if e.kind is EventKind.BEFORE_END), None)
    if before_end is None and before is not None:
        before_end = max(period.start, period.end - (lease.period.end - before.due_at))
    elif before_end is not None:
        before_end = before_end_time(period, before_end, timedelta(0))
    by_kind: dict[EventKind, Event] = {e.kind: e for e in lease.events if e.kind is not EventKind.ADDITIONAL}
    moved = tuple(
        PlannedEvent(event.id if event else new_id(), kind, due_at)
        for kind, due_at in _due(replace(times, before_end=before_end), by_kind).items()
        if _moves(event := by_kind.get(kind), due_at, now)
    ) + tuple(_additional_moved(lease, period))
    if period == lease.period and not moved:
        return ()
    return (facts.LeaseRescheduled(now, period, moved),)


def _additional_moved(lease: Lease, period: Period) -> Iterator[PlannedEvent]:
    """Additional events keep their distance from the start, and do not go beyond the end."""
    for event in lease.events:
        if event.kind is EventKind.ADDITIONAL and event.status is UNDONE:
            due_at = min(period.end, event.due_at + (period.start - lease.period.start))
            if due_at != event.due_at:
                yield PlannedEvent(event.id, event.kind, due_at, event.name)


def _due(times: Times, known: Mapping[EventKind, Event]) -> Mapping[EventKind, datetime]:
    """When events are due; those that are not asked for any more but are there go along with the dates."""
    edges = {EventKind.PREPARE: times.period.start, EventKind.CLOSE: times.period.end}
    return {**{kind: at for kind, at in edges.items() if kind in known}, **times.due}


def adjustment(lease: Lease, now: datetime, new_id: Callable[[], UUID]) -> PlannedEvent:
    """The event, due now, that hands over what was added to a lease that had started."""
    known = next((event for event in lease.events if event.kind is EventKind.ADJUST), None)
    return PlannedEvent(known.id if known else new_id(), EventKind.ADJUST, now)


def sync(lease: Lease, now: datetime, due_at: datetime, new_id: Callable[[], UUID]) -> facts.LeaseRescheduled:
    """Plan the event that gives the lease's dates to its parts."""
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
