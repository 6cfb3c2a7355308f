"""Dispatch of due events to workers, and rescue of events whose worker was lost: UNDONE to IN_PROGRESS, and back."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import accumulate
from typing import TypeVar
from uuid import UUID

import structlog
from sqlalchemy import Connection

from climate.context import Climate
from climate.database.connections import reading
from climate.domain.events import event_transitions, share_transitions
from climate.domain.events.event_transitions import Verdict
from climate.domain.facts import ClaimedShare, Fact
from climate.domain.hosts.pools import Transition
from climate.domain.lease import Lease, fold
from climate.domain.policy import Caller
from climate.domain.status import EventKind
from climate.service import round_steps
from climate.service.events.event_shares import QUEUE, Outcome, facts_of, queue_of
from climate.service.leases import broken_leases
from climate.service.notifications import delivery, notice_texts
from climate.store.leases import claim_batches, due_events, event_claims, leases, queue_limits
from climate.store.leases.claim_batches import Batched
from climate.store.leases.due_events import BEGINNING, Cursor, Due
from climate.store.leases.event_claims import Message, OrphanedClaim, PendingWork
from climate.store.leases.leases import Change
from climate.store.leases.queue_limits import ANY_NUMBER

log = structlog.get_logger(__name__)

BATCH = 200
"""Maximum number of events in one claim of a poller."""

RESCUED = 100
"""Events that are put back together."""

HOLDS = 20_000
"""Maximum number of hosts of the leases in one claim: each is read and compared with its former state."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """Result of one claim."""

    count: int
    """Number of claimed events."""
    more: bool
    """Set if more is due that was not examined."""
    full: frozenset[str] = frozenset()
    """Queues for which no more may be claimed before workers have begun some of their events."""


_Held = TypeVar("_Held", Due, OrphanedClaim)


def claim_due(climate: Climate, by: str, limit: int = BATCH, cursor: Cursor | None = None) -> int:
    """Claim the first due events, each with a new token; return their number."""
    return claim(climate, by, cursor or Cursor(), limit).count


def claim(
    climate: Climate,
    by: str,
    cursor: Cursor,
    limit: int = BATCH,
    alive: Callable[[], None] = lambda: None,
    ahead: int = ANY_NUMBER,
) -> Claimed:
    """Claim due events from the cursor on, each with a new token, and move the cursor.

    No queue gets more than `ahead` events that no worker has begun. The number of statements is constant for any
    number of events. The events have at most `HOLDS` hosts together, or there is one. If the rows of one lease
    cannot be read or written, all are claimed one by one, and that lease is set aside. `alive` is called after
    each of them.
    """
    try:
        return _claim(climate, by, cursor, limit, ahead)
    except Exception as error:
        if not round_steps.is_its_own(error):
            raise
        log.warning("batch claim failed; claiming events one by one", error=type(error).__name__)
    return _claim_singly(climate, by, cursor, min(limit, ahead), alive)


def _claim_singly(climate: Climate, by: str, cursor: Cursor, limit: int, alive: Callable[[], None]) -> Claimed:
    with climate.engine.begin() as conn:
        now = climate.now(conn)
        due = due_events.lock(conn, now, due_events.read_portion(conn, now, cursor).ids, limit)
    count = 0
    for one in due:
        try:
            with climate.engine.begin() as conn:
                now = climate.now(conn)
                count += _mark(conn, climate, by, due_events.lock(conn, now, [one.event_id], 1), now)
        except Exception as error:
            if not round_steps.is_its_own(error):
                raise
            broken_leases.exclude(climate, one.lease_id, error)
        alive()
    return Claimed(count, more=True)


def _claim(climate: Climate, by: str, cursor: Cursor, limit: int, ahead: int) -> Claimed:
    with climate.engine.begin() as conn:
        now = climate.now(conn)
        room = queue_limits.rooms(conn, ahead, cursor.full, cursor.turns)
        if cursor.full - room.closed:  # the oldest event comes first again
            cursor.after = BEGINNING
        look = due_events.read_portion(conn, now, cursor)
        locked = due_events.lock(conn, now, look.ids, limit, room) if look.ids else []
        chosen = _no_more_than(locked, HOLDS)
        count = _mark(conn, climate, by, chosen, now) if chosen else 0
    turns = [(queue, one.is_end, one.project_id) for one in chosen for queue in one.queues]
    cursor.full = room.full(queue for queue, _, _ in turns)
    queue_limits.take_turns(cursor.turns, turns)
    left = bool(count) and (len(locked) == limit or len(chosen) < len(locked) or bool(cursor.full))
    if not left:
        cursor.after = look.end or BEGINNING
    return Claimed(count, more=left or look.end is not None, full=cursor.full)


def has_room(climate: Climate, cursor: Cursor, ahead: int) -> bool:
    """Return whether more may be claimed for a queue that was full at the last claim."""
    with reading(climate.engine) as conn:
        return bool(cursor.full - queue_limits.rooms(conn, ahead, cursor.full, {}).closed)


def _no_more_than(locked: Sequence[_Held], holds: int) -> Sequence[_Held]:
    """Return the first events with at most so many hosts together, but at least one."""
    sums = list(accumulate(one.holds for one in locked))
    return locked[: max(1, bisect_right(sums, holds))]


def _mark(conn: Connection, climate: Climate, by: str, chosen: Sequence[Due], now: datetime) -> int:
    by_id = leases.get_many(conn, {one.lease_id for one in chosen})
    in_turn = [by_id[lease_id] for lease_id in dict.fromkeys(one.lease_id for one in chosen) if lease_id in by_id]
    ready = list(_most_urgent(in_turn, {one.event_id for one in chosen}, now))
    _refuse_claimed(ready, chosen)
    tokens = iter(event_claims.tokens(conn, sum(max(1, len(one.types)) for one in ready)))
    claims = [_claim_of(one, tokens, now) for one in ready]
    leases.record_many(conn, system(by), [claim.change for claim in claims])
    event_claims.open_many(conn, [message for claim in claims for message in claim.messages], by, now)
    return len(ready)


@dataclass(frozen=True, slots=True)
class _Ready:
    """Event to claim: the most urgent one of its lease."""

    lease: Lease
    event_id: UUID
    types: Sequence[str]
    """Resource types whose shares run apart; none if the event runs as a whole."""


@dataclass(frozen=True, slots=True)
class _Claim:
    """Claim of an event: the change of its lease, and the messages to workers."""

    change: Change
    messages: Sequence[Message]


def _most_urgent(leases: Iterable[Lease], may_run: Collection[UUID], now: datetime) -> Iterator[_Ready]:
    """Return the most urgent event of each lease among those that may run, because its events run one at a time."""
    for lease in leases:
        event = next((event for event in event_transitions.due(lease, now) if event.id in may_run), None)
        if event is not None:
            yield _Ready(lease, event.id, share_transitions.pending_types(lease, event))


def _refuse_claimed(ready: Iterable[_Ready], chosen: Iterable[Due]) -> None:
    """Raise ValueError if an event is claimed although it is UNDONE in the locked rows.

    A concurrent claim since the read is valid: its event is not UNDONE.
    """
    claimed = {one.event_id for one in chosen if one.is_claimed}
    for one in ready:
        if one.event_id in claimed:
            raise ValueError(f"event {one.event_id} is UNDONE, and is claimed: its row was changed by hand")


def _claim_of(ready: _Ready, tokens: Iterator[int], now: datetime) -> _Claim:
    """Return the claim of an event, with one token, or one for each share that runs apart."""
    shares = tuple(ClaimedShare(resource_type, next(tokens)) for resource_type in ready.types)
    fact = event_transitions.claim(ready.lease, ready.event_id, shares[0].token if shares else next(tokens), now)
    if shares:
        messages = [Message(ready.event_id, share.token, queue_of(share.resource_type)) for share in shares]
    else:
        messages = [Message(ready.event_id, fact.token, _queue(ready.lease))]
    return _Claim((ready.lease, [replace(fact, shares=shares)]), messages)


def _queue(lease: Lease) -> str:
    """Return the queue of an event that runs as a whole: that of the lease's only type."""
    types = lease.resource_types
    return queue_of(types[0]) if len(types) == 1 else QUEUE


