"""What an intention means for a lease's events: present state and a wish in, facts out.

Events of a lease run one at a time, in the order of their kinds: an end never
overtakes a start that was put back.  `due_at` is the promise and moves only
with the lease's dates; retries move `run_at`.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from climate.domain import facts
from climate.domain.errors import Busy, IllegalMove, InvalidInput, InvalidPeriod
from climate.domain.facts import Fact, PlannedEvent
from climate.domain.lease import Event, Lease
from climate.domain.period import Period
from climate.domain.status import CANCELLED, DONE, ERROR, EVENT_MOVES, IN_PROGRESS, UNDONE, EventKind, EventStatus

MAX_ATTEMPTS = {EventKind.START: 10, EventKind.ADJUST: 10, EventKind.BEFORE_END: 5, EventKind.END: 50}
"""Tries before an event is given up and waits for an operator (reliability.md 2.7)."""

FIRST_DELAY = timedelta(seconds=1)
LONGEST_DELAY = timedelta(seconds=300)
LATE = timedelta(seconds=60)
"""How much later than promised something is called late."""


class Verdict(StrEnum):
    RUN = "RUN"
    MISSED = "MISSED"
    SKIP = "SKIP"


def plan(period: Period, before_end: datetime | None, new_id: Callable[[], UUID]) -> tuple[PlannedEvent, ...]:
    """The events of a new lease; no before_end_lease without a time for it."""
    times = {EventKind.START: period.start, EventKind.BEFORE_END: before_end, EventKind.END: period.end}
    return tuple(PlannedEvent(new_id(), kind, due_at) for kind, due_at in times.items() if due_at)


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


def next_due(lease: Lease, now: datetime) -> Event | None:
    """The one event of the lease that may be claimed now, or None."""
    if any(event.status is IN_PROGRESS for event in lease.events):
        return None
    first = next((event for event in lease.events if event.status is UNDONE), None)
    return first if first and first.run_at <= now else None


def claim(lease: Lease, event_id: UUID, token: int, now: datetime) -> facts.EventClaimed:
    _allow(lease.event(event_id), IN_PROGRESS)
    return facts.EventClaimed(event_id, now, token)


def verdict(lease: Lease, event: Event, now: datetime) -> Verdict:
    """Whether a claimed event still makes sense (reliability.md 2.8): ends always run, starts only before the end."""
    if event.kind is EventKind.END or now < lease.period.end:
        return Verdict.RUN
    return Verdict.MISSED if event.kind is EventKind.START else Verdict.SKIP


def finish(lease: Lease, event_id: UUID, now: datetime) -> tuple[Fact, ...]:
    """The event's work is done; a lease that was to be deleted is gone with its end."""
    event = lease.event(event_id)
    _allow(event, DONE)
    done = facts.EventFinished(event_id, now, "LATE" if now - event.due_at > LATE else "OK")
    gone = event.kind is EventKind.END and lease.deleting
    return (done, facts.LeaseDeleted(now)) if gone else (done,)


def pass_over(lease: Lease, event_id: UUID, why: Verdict, now: datetime) -> Fact:
    """The event came too late to be run."""
    if why is Verdict.MISSED:
        late = f"missed: the lease was over at {lease.period.end:%Y-%m-%d %H:%M:%S} UTC, before it could be started"
        return facts.EventFailed(event_id, now, "MISSED", late)
    return facts.EventSkipped(event_id, now, "SKIPPED", "the lease was over before it could be run")


def fall_short(lease: Lease, event_id: UUID, now: datetime, reason: str, chance: float) -> Fact:
    """The try came to nothing: another one later, or none when all are used up.

    `chance` in [0, 1) spreads the tries of many events: full jitter over a delay that doubles.
    """
    event = lease.event(event_id)
    if event.attempts >= MAX_ATTEMPTS[event.kind]:
        return fail(lease, event_id, now, reason, "EXHAUSTED")
    delay = min(LONGEST_DELAY, FIRST_DELAY * 2 ** min(event.attempts, 20)) * chance
    return _put_back(lease, event, now, now + delay, reason, spent=True)


def wait(lease: Lease, event_id: UUID, now: datetime, reason: str, limit: timedelta) -> Fact | None:
    """The cloud is at it: look again soon.  None when it has had longer than `limit`."""
    event = lease.event(event_id)
    begun = event.first_claimed_at or now
    if now - begun > limit:
        return None
    pause = min(timedelta(seconds=10), max(timedelta(seconds=0.2), (now - begun) / 4))
    return _put_back(lease, event, now, now + pause, reason, spent=False)


