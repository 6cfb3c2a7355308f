"""Move due events from UNDONE through IN_PROGRESS to DONE.  The protocol of engine.md 2."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import accumulate
from uuid import UUID

import structlog
from sqlalchemy import Connection
from structlog.contextvars import bound_contextvars

from climate.cloud import CloudError, Fenced, NotYet, Refused
from climate.connections import reading
from climate.context import Climate
from climate.domain import pools, schedule, shares
from climate.domain.facts import ClaimedShare, Fact
from climate.domain.lease import Event, Lease, Reservation, fold
from climate.domain.policy import Caller, require
from climate.domain.pools import LENT, HostPlace, Pool, Turn
from climate.domain.schedule import AdditionalEvent, Verdict
from climate.domain.status import EventKind, HoldState
from climate.plugin import Lent, ResourcePlugin, not_loaded
from climate.service import lease_parts, lifecycle, mending, moves, notices, preparing, readiness, telling
from climate.service.event_shares import QUEUE, Outcome, facts_of, queue_of
from climate.service.leases import wake_if_soon
from climate.service.pulse import Pulse
from climate.service.steps import Steps
from climate.service.unit import work
from climate.store import claims, due, inventory_pools, leases, places, queue_room
from climate.store.claims import Limits, Message, Rest
from climate.store.due import BEGINNING, Cursor, Due
from climate.store.leases import Change
from climate.store.queue_room import ANY_NUMBER

log = structlog.get_logger(__name__)

BATCH = 200
RESCUED = 100
"""Events that are put back at once."""

HOLDS = 20_000
"""Hosts that the leases of one claim have together: each is read, and compared with what it was."""


HANDS_OVER = (EventKind.START, EventKind.ADJUST)
HOOKS: Mapping[str, str] = {
    **dict.fromkeys(HANDS_OVER, "on_start"),
    EventKind.BEFORE_END: "before_end",
    EventKind.CLOSE: "close",
    EventKind.END: "on_end",
}


@dataclass(frozen=True, slots=True)
class Claimed:
    """The outcome of one claim."""

    count: int
    """Events that were claimed."""
    more: bool
    """Whether there is more that is due and was not looked at."""
    full: frozenset[str] = frozenset()
    """Queues for which no more may be claimed before workers have begun some of what they have."""


def claim_due(climate: Climate, by: str, limit: int = BATCH, cursor: Cursor | None = None) -> int:
    """Mark the first of what is due IN_PROGRESS, each with a new token; how many that were."""
    return claim(climate, by, cursor or Cursor(), limit).count


def claim(
    climate: Climate,
    by: str,
    cursor: Cursor,
    limit: int = BATCH,
    alive: Callable[[], None] = lambda: None,
    ahead: int = ANY_NUMBER,
) -> Claimed:
    """Mark what is due from the cursor on IN_PROGRESS, each with a new token, and move the cursor.

    No queue gets more than `ahead` events that no worker has begun.  A constant
    number of statements for any number of events; no more of them than have
    `HOLDS` hosts together, or one.  Where the rows of one lease cannot be read or written, all
    are claimed one by one, and that lease is set aside; `alive` is called after each of them.
    """
    try:
        return _claim(climate, by, cursor, limit, ahead)
    except Exception as error:
        if not mending.is_its_own(error):
            raise
        log.warning("claiming one by one", error=type(error).__name__)
    return _claim_singly(climate, by, cursor, min(limit, ahead), alive)


def _claim_singly(climate: Climate, by: str, cursor: Cursor, limit: int, alive: Callable[[], None]) -> Claimed:
    with climate.engine.begin() as conn:
        now = climate.now(conn)
        found = due.lock(conn, now, due.look(conn, now, cursor).ids, limit)
    count = 0
    for one in found:
        try:
            with climate.engine.begin() as conn:
                now = climate.now(conn)
                count += _mark(climate, conn, by, due.lock(conn, now, [one.event_id], 1), now)
        except Exception as error:
            if not mending.is_its_own(error):
                raise
            mending.put_aside(climate, one.lease_id, error)
        alive()
    return Claimed(count, more=True)


def _claim(climate: Climate, by: str, cursor: Cursor, limit: int, ahead: int) -> Claimed:
    with climate.engine.begin() as conn:
        now = climate.now(conn)
        room = queue_room.rooms(conn, ahead, cursor.full, cursor.turns)
        if cursor.full - room.closed:  # what has waited longest comes first again
            cursor.after = BEGINNING
        look = due.look(conn, now, cursor)
        locked = due.lock(conn, now, look.ids, limit, room) if look.ids else []
        chosen = _no_more_than(locked, HOLDS)
        count = _mark(climate, conn, by, chosen, now) if chosen else 0
    cursor.full = room.full(queue for one in chosen for queue in one.queues)
    queue_room.take_turns(cursor.turns, ((queue, o.is_end, o.project_id) for o in chosen for queue in o.queues))
    left = bool(count) and (len(locked) == limit or len(chosen) < len(locked) or bool(cursor.full))
    if not left:
        cursor.after = look.end or BEGINNING
    return Claimed(count, more=left or look.end is not None, full=cursor.full)


def has_room(climate: Climate, cursor: Cursor, ahead: int) -> bool:
    """Return whether more may be claimed for a queue that was full at the last claim."""
    with reading(climate.engine) as conn:
        return bool(cursor.full - queue_room.rooms(conn, ahead, cursor.full, {}).closed)


def _no_more_than(locked: Sequence[Due], holds: int) -> Sequence[Due]:
    """The first ones that have so many hosts together; the first one in any case."""
    sums = list(accumulate(one.holds for one in locked))
    return locked[: max(1, bisect_right(sums, holds))]


def _mark(climate: Climate, conn: Connection, by: str, chosen: Sequence[Due], now: datetime) -> int:
    found = leases.get_many(conn, {one.lease_id for one in chosen})
    in_turn = [found[lease_id] for lease_id in dict.fromkeys(one.lease_id for one in chosen) if lease_id in found]
    ready = list(_most_urgent(in_turn, {one.event_id for one in chosen}, now))
    # Of what is UNDONE in the locked rows only: what a rival has claimed since the look has a claim rightly.
    for event_id in {one.event_id for one in chosen if one.is_claimed} & {event_id for _, event_id in ready}:
        raise ValueError(f"event {event_id} is UNDONE, and is claimed: its row was changed by hand")
    types = [shares.wanted(lease, lease.event(event_id)) for lease, event_id in ready]
    tokens = iter(claims.tokens(conn, sum(max(1, len(apart)) for apart in types)))
    changes: list[Change] = []
    rung: list[Message] = []
    for (lease, event_id), apart in zip(ready, types, strict=True):
        claimed = tuple(ClaimedShare(resource_type, next(tokens)) for resource_type in apart)
        fact = schedule.claim(lease, event_id, claimed[0].token if claimed else next(tokens), now)
        changes.append((lease, [replace(fact, shares=claimed)]))
        rung += [Message(event_id, one.token, queue_of(one.resource_type)) for one in claimed]
        rung += [] if claimed else [Message(event_id, fact.token, _queue(lease))]
    leases.record_many(conn, system(by), changes)
    claims.open_many(conn, rung, by, now)
    return len(ready)


def _most_urgent(found: Iterable[Lease], may_run: Collection[UUID], now: datetime) -> Iterator[tuple[Lease, UUID]]:
    """Of each lease the most urgent event among those that may run: one at a time."""
    for lease in found:
        event = next((event for event in schedule.due(lease, now) if event.id in may_run), None)
        if event is not None:
            yield lease, event.id


def _queue(lease: Lease) -> str:
    """The queue of an event that is run as a whole: that of the lease's only type."""
    types = lease.resource_types
    return queue_of(types[0]) if len(types) == 1 else QUEUE


