"""Event of a lease, and the changes that each fact makes to it."""

from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from climate.domain import facts
from climate.domain.events import event_share
from climate.domain.status import (
    CANCELLED,
    DONE,
    ERROR,
    IN_PROGRESS,
    RENEWED,
    SKIPPED,
    UNDONE,
    EventKind,
    EventStatus,
)

ClaimFact = facts.EventClaimed | facts.EventClaimTakenBack
ShareFact = facts.EventShareSettled | facts.EventSharePutBack
HoldFact = facts.HoldConfirmed | facts.HoldRenewed | facts.HoldExpired
WaitFact = facts.LeaseGranted | facts.WaitExpired
EndFact = facts.EventFinished | facts.EventSkipped | facts.EventFailed
RetryFact = facts.EventPutBack | facts.EventRequeued

EventFact = ClaimFact | ShareFact | HoldFact | WaitFact | EndFact | RetryFact
"""Facts about one event, which they name by `event_id`."""


@dataclass(frozen=True, slots=True)
class Event:
    """Scheduled action of a lease. `due_at` is the promised time; `run_at` is the time of the next attempt."""

    id: UUID
    kind: EventKind
    due_at: datetime
    run_at: datetime
    status: EventStatus = UNDONE
    outcome: str | None = None
    """OK or LATE, CANCELLED or SKIPPED, FAILED, EXHAUSTED or MISSED."""
    reason: str | None = None
    attempts: int = 0
    token: int = 0
    """Fencing token of its latest claim; 0: never claimed."""
    first_claimed_at: datetime | None = None
    updated_at: datetime | None = None
    name: str = ""
    """Client's type of an additional event."""
    shares: tuple[event_share.Share, ...] = ()
    """Shares by resource type, once the event was claimed, if the lease has several types."""

    @property
    def type(self) -> str:
        return self.name or self.kind

    @property
    def stage(self) -> EventStatus:
        """Return its status; an event that was begun and put back to wait counts as in progress."""
        return IN_PROGRESS if self.status is UNDONE and self.first_claimed_at else self.status

    @property
    def carried_out(self) -> bool:
        """Return whether its work was done. A cancelled or skipped event is DONE too, but without work."""
        return self.status is DONE and self.outcome not in (CANCELLED, SKIPPED)

    def is_done_for(self, resource_type: str) -> bool:
        """Return whether its work was done for the reservations of that type, even if other types are in progress."""
        settled = any((share.resource_type, share.outcome) == (resource_type, event_share.OK) for share in self.shares)
        return settled or self.carried_out


def event_after(event: Event, fact: EventFact) -> Event:
    """Return the event after a fact about it."""
    return replace(_moved(event, fact), updated_at=fact.at)


def _moved(event: Event, fact: EventFact) -> Event:
    if isinstance(fact, ClaimFact):
        return _claim_moved(event, fact)
    if isinstance(fact, ShareFact):
        return _share_moved(event, fact)
    if isinstance(fact, HoldFact):
        return _expiry_moved(event, fact)
    if isinstance(fact, WaitFact):
        return _wait_over(event, fact)
    if isinstance(fact, RetryFact):
        return _to_run_again(event, fact)
    return _ended(event, fact)


def _claim_moved(event: Event, fact: ClaimFact) -> Event:
    """Open a claim, or withdraw it before any worker has begun, which restores the event."""
    if isinstance(fact, facts.EventClaimTakenBack):
        first, attempts = fact.first_claimed_at, event.attempts - 1
        return replace(event, status=UNDONE, token=fact.token, first_claimed_at=first, attempts=attempts)
    return replace(
        event,
        status=IN_PROGRESS,
        token=fact.token,
        attempts=event.attempts + 1,
        first_claimed_at=event.first_claimed_at or fact.at,
        shares=event_share.claimed(event.shares, fact.shares),
    )


def _share_moved(event: Event, fact: ShareFact) -> Event:
    """Apply a fact to a share and, if it has a reason, to the reason of its event."""
    shares, said = event_share.moved(event.shares, fact)
    return replace(event, shares=shares, reason=said or event.reason)


def _expiry_moved(event: Event, fact: HoldFact) -> Event:
    match fact:
        case facts.HoldConfirmed():
            return replace(event, status=DONE, outcome=CANCELLED, reason="the hold was confirmed")
        case facts.HoldRenewed():
            return replace(event, due_at=fact.until, run_at=fact.until, outcome=RENEWED)
        case facts.HoldExpired():
            return replace(event, status=DONE, outcome=fact.outcome, reason="the hold was not confirmed in time")


def _wait_over(event: Event, fact: WaitFact) -> Event:
    if isinstance(fact, facts.WaitExpired):
        return replace(event, status=DONE, outcome=fact.outcome, reason="nothing was free in time")
    return replace(event, status=DONE, outcome=CANCELLED, reason="the lease got its resources")


def _to_run_again(event: Event, fact: RetryFact) -> Event:
    """Put an event back to wait, or let an administrator's order begin it anew, without the shares that are done."""
    if isinstance(fact, facts.EventPutBack):
        attempts = event.attempts - (not fact.spent)
        return replace(event, status=UNDONE, run_at=fact.run_at, reason=fact.reason, attempts=attempts)
    done = tuple(share for share in event.shares if share.outcome == event_share.OK)
    anew = replace(event, attempts=0, first_claimed_at=None, outcome=None, reason=None, shares=done)
    return replace(anew, status=UNDONE, run_at=fact.at)


def _ended(event: Event, fact: EndFact) -> Event:
    status = ERROR if isinstance(fact, facts.EventFailed) else DONE
    reason = None if isinstance(fact, facts.EventFinished) else fact.reason
    return replace(event, status=status, outcome=fact.outcome, reason=reason)