def _put_back(lease: Lease, event: Event, now: datetime, run_at: datetime, reason: str, *, spent: bool) -> Fact:
    _allow(event, UNDONE)
    if event.kind is not EventKind.END:  # what is put back past the end must not hold up the end
        run_at = min(run_at, max(now, lease.period.end))
    return facts.EventPutBack(event.id, now, run_at, reason, spent)


def fail(lease: Lease, event_id: UUID, now: datetime, reason: str, outcome: str = "FAILED") -> Fact:
    _allow(lease.event(event_id), ERROR)
    return facts.EventFailed(event_id, now, outcome, reason)


def requeue(lease: Lease, event_id: UUID, now: datetime) -> Fact:
    """Another round of tries for an event that was given up.

    A start is not taken up again once its lease has ended, or has begun to.
    """
    event = lease.event(event_id)
    if event.status is not ERROR:
        raise IllegalMove(f"{event.kind} is {event.status}: only events in ERROR can be requeued")
    end = lease.event(EventKind.END)
    if event.kind is not EventKind.END and (lease.deleting or end.token or end.status is not UNDONE):
        raise IllegalMove(f"{event.kind} cannot be requeued: the lease has ended or is ending")
    return facts.EventRequeued(event_id, now)


def delete(lease: Lease, now: datetime) -> tuple[Fact, ...]:
    """Forget the lease: at once when nothing of it is in the cloud, else after its end has run."""
    if lease.deleting and lease.event(EventKind.END).status is not ERROR:
        return ()
    end = lease.event(EventKind.END)
    undone = [event for event in lease.events if event.status is UNDONE]
    unwanted = [facts.EventSkipped(event.id, now, CANCELLED, "the lease was deleted") for event in undone]
    if end.status is DONE or not (lease.touched or any(r.exists_before_start for r in lease.reservations)):
        return (*unwanted, facts.LeaseDeleted(now))
    refuse_while_running(lease)
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
    if lease.event(EventKind.END).status is DONE or lease.deleting or lease.period.end <= now:
        raise InvalidInput("Terminated leases can only be renamed")
    started = lease.event(EventKind.START).status is not UNDONE or lease.touched or lease.period.start <= now
    start = lease.period.start if start is None else start
    if start != lease.period.start:
        if started:
            raise InvalidInput("Cannot modify the start date of already started leases")
        if start < minute:
            raise InvalidInput("Start date must be later than current date")
    end = lease.period.end if end is None else end
    if minute <= end < now:  # this very minute is "now" to clients that know no seconds
        end = now
    if end < now or end <= start:
        raise InvalidPeriod("End date must be later than current and start date")
    return Period(start, end)


def reschedule(
    lease: Lease, period: Period, before_end: datetime | None, now: datetime, new_id: Callable[[], UUID]
) -> Sequence[Fact]:
    """Move the lease's dates and with them its undone events.

    A before_end_lease that already ran is wanted again when its new time is still ahead.
    """
    refuse_while_running(lease)
    before = next((e for e in lease.events if e.kind is EventKind.BEFORE_END), None)
    if before_end is None and before is not None:
        before_end = max(period.start, period.end - (lease.period.end - before.due_at))
    elif before_end is not None:
        before_end = before_end_time(period, before_end, timedelta(0))
    wanted = {EventKind.START: period.start, EventKind.BEFORE_END: before_end, EventKind.END: period.end}
    by_kind = {event.kind: event for event in lease.events}
    moved = tuple(
        PlannedEvent(event.id if event else new_id(), kind, due_at)
        for kind, due_at in wanted.items()
        if due_at and _moves(event := by_kind.get(kind), due_at, now)
    )
    if period == lease.period and not moved:
        return ()
    return (facts.LeaseRescheduled(now, period, moved),)


def adjustment(lease: Lease, now: datetime, new_id: Callable[[], UUID]) -> PlannedEvent:
    """The event, due now, that hands over what was added to a lease that had started."""
    known = next((event for event in lease.events if event.kind is EventKind.ADJUST), None)
    return PlannedEvent(known.id if known else new_id(), EventKind.ADJUST, now)


def _moves(event: Event | None, due_at: datetime, now: datetime) -> bool:
    if event is None:
        return True
    if event.due_at == due_at:
        return False
    return event.status is UNDONE or (event.kind is EventKind.BEFORE_END and due_at > now)


def _allow(event: Event, status: EventStatus) -> None:
    if status not in EVENT_MOVES[event.status]:
        raise IllegalMove(f"{event.kind} cannot go from {event.status} to {status}")