def to_send(climate: Climate) -> list[Message]:
    """What to ring for: new claims, and claims whose message seems to be lost."""
    with climate.engine.begin() as conn:
        return claims.to_send(conn, climate.now(conn))


def take_back(climate: Climate, messages: Sequence[Message]) -> None:
    """Note that these messages were not sent after all."""
    with climate.engine.begin() as conn:
        claims.take_back(conn, messages)


def ring_again(climate: Climate) -> None:
    """Have every event that was rung for and not begun rung for again: the broker may have lost the messages."""
    with climate.engine.begin() as conn:
        claims.ring_again(conn)


def unbegun(climate: Climate) -> dict[str, int]:
    """Return for each queue how many events were rung for and not begun."""
    with reading(climate.engine) as conn:
        return claims.unbegun(conn)


def rescue(climate: Climate, by: str) -> int:
    """Put back what a worker began and did not finish in its time; how many that were.

    A share that no worker of its type has begun when its lease is over is given up: the end must not wait for it.
    """
    try:
        return _rescue(climate, by, RESCUED)
    except Exception as error:
        if not mending.is_its_own(error):
            raise
        log.warning("rescuing one by one", error=type(error).__name__)
    return _rescue_singly(climate, by)


def _rescue_singly(climate: Climate, by: str) -> int:
    """Each by itself; a lease that is not to be rescued is set aside."""
    with climate.engine.begin() as conn:
        stranded = claims.stranded(conn, climate.now(conn), RESCUED)
    count = 0
    for one in stranded:
        try:
            count += _rescue(climate, by, 1, one.event_id)
        except Exception as error:
            if not mending.is_its_own(error):
                raise
            mending.put_aside(climate, one.lease_id, error)
    return count


