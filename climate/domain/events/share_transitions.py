"""Shares of an event: its work for the reservations of one resource type, in leases with several types.

Each share is claimed under its own token and run by a worker of its type. The event is in progress as long as
a share is claimed. A share that fails is put back alone while others are claimed, otherwise the event is put
back as a whole.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from climate.domain.events import event_transitions
from climate.domain.events.event import Event
from climate.domain.events.event_share import OK, Share
from climate.domain.facts import (
    EventFailed,
    EventFinished,
    EventPutBack,
    EventSharePutBack,
    EventShareSettled,
    EventSkipped,
    Fact,
    ReservationChanged,
)
from climate.domain.lease import Lease, fold
from climate.domain.status import SKIPPED, EventKind

UNDIVIDED = frozenset({EventKind.WAIT_OVER, EventKind.EXPIRE})
"""Events that call no plugin."""


def pending_types(lease: Lease, event: Event) -> tuple[str, ...]:
    """Return the resource types for which the event still has to run as shares; empty if it runs as a whole."""
    types = lease.resource_types
    if len(types) < 2 or event.kind in UNDIVIDED:
        return ()
    settled = {share.resource_type for share in event.shares if share.outcome}
    return tuple(resource_type for resource_type in types if resource_type not in settled)


def claimed_share(event: Event, token: int) -> Share | None:
    """Return the share that was claimed under a token, or None if the whole event was."""
    return next((share for share in event.shares if share.token == token), None)


def with_share_only(lease: Lease, event_id: UUID, share: Share) -> Lease:
    """Return the lease as if its event consisted of this share only, without the attempts of other shares."""
    events = (replace(e, attempts=share.attempts + 1) if e.id == event_id else e for e in lease.events)
    return replace(lease, events=tuple(events))


def as_share_facts(share: Share, facts: Iterable[Fact]) -> Iterator[Fact]:
    """Convert facts about a whole event into facts about one share."""
    for fact in facts:
        match fact:
            case EventFinished(event_id, at, _):
                yield EventShareSettled(event_id, at, share.resource_type, OK)
            case EventSkipped(event_id, at, outcome, reason) | EventFailed(event_id, at, outcome, reason):
                yield EventShareSettled(event_id, at, share.resource_type, outcome, reason)
            case EventPutBack(event_id, at, run_at, reason, spent):
                yield EventSharePutBack(event_id, at, share.resource_type, run_at, reason, spent)
            case ReservationChanged():
                yield fact


def settle_together(lease: Lease, event_id: UUID, now: datetime, back: EventSharePutBack | None) -> tuple[Fact, ...]:
    """Return the facts about an event without claimed shares; `back` is its last share, if that was put back."""
    event = lease.event(event_id)
    if back is not None:
        return (EventPutBack(event_id, now, back.run_at, back.reason, back.spent),)
    if pending_types(lease, event):
        return (EventPutBack(event_id, now, now, "other reservations are still to be processed", spent=False),)
    failed = [share for share in event.shares if share.outcome not in (OK, SKIPPED)]
    if failed:
        said = "; ".join(f"{share.resource_type}: {share.reason}" for share in failed)
        return (event_transitions.fail(lease, event_id, now, said, failed[0].outcome or "FAILED"),)
    skipped = next((share for share in event.shares if share.outcome == SKIPPED), None)
    if skipped is not None:
        return (EventSkipped(event_id, now, SKIPPED, skipped.reason or ""),)
    return event_transitions.finish(lease, event_id, now)


def settled(lease: Lease, event_id: UUID, facts: list[Fact], now: datetime) -> list[Fact]:
    """Return the facts of the last share of an event with those about the event as a whole."""
    back = next((fact for fact in facts if isinstance(fact, EventSharePutBack)), None)
    return [*facts, *settle_together(fold(facts, lease), event_id, now, back)]