def to_send(climate: Climate, batched: Collection[Batched] = ()) -> list[Message]:
    """Return the messages to send: new claims, those of `batched` in batches, and claims whose message seems lost."""
    with climate.engine.begin() as conn:
        return claim_batches.to_send(conn, climate.now(conn), batched=batched)


def mark_unsent(climate: Climate, messages: Sequence[Message]) -> None:
    """Record that these messages were not sent after all."""
    with climate.engine.begin() as conn:
        event_claims.mark_unsent(conn, messages)


def resend_unstarted(climate: Climate) -> None:
    """Send the messages of all claimed events that were not begun again, because the broker may have lost them."""
    with climate.engine.begin() as conn:
        event_claims.ring_again(conn)


def mark_for_single_send(climate: Climate, messages: Sequence[Message]) -> None:
    """Record that each of these events, which shared a message before, is sent again in a message of its own."""
    with climate.engine.begin() as conn:
        claim_batches.mark_apart(conn, messages, climate.now(conn))


def count_sent_unstarted(climate: Climate) -> Counter[str]:
    """Return for each queue the number of messages for events that nobody has begun."""
    with reading(climate.engine) as conn:
        return claim_batches.rung_unbegun(conn)


def rescue(climate: Climate, by: str, holds: int = HOLDS) -> int:
    """Put back events that a worker began and did not finish in time; return their number.

    A share that no worker of its type has begun when its lease is over fails, so that the end does not wait for
    it. The leases have at most so many hosts together, or there is one.
    """
    try:
        return _rescue(climate, by, RESCUED, holds)
    except Exception as error:
        if not round_steps.is_its_own(error):
            raise
        log.warning("batch rescue failed; rescuing events one by one", error=type(error).__name__)
    return _rescue_singly(climate, by)