def _rescue(climate: Climate, by: str, limit: int, event_id: UUID | None = None) -> int:
    with climate.engine.begin() as conn:
        now = climate.now(conn)
        stranded = claims.stranded(conn, now, limit, event_id)
        if not stranded:
            return 0
        found = leases.get_many(conn, [one.lease_id for one in stranded])
        happened: dict[UUID, list[Fact]] = {}
        count = 0
        for one in stranded:
            lease = fold(happened.get(one.lease_id, []), found[one.lease_id])
            outcome = _lost(climate, one.event_id) if one.is_begun else _not_begun(lease, one.event_id, now)
            if outcome is not None and claims.settle(conn, one.event_id, one.token):
                facts = facts_of(conn, lease, Message(one.event_id, one.token), by, outcome, now)
                happened.setdefault(one.lease_id, []).extend(facts)
                count += 1
        changes = [(found[lease_id], facts) for lease_id, facts in happened.items()]
        settled = leases.record_many(conn, system(by), changes)
        turns = [Turn(before, after, now) for (before, _), after in zip(changes, settled, strict=True)]
        notices.tell(conn, now, *(notice for turn in turns for notice in telling.of_start(turn)))
        if count:
            claims.wake_poller(conn)
            log.warning("events rescued from lost workers", count=count)
    return count


def _lost(climate: Climate, event_id: UUID) -> Outcome:
    return lambda lease, now: [schedule.fall_short(lease, event_id, now, "worker lost", climate.chance())]


def _not_begun(lease: Lease, event_id: UUID, now: datetime) -> Outcome | None:
    """The outcome of a share that nobody has begun; None where it makes sense still."""
    event = lease.event(event_id)
    why = Verdict.MISSED if event.kind is EventKind.ADDITIONAL else schedule.verdict(lease, event, now)
    return None if why is Verdict.RUN else lambda lease, now: [schedule.pass_over(lease, event_id, why, now)]


def next_due(climate: Climate) -> timedelta | None:
    """How long until something becomes due that is not due already."""
    with reading(climate.engine) as conn:
        now = climate.now(conn)
        due_at = claims.next_due(conn, now)
    return None if due_at is None else due_at - now


def rest(climate: Climate) -> Rest:
    """Look whether there is anything to claim, to ring for or to rescue; one statement."""
    with reading(climate.engine) as conn:
        return claims.rest(conn, climate.other_time(conn))


@dataclass(frozen=True, slots=True)
class _Run:
    """One run of one event by one worker."""

    climate: Climate
    lease: Lease
    event: Event
    token: int
    worker: str
    begun: datetime
    places: Mapping[int, HostPlace]
    promised: frozenset[int] = frozenset()
    """Hosts that would be released, on which another lease counts."""
    backends: Mapping[int, str] = field(default_factory=dict)
    """What the cloud calls the places of inventories, by their numbers."""

    @property
    def reservations(self) -> tuple[Reservation, ...]:
        """Those that the run is for: all, or those of the type of its share."""
        share = shares.under(self.event, self.token)
        own = self.lease.reservations
        return own if share is None else tuple(r for r in own if r.resource_type == share.resource_type)


def run(climate: Climate, event_id: UUID, token: int, worker: str) -> None:
    """Start, act, record.  No transaction is open while the cloud works.

    A duplicate or outdated message does nothing.  An unforeseen exception
    leaves the event IN_PROGRESS: its claim runs out and it is put back.
    """
    begun = _begin(climate, event_id, token, worker)
    if begun is None:
        log.info("message dropped: the event was started before, or taken away", event_id=str(event_id))
        return
    with bound_contextvars(lease_id=str(begun.lease.id), event_id=str(event_id)):
        _work_on(begun)


