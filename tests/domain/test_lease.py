"""A lease's status is looked up, its events move by a table, and its hosts are given up last of all."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from uuid import uuid4

import pytest

from climate.domain import facts
from climate.domain.errors import ClimateError, NotFound
from climate.domain.events import event_transitions
from climate.domain.events.event_transitions import Times
from climate.domain.facts import Fact
from climate.domain.lease import Lease, evolve, fold
from climate.domain.lease_part import Part
from climate.domain.planning import holds
from climate.domain.status import (
    DONE,
    ERROR,
    EVENT_MOVES,
    IN_PROGRESS,
    LEASE_STATUS,
    UNDONE,
    EventKind,
    EventStatus,
    HoldState,
    LeaseStatus,
    PartState,
    ReservationStatus,
)
from tests.domain.lease_factory import HOUR, NOON, PERIOD, after, claimed, created, done, failed, lease, next_due

Move = Callable[[Lease, datetime], "Fact | tuple[Fact, ...] | None"]
GRACE = timedelta(minutes=20)
HELD_UNTIL = NOON + timedelta(minutes=10)
TIMES = (
    NOON,
    HELD_UNTIL,
    PERIOD.start,
    PERIOD.end - timedelta(minutes=30),
    PERIOD.end,
    PERIOD.end + GRACE / 2,
    PERIOD.end + HOUR,
)


def _moves(known: Lease) -> Iterator[Move]:
    """All that the engine or somebody may do to a lease."""
    yield event_transitions.delete
    yield lambda held, now: holds.confirm(held, "key", now)
    yield lambda held, now: _prolonged(held, now, PERIOD.end + HOUR)
    yield lambda held, now: _prolonged(held, now, now)
    yield _grown
    for part in known.parts:
        yield lambda held, now, p=part: _part_goes_on(held, p, now)  # type: ignore[misc]
    if known.parts:
        yield _synced
    for event in known.events:
        yield lambda held, now, e=event: event_transitions.requeue(held, e.id, now)  # type: ignore[misc]
        if event.status is UNDONE:
            yield lambda held, now, e=event: _claim(held, e.id, now)  # type: ignore[misc]
        if event.status is IN_PROGRESS:
            yield lambda held, now, e=event: event_transitions.finish(held, e.id, now)  # type: ignore[misc]
            yield lambda held, now, e=event: event_transitions.fail(held, e.id, now, "broken")  # type: ignore[misc]
            yield lambda held, now, e=event: event_transitions.retry_or_fail(held, e.id, now, "flaky", 0)  # type: ignore[misc]
            yield lambda held, now, e=event: _passed_over(held, e.id, now)  # type: ignore[misc]


def _prolonged(held: Lease, now: datetime, end: datetime) -> tuple[Fact, ...]:
    holds.refuse_while_held(held)
    times = Times(
        event_transitions.new_period(held, None, end, now),
        grace=event_transitions.grace(r.spec for r in held.reservations),
    )
    return tuple(event_transitions.reschedule(held, times, now, uuid4))


def _part_goes_on(held: Lease, part: Part, now: datetime) -> Fact | None:
    """Parts are held and confirmed while their lease is held, as the service does it."""
    if held.held and part.state is PartState.PLANNED:
        return facts.LeasePartHeld(part.id, now, uuid4(), uuid4(), 1)
    return facts.LeasePartConfirmed(part.id, now) if held.held and part.state is PartState.HELD else None


def _synced(held: Lease, now: datetime) -> Fact | None:
    event_transitions.refuse_while_running(held)
    known = any(event.kind is EventKind.SYNC and event.status is UNDONE for event in held.events)
    over = held.event(EventKind.END).status is not UNDONE or held.held or held.deleting
    return None if known or over else event_transitions.sync(held, now, now, uuid4)


def _grown(held: Lease, now: datetime) -> Fact | None:
    event_transitions.new_period(held, None, None, now)
    event_transitions.refuse_while_running(held)
    planned = event_transitions.adjustment(held, now, uuid4)
    return facts.LeaseRescheduled(now, held.period, (planned,)) if held.touched else None


def _claim(held: Lease, event_id: object, now: datetime) -> Fact | None:
    ready = next_due(held, now)
    return event_transitions.claim(held, ready.id, held.version, now) if ready and ready.id == event_id else None


def _passed_over(held: Lease, event_id: object, now: datetime) -> Fact | None:
    event = next(e for e in held.events if e.id == event_id)
    why = event_transitions.timeliness(held, event, now)
    return None if why is event_transitions.Verdict.RUN else event_transitions.skip_or_miss(held, event.id, why, now)


def _steps(known: Lease) -> Iterator[tuple[Fact, ...]]:
    """Every transaction that may follow, as the facts that it appends."""
    for now in TIMES:
        for move in _moves(known):
            try:
                got = move(known, now)
            except ClimateError:
                continue
            if got:
                yield got if isinstance(got, tuple) else (got,)


def _shape(known: Lease) -> object:
    states = tuple(part.state for part in known.parts)
    return tuple((e.kind, e.status, e.token > 0) for e in known.events), known.deleting, known.gone, states


@pytest.fixture(scope="module")
def reachable() -> dict[object, Lease]:
    """Every shape that a lease can come to, with an example."""
    first = [
        lease(before_end=PERIOD.end - timedelta(minutes=45)),
        lease(),
        lease(asleep=True),
        lease(prepare=PERIOD.start - timedelta(minutes=10)),
        lease(grace_period=int(GRACE.total_seconds())),
        lease(hold_until=HELD_UNTIL),
        lease(hold_until=HELD_UNTIL, spread=True),
        lease(hold_until=HELD_UNTIL, asleep=True, prepare=PERIOD.start - timedelta(minutes=10)),
    ]
    todo = first.copy()
    found = {_shape(made): made for made in first}
    while todo:
        known = todo.pop()
        for happened in () if known.gone else _steps(known):
            following = after(known, *happened)
            if _shape(following) not in found:
                found[_shape(following)] = following
                todo.append(following)
    return found


def test_a_lease_is_held_until_its_hold_is_over_and_nothing_else_of_it_runs_before(
    reachable: dict[object, Lease],
) -> None:
    seen = set()
    for known in reachable.values():
        expiry = known.expiry
        if expiry is None:
            assert not known.held
            continue
        seen.add((expiry.status, expiry.outcome, known.status, known.gone))
        assert known.held is (known.status is LeaseStatus.HELD) is (expiry.status is not DONE)
        if known.held:
            assert not known.gone
            assert known.hold_state is HoldState.HELD
            assert {event.status for event in known.events[1:]} == {UNDONE}, "something began before the confirmation"
            ready = next_due(known, PERIOD.end + 99 * HOUR)
            assert ready in (None, expiry)
        if expiry.outcome in ("OK", "LATE"):
            assert known.gone or known.deleting, "a hold expired and its lease stayed"
            assert not known.event(EventKind.START).token
    over = {(outcome, status) for _, outcome, status, gone in seen if not gone}
    assert {("CANCELLED", LeaseStatus.PENDING), ("CANCELLED", LeaseStatus.ACTIVE), (None, LeaseStatus.HELD)} <= over


def test_a_lease_is_not_forgotten_while_a_child_may_have_a_part_of_it(reachable: dict[object, Lease]) -> None:
    seen = set()
    for known in reachable.values():
        if known.parts and (known.gone or known.event(EventKind.END).status is DONE):
            seen.add(known.event(EventKind.END).outcome)
            assert {part.state for part in known.parts} == {PartState.RELEASED}, _shape(known)
        if known.gone and any(part.lease_id for part in known.parts):
            assert known.event(EventKind.END).carried_out, "a child's part was forgotten"
    assert {"CANCELLED", "OK"} <= seen


def test_a_lease_is_confirmed_after_its_parts(reachable: dict[object, Lease]) -> None:
    for known in reachable.values():
        if known.event(EventKind.START).token:
            assert all(part.lease_id for part in known.parts), "it started, and a child had not confirmed its part"


def _edges(known: Lease) -> tuple[EventStatus, EventStatus]:
    return known.event(EventKind.START).status, known.event(EventKind.END).status


def test_every_reachable_pair_has_a_status_and_no_other_has(reachable: dict[object, Lease]) -> None:
    pairs = {_edges(known) for known in reachable.values() if not known.held}
    assert pairs == set(LEASE_STATUS)


def test_events_move_by_the_table_only(reachable: dict[object, Lease]) -> None:
    seen = set()
    for known in reachable.values():
        for happened in _steps(known):
            before = known
            for fact in happened:
                following = evolve(before, fact)
                pairs = {(event.status, following.event(event.id).status) for event in before.events}
                seen |= {(old, new) for old, new in pairs if old is not new}
                before = following
    allowed = {(status, to) for status, targets in EVENT_MOVES.items() for to in targets}
    assert seen == allowed


def test_at_most_one_event_is_in_progress(reachable: dict[object, Lease]) -> None:
    for known in reachable.values():
        assert sum(event.status is IN_PROGRESS for event in known.events) <= 1


def test_what_the_cloud_may_have_is_held_until_the_end_is_done(reachable: dict[object, Lease]) -> None:
    for known in reachable.values():
        ever_claimed = known.event(EventKind.START).token > 0
        ended = known.event(EventKind.END).status is DONE
        if ever_claimed and not ended:
            assert known.hold_state is HoldState.ACTIVE, _shape(known)
        if known.gone and ever_claimed:
            assert ended, "a lease was forgotten while the cloud may still have had something of it"


def test_a_lease_that_is_gone_leaves_nothing_undone(reachable: dict[object, Lease]) -> None:
    for known in reachable.values():
        if known.gone:
            assert {event.status for event in known.events} <= {DONE, ERROR}, _shape(known)


def test_events_run_in_the_order_of_their_kinds(reachable: dict[object, Lease]) -> None:
    """None is begun while one before it is open: no end overtakes its grace, no start its preparation."""
    order = list(EventKind)
    for known in reachable.values():
        assert [e.kind for e in known.events] == sorted((e.kind for e in known.events), key=order.index)
        ready = next_due(known, PERIOD.end + 99 * HOUR)
        before = known.events[: known.events.index(ready)] if ready else ()
        assert all(event.status in (DONE, ERROR) for event in before), _shape(known)


def test_the_end_always_comes_and_as_long_after_the_close_as_was_agreed(reachable: dict[object, Lease]) -> None:
    for known in reachable.values():
        close = next((event for event in known.events if event.kind is EventKind.CLOSE), None)
        end = known.event(EventKind.END)
        if close and not end.token and not known.deleting and not known.gone:
            assert end.due_at - known.period.end == GRACE
            assert close.token or close.due_at == known.period.end
        if end.status is UNDONE and not known.gone:
            far = PERIOD.end + 99 * HOUR
            ready = next_due(known, far)
            assert ready is not None or any(event.status is IN_PROGRESS for event in known.events)


def test_only_what_was_handed_over_is_in_grace(reachable: dict[object, Lease]) -> None:
    seen = set()
    for known in reachable.values():
        for now in TIMES:
            if known.in_grace(now):
                seen.add(known.status)
                assert known.event(EventKind.START).carried_out
                assert event_transitions.new_period(known, None, now + HOUR, now).end == now + HOUR
    assert seen == {LeaseStatus.ACTIVE}


def test_the_life_of_a_lease() -> None:
    known = lease()
    assert (known.status, known.reservation_status, known.hold_state) == (
        LeaseStatus.PENDING,
        ReservationStatus.PENDING,
        HoldState.HELD,
    )
    known = claimed(known, "start_lease", PERIOD.start)
    assert (known.status, known.hold_state) == (LeaseStatus.STARTING, HoldState.ACTIVE)
    known = after(known, *event_transitions.finish(known, known.event(EventKind.START).id, PERIOD.start))
    assert (known.status, known.reservation_status) == (LeaseStatus.ACTIVE, ReservationStatus.ACTIVE)
    known = claimed(known, "end_lease", PERIOD.end, 2)
    assert (known.status, known.hold_state) == (LeaseStatus.TERMINATING, HoldState.ACTIVE)
    known = after(known, *event_transitions.finish(known, known.event(EventKind.END).id, PERIOD.end))
    assert (known.status, known.reservation_status, known.hold_state) == (
        LeaseStatus.TERMINATED,
        ReservationStatus.DELETED,
        HoldState.RELEASED,
    )
    assert known.version == 5


def test_a_start_that_an_operator_tries_again_still_counts_as_begun() -> None:
    """Its hosts may be lent already: neither may they be taken for merely held, nor the lease just be forgotten."""
    known = failed(lease(), "start_lease", PERIOD.start)
    known = after(known, event_transitions.requeue(known, known.event(EventKind.START).id, PERIOD.start))
    assert known.event(EventKind.START).attempts == 0
    assert known.hold_state is HoldState.ACTIVE
    deleted = after(known, *event_transitions.delete(known, PERIOD.start))
    assert not deleted.gone
    assert deleted.status is LeaseStatus.DELETING


def test_a_failed_end_keeps_its_hosts() -> None:
    known = failed(done(lease(), "start_lease", PERIOD.start), "end_lease", PERIOD.end, 2)
    assert (known.status, known.hold_state) == (LeaseStatus.ERROR, HoldState.ACTIVE)
    assert known.reason == "end_lease: broken"


def test_nothing_before_the_creation() -> None:
    with pytest.raises(ValueError, match="before LeaseCreated"):
        evolve(None, facts.LeaseRenamed(NOON, "x"))
    with pytest.raises(NotFound):
        fold([])
    with pytest.raises(NotFound):
        lease().event(uuid4())
    with pytest.raises(NotFound):
        lease().reservation(uuid4())


def test_rename_and_change_of_what_is_held() -> None:
    first = created()
    known = fold([first])
    wider = facts.Hold(2, PERIOD)
    known = after(
        known,
        facts.LeaseRenamed(NOON, "other"),
        facts.ReservationChanged(NOON, first.reservations[0].id, {"min": 2, "max": 2}, (wider,)),
    )
    assert (known.name, known.reservations[0].hosts, known.version) == ("other", (2,), 3)