def _rescue_singly(climate: Climate, by: str) -> int:
    """Put back each event by itself; set a lease aside if that fails."""
    with climate.engine.begin() as conn:
        stranded = event_claims.orphaned(conn, climate.now(conn), RESCUED)
    count = 0
    for one in stranded:
        try:
            count += _rescue(climate, by, 1, HOLDS, one.event_id)
        except Exception as error:
            if not round_steps.is_its_own(error):
                raise
            broken_leases.exclude(climate, one.lease_id, error)
    return count


def _rescue(climate: Climate, by: str, limit: int, holds: int, event_id: UUID | None = None) -> int:
    with climate.engine.begin() as conn:
        now = climate.now(conn)
        stranded = _no_more_than(event_claims.orphaned(conn, now, limit, event_id), holds)
        if not stranded:
            return 0
        by_id = leases.get_many(conn, [one.lease_id for one in stranded])
        happened: dict[UUID, list[Fact]] = {}
        count = 0
        for one in stranded:
            lease = fold(happened.get(one.lease_id, []), by_id[one.lease_id])
            outcome = _lost(climate, one.event_id) if one.is_begun else _unbegun_outcome(lease, one.event_id, now)
            if outcome is not None and event_claims.settle(conn, one.event_id, one.token):
                facts = facts_of(conn, lease, Message(one.event_id, one.token), by, outcome, now)
                happened.setdefault(one.lease_id, []).extend(facts)
                count += 1
        changes = [(by_id[lease_id], facts) for lease_id, facts in happened.items()]
        settled = leases.record_many(conn, system(by), changes)
        transitions = [Transition(before, after, now) for (before, _), after in zip(changes, settled, strict=True)]
        delivery.notify(
            conn, now, *(notice for transition in transitions for notice in notice_texts.of_start(transition))
        )
        if count:
            event_claims.wake_poller(conn)
            log.warning("events rescued from lost workers", count=count)
    return count


def _lost(climate: Climate, event_id: UUID) -> Outcome:
    return lambda lease, now: [event_transitions.retry_or_fail(lease, event_id, now, "worker lost", climate.chance())]


def _unbegun_outcome(lease: Lease, event_id: UUID, now: datetime) -> Outcome | None:
    """Return the outcome of a share that nobody has begun; None if it still makes sense."""
    event = lease.event(event_id)
    why = Verdict.MISSED if event.kind is EventKind.ADDITIONAL else event_transitions.timeliness(lease, event, now)
    return (
        None if why is Verdict.RUN else lambda lease, now: [event_transitions.skip_or_miss(lease, event_id, why, now)]
    )


def next_due(climate: Climate) -> timedelta | None:
    """Return the time until something becomes due that is not due yet."""
    with reading(climate.engine) as conn:
        now = climate.now(conn)
        due_at = event_claims.next_due(conn, now)
    return None if due_at is None else due_at - now


def pending_work(climate: Climate) -> PendingWork:
    """Return whether there is anything to claim, to send or to rescue, in one statement."""
    with reading(climate.engine) as conn:
        return event_claims.pending_work(conn, climate.other_time(conn))


def system(name: str) -> Caller:
    """Return the engine as the author of facts: its component, not the machine, because owners read the history."""
    return Caller(user_id=f"climate:{name.partition(':')[0]}", project_id="")