def _work_on(begun: _Run) -> None:
    climate, event = begun.climate, begun.event
    why = schedule.verdict(begun.lease, event, begun.begun)
    if why is not Verdict.RUN:
        _settle(begun, [], lambda lease, now: [schedule.pass_over(lease, event.id, why, now)])
        return
    with Pulse(climate, event.id, begun.token) as pulse:
        steps = Steps(climate, event.id, event.due_at, begun.token, pulse.lost)
        outcome = _act(begun, steps)
    _settle(begun, steps.done, outcome)


def _begin(climate: Climate, event_id: UUID, token: int, worker: str) -> _Run | None:
    settings = climate.settings
    with climate.engine.begin() as conn:
        limits = Limits(timedelta(seconds=settings.claim_seconds), timedelta(seconds=settings.step_seconds))
        now = claims.start(conn, Message(event_id, token), worker, climate.other_time(conn), limits)
        if now is None:
            return None
        lease = leases.of_event(conn, event_id)
        held = places.of(conn, {host for r in lease.reservations for host in r.hosts})
        event = lease.event(event_id)
        promised = moves.promised_on(conn, lease) if event.kind is EventKind.END else frozenset()
        amounts = {hold.number for r in lease.reservations for hold in r.amounts}
        backends = inventory_pools.backends(conn, amounts) if amounts else {}
    return _Run(climate, lease, event, token, worker, now, held, promised, backends)


def _act(begun: _Run, steps: Steps) -> Outcome:
    """Run the hook of every reservation, one's trouble not keeping the others from theirs.

    The outcome is that of the worst.  Who is fenced stops: where the event was
    taken away nothing is recorded; where a round has moved a host under a
    later token since the claim, the event comes back soon under a new one.
    """
    troubles: list[Exception] = []
    lacking: dict[UUID, list[HostPlace]] = {}
    # Nothing of a hold was asked of the cloud: its end is a matter of the rows alone.
    for reservation in () if begun.event.kind is EventKind.EXPIRE else begun.reservations:
        try:
            lacking[reservation.id] = _hook(begun, steps, reservation)
            lease_parts.act(begun.climate, begun.event.kind, begun.lease, reservation)
        except Fenced as error:
            log.warning("stopped: a later claim has been at work", reason=str(error))
            return _outcome(begun, [NotYet("something of it was worked on meanwhile")], {})
        except (CloudError, NotYet) as error:
            troubles.append(error)
    return _outcome(begun, troubles, {number: found for number, found in lacking.items() if found})


def _hook(begun: _Run, steps: Steps, reservation: Reservation) -> list[HostPlace]:
    """Let the plugin do what the event asks for; the hosts that could not be handed over and were left out."""
    plugin, kind = begun.climate.plugins.get(reservation.resource_type), begun.event.kind
    if reservation.lies_elsewhere or kind is EventKind.SYNC:
        return []
    if plugin is None:
        raise CloudError(not_loaded(reservation.resource_type))
    held = [begun.places[host] for host in reservation.hosts]
    if kind is EventKind.ADDITIONAL:
        _on_event(plugin, steps, _lent(begun, reservation, tuple(place.name for place in held)), begun.event)
        return []
    if kind is EventKind.PREPARE:
        preparing.bring_up(begun.climate, held)
        return []
    limit = timedelta(seconds=begun.climate.settings.wait_seconds)
    patient = not schedule.has_waited(begun.event, begun.begun, limit)
    out = readiness.bring_up(begun.climate, reservation, held, patient=patient) if kind in HANDS_OVER else []
    if held and len(out) == len(held):  # healing hands over to the degraded lease what it finds, or what comes back
        return out
    hook = getattr(plugin, HOOKS[kind])  # only this one: a plugin that knows no grace period has no `close`
    hook(steps, _lent(begun, reservation, tuple(place.name for place in held if place not in out)))
    return out


def _on_event(plugin: ResourcePlugin, steps: Steps, lent: Lent, event: Event) -> None:
    """Tell a plugin of an additional event, unless it has no hook for such events."""
    hook = getattr(plugin, "on_event", None)
    if hook is not None:
        hook(steps, lent, AdditionalEvent(event.name, event.due_at))


def _lent(begun: _Run, reservation: Reservation, names: tuple[str, ...]) -> Lent:
    lease = begun.lease
    started = lease.event(EventKind.START).is_done_for(reservation.resource_type)
    cleaned = moves.cleaning_time(begun.climate.settings) is not None
    lent = [place for place in begun.places.values() if (place.pool, place.reservation_id) == (LENT, reservation.id)]
    return Lent(
        lease.id,
        lease.project_id,
        lease.period,
        reservation,
        names,
        begun.token,
        started=started,
        # What a start that failed may have left in the cloud was never handed over.
        after=pools.after(pools.on_end(reservation), cleaned) if started else Pool.RESERVATION,
        backends={hold.number: begun.backends[hold.number] for hold in reservation.amounts},
        promised=tuple(place.name for place in lent if place.host in begun.promised),
        slots={begun.places[hold.host].name: hold.slots for hold in reservation.holds if hold.slots},
    )


def _outcome(begun: _Run, troubles: Sequence[Exception], lacking: Mapping[UUID, Sequence[HostPlace]]) -> Outcome:
    climate, event_id = begun.climate, begun.event.id
    limit = timedelta(seconds=climate.settings.wait_seconds)
    for kind in (Refused, CloudError, NotYet):
        said = "; ".join(str(trouble) or kind.__name__ for trouble in troubles if isinstance(trouble, kind))
        if not said:
            continue
        if kind is Refused:
            return lambda lease, now: [schedule.fail(lease, event_id, now, said)]
        if kind is CloudError:
            return lambda lease, now: [schedule.fall_short(lease, event_id, now, said, climate.chance())]
        return lambda lease, now: [
            schedule.wait(lease, event_id, now, said, limit)
            or schedule.fall_short(lease, event_id, now, f"waited too long: {said}", climate.chance())
        ]
    return lambda lease, now: [*schedule.finish(lease, event_id, now), *readiness.marks(lease, lacking, now)]


def _settle(begun: _Run, done: Sequence[str], outcome: Outcome) -> None:
    """Record how it went, provided the event is still this worker's; allocations are released here, last of all."""
    facts = work(begun.climate, lambda conn, patient: _recorded(conn, begun, done, outcome))
    if facts is None:
        log.warning("result refused: the event was taken away")
    else:
        log.info("event settled", kind=begun.event.kind, facts=[type(fact).__name__ for fact in facts])


def _recorded(conn: Connection, begun: _Run, done: Sequence[str], outcome: Outcome) -> list[Fact] | None:
    """What is written down, once; None where the event is another worker's."""
    climate, event = begun.climate, begun.event
    lease = leases.holding(conn, event.id)
    settled = claims.settle_run(conn, event.id, begun.token, event.due_at, done)
    if settled is None:
        return None
    now = climate.other_time(conn) or settled
    facts = facts_of(conn, lease, Message(event.id, begun.token), begun.worker, outcome, now)
    # These facts say what became of an event, and nothing that was read from rows: the journal is not folded for them.
    after = leases.record_many(conn, system(begun.worker), [(lease, facts)])[0]
    turn = Turn(lease, after, now, begun.token)
    moved = moves.follow(climate, conn, system(begun.worker), turn)
    told = [*telling.of_lease(turn), *telling.of_hosts(moved), *lifecycle.of(climate.settings, lease, after)]
    notices.tell(conn, now, *told)
    wake_if_soon(climate, conn, after, now)
    if _gave_back(lease, after):
        claims.wake_poller(conn)  # the next lease of these hosts may be waiting for them
    return facts


def _gave_back(before: Lease, after: Lease) -> bool:
    """Whether something that others may be waiting for is no longer held."""
    was, now = (
        {r.id for r in lease.reservations if lease.hold_state_of(r) is HoldState.RELEASED} for lease in (before, after)
    )
    return any(r.id in now - was and (r.holds or r.addresses or r.amounts) for r in after.reservations)


def requeue(climate: Climate, caller: Caller, event_id: UUID) -> Lease:
    """Another round of tries for a failed event, on an operator's word."""
    require(caller, "events:requeue")
    with climate.engine.begin() as conn:
        now = climate.now(conn)
        lease = leases.holding(conn, event_id)
        after = leases.record(conn, caller, lease, schedule.requeue(lease, event_id, now))
        claims.wake_poller(conn)
    return after


def listed(
    climate: Climate, caller: Caller, status: str | None, limit: int, marker: UUID | None = None
) -> list[tuple[Lease, Event]]:
    """Events of all projects with their leases, those due first before others; InvalidInput for an unknown marker."""
    require(caller, "events:get")
    with reading(climate.engine) as conn:
        return leases.events_with(conn, status, limit, marker)


def system(name: str) -> Caller:
    """The engine itself as the author of facts: its part in it, not the machine, for owners read the history."""
    return Caller(user_id=f"climate:{name.partition(':')[0]}", project_id="")
