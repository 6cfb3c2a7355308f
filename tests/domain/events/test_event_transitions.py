"""What an intention means for the events of a lease."""

from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climate.domain import facts
from climate.domain.errors import Busy, IllegalMove, InvalidInput, InvalidPeriod
from climate.domain.events import event_transitions
from climate.domain.events.event_transitions import LONGEST_DELAY, MAX_ATTEMPTS, Times, Verdict
from climate.domain.lease import Lease
from climate.domain.period import Period
from climate.domain.status import DONE, ERROR, UNDONE, EventKind, EventStatus
from tests.domain.lease_factory import HOUR, NOON, PERIOD, after, claimed, done, failed, lease, next_due

START, BEFORE_END, END = EventKind.START, EventKind.BEFORE_END, EventKind.END
MINUTE = timedelta(minutes=1)
WITH_BEFORE_END = PERIOD.end - 30 * MINUTE


def _fall_short(known: Lease, kind: EventKind, now: datetime, chance: float = 0.5) -> Lease:
    running = claimed(known, kind, now)
    return after(running, event_transitions.retry_or_fail(running, running.event(kind).id, now, "flaky", chance))


def _moved(known: Lease, start: datetime | None, end: datetime | None, now: datetime) -> Lease:
    period = event_transitions.new_period(known, start, end, now)
    return after(known, *event_transitions.reschedule(known, Times(period, None), now, uuid4))


def test_plan() -> None:
    assert [e.kind for e in event_transitions.plan(Times(PERIOD, None), uuid4)] == [START, END]
    times = {e.kind: e.due_at for e in event_transitions.plan(Times(PERIOD, WITH_BEFORE_END), uuid4)}
    assert times == {START: PERIOD.start, BEFORE_END: WITH_BEFORE_END, END: PERIOD.end}


def test_before_end_time() -> None:
    assert event_transitions.before_end_time(PERIOD, None, timedelta(0)) is None
    assert event_transitions.before_end_time(PERIOD, None, HOUR) == PERIOD.end - HOUR
    assert event_transitions.before_end_time(PERIOD, None, 99 * HOUR) == PERIOD.start
    assert event_transitions.before_end_time(PERIOD, WITH_BEFORE_END, HOUR) == WITH_BEFORE_END
    for outside in (PERIOD.start, PERIOD.end, NOON):
        with pytest.raises(InvalidInput, match="out of lease limits"):
            event_transitions.before_end_time(PERIOD, outside, HOUR)


def test_events_come_one_at_a_time_in_the_order_of_their_kinds() -> None:
    known = lease(before_end=WITH_BEFORE_END)
    assert next_due(known, PERIOD.start - MINUTE) is None
    assert next_due(known, PERIOD.end + HOUR) == known.event(START)
    running = claimed(known, START, PERIOD.end + HOUR)
    assert next_due(running, PERIOD.end + HOUR) is None
    started = done(known, START, PERIOD.end)
    assert next_due(started, PERIOD.end) == started.event(BEFORE_END)


def test_an_end_does_not_overtake_a_start_that_was_put_back() -> None:
    late = PERIOD.end - timedelta(seconds=1)
    known = _fall_short(lease(), START, late)
    assert next_due(known, PERIOD.end) == known.event(START)
    too_late = PERIOD.end + timedelta(seconds=5)
    running = claimed(lease(), START, late)
    known = after(
        running, event_transitions.retry_or_fail(running, running.event(START).id, too_late, "slow and flaky", 0)
    )
    assert next_due(known, too_late) == known.event(START)


@pytest.mark.parametrize(
    ("kind", "late", "expected"),
    [
        (START, timedelta(0), Verdict.RUN),
        (START, PERIOD.end - PERIOD.start - MINUTE, Verdict.RUN),
        (START, PERIOD.end - PERIOD.start, Verdict.MISSED),
        (BEFORE_END, timedelta(0), Verdict.RUN),
        (BEFORE_END, 30 * MINUTE, Verdict.SKIP),
        (END, timedelta(0), Verdict.RUN),
        (END, 9999 * HOUR, Verdict.RUN),
    ],
)
def test_what_is_woken_late(kind: EventKind, late: timedelta, expected: Verdict) -> None:
    known = lease(before_end=WITH_BEFORE_END)
    event = known.event(kind)
    assert event_transitions.timeliness(known, event, event.due_at + late) is expected


def test_a_missed_start_is_an_error_with_its_reason_and_a_late_before_end_is_skipped() -> None:
    known = claimed(lease(), START, PERIOD.end)
    missed = after(known, event_transitions.skip_or_miss(known, known.event(START).id, Verdict.MISSED, PERIOD.end))
    assert (missed.event(START).status, missed.event(START).outcome) == (ERROR, "MISSED")
    assert "2030-01-01 15:00:00 UTC" in str(missed.reason)
    known = claimed(done(lease(before_end=WITH_BEFORE_END), START, PERIOD.start), BEFORE_END, PERIOD.end)
    skipped = after(known, event_transitions.skip_or_miss(known, known.event(BEFORE_END).id, Verdict.SKIP, PERIOD.end))
    assert (skipped.event(BEFORE_END).status, skipped.event(BEFORE_END).outcome) == (DONE, "SKIPPED")


def test_a_late_finish_says_so() -> None:
    assert done(lease(), START, PERIOD.start + timedelta(seconds=60)).event(START).outcome == "OK"
    assert done(lease(), START, PERIOD.start + timedelta(seconds=61)).event(START).outcome == "LATE"


@given(st.integers(1, 9), st.floats(0, 1, exclude_max=True), st.timedeltas(timedelta(0), PERIOD.end - PERIOD.start))
def test_back_off_doubles_has_a_cap_and_never_goes_beyond_the_end(tries: int, chance: float, into: timedelta) -> None:
    known, now = lease(), PERIOD.start + into
    for attempt in range(1, tries + 1):
        known = _fall_short(known, START, now, chance)
        event = known.event(START)
        assert (event.status, event.attempts, event.due_at) == (UNDONE, attempt, PERIOD.start)
        assert now <= event.run_at <= max(now, PERIOD.end)
        assert event.run_at - now <= min(LONGEST_DELAY, timedelta(seconds=2**attempt))


@pytest.mark.parametrize("kind", [START, BEFORE_END, END])
def test_tries_are_counted_and_come_to_an_end(kind: EventKind) -> None:
    known = lease(before_end=WITH_BEFORE_END)
    known = known if kind is START else done(known, START, PERIOD.start)
    now = PERIOD.end if kind is END else PERIOD.start
    for _ in range(MAX_ATTEMPTS[kind]):
        assert known.event(kind).status is UNDONE
        known = _fall_short(known, kind, now)
    assert (known.event(kind).status, known.event(kind).outcome) == (ERROR, "EXHAUSTED")
    again = after(known, event_transitions.requeue(known, known.event(kind).id, now))
    assert (again.event(kind).status, again.event(kind).attempts, again.event(kind).run_at) == (UNDONE, 0, now)


def test_waiting_spends_no_attempt_and_has_a_limit() -> None:
    known, now, limit = done(lease(), START, PERIOD.start), PERIOD.end, timedelta(minutes=10)
    for _ in range(500):
        known = claimed(known, END, now)
        fact = event_transitions.wait(known, known.event(END).id, now, "servers", limit)
        if fact is None:
            break
        known = after(known, fact)
        event = known.event(END)
        assert event.attempts == 0
        assert timedelta(seconds=0.2) <= event.run_at - now <= timedelta(seconds=10)
        now = event.run_at
    assert limit < now - PERIOD.end < limit + timedelta(seconds=11)


def test_a_failed_event_only_is_requeued_and_not_after_the_end() -> None:
    known = lease()
    with pytest.raises(IllegalMove, match="only events in ERROR"):
        event_transitions.requeue(known, known.event(START).id, NOON)
    broken = failed(known, START, PERIOD.start)
    ending = claimed(broken, END, PERIOD.end, 2)
    waiting = after(ending, event_transitions.retry_or_fail(ending, ending.event(END).id, PERIOD.end, "flaky", 0))
    deleting = after(broken, *event_transitions.delete(broken, PERIOD.start))
    for state in (ending, waiting, deleting, done(broken, END, PERIOD.end)):
        with pytest.raises(IllegalMove, match="ended or is ending"):
            event_transitions.requeue(state, state.event(START).id, PERIOD.end)


def test_only_the_moves_of_the_table() -> None:
    known = lease()
    event_id = known.event(START).id
    for move in (
        lambda: event_transitions.finish(done(known, START, NOON), event_id, NOON),
        lambda: event_transitions.fail(known, event_id, NOON, "x"),
        lambda: event_transitions.claim(claimed(known, START, NOON), event_id, 2, NOON),
        lambda: event_transitions.retry_or_fail(known, event_id, NOON, "x", 0),
    ):
        with pytest.raises(IllegalMove):
            move()


def test_delete() -> None:
    fresh = lease(before_end=WITH_BEFORE_END)
    gone = after(fresh, *event_transitions.delete(fresh, NOON))
    assert gone.gone
    assert {(e.status, e.outcome) for e in gone.events} == {(DONE, "CANCELLED")}

    asleep = lease(asleep=True)
    ending = after(asleep, *event_transitions.delete(asleep, NOON))
    assert not ending.gone
    assert (ending.event(END).run_at, ending.event(END).status) == (NOON, UNDONE)
    assert event_transitions.delete(ending, NOON) == ()
    assert done(ending, END, NOON).gone

    with pytest.raises(Busy):
        event_transitions.delete(claimed(fresh, START, PERIOD.start), PERIOD.start)
    stuck = failed(ending, END, NOON)
    assert after(stuck, *event_transitions.delete(stuck, NOON)).event(END).status is UNDONE
    over = done(done(lease(), START, PERIOD.start), END, PERIOD.end)
    assert after(over, *event_transitions.delete(over, PERIOD.end)).gone


def test_dates_of_a_lease_that_has_not_started_move_freely() -> None:
    known = _moved(lease(before_end=WITH_BEFORE_END), NOON + 2 * HOUR, NOON + 9 * HOUR, NOON)
    assert {e.kind: e.due_at for e in known.events} == {
        START: NOON + 2 * HOUR,
        BEFORE_END: NOON + 9 * HOUR - 30 * MINUTE,
        END: NOON + 9 * HOUR,
    }
    with pytest.raises(InvalidInput, match="Start date must be later"):
        event_transitions.new_period(known, NOON - HOUR, None, NOON)
    with pytest.raises(InvalidPeriod, match="End date must be later"):
        event_transitions.new_period(known, None, NOON + 2 * HOUR, NOON)


def test_dates_of_a_lease_that_has_started_or_ended() -> None:
    known = done(lease(), START, PERIOD.start)
    with pytest.raises(InvalidInput, match="Cannot modify the start date"):
        event_transitions.new_period(known, PERIOD.start + MINUTE, None, PERIOD.start)
    with pytest.raises(InvalidPeriod, match="End date must be later"):
        event_transitions.new_period(known, None, PERIOD.start + MINUTE, PERIOD.start + 5 * MINUTE)
    this_minute = PERIOD.start + 5 * MINUTE
    assert event_transitions.new_period(known, None, this_minute, this_minute + timedelta(seconds=20)).end == (
        this_minute + timedelta(seconds=20)
    )
    for over in (known, done(known, END, PERIOD.end), after(known, *event_transitions.delete(known, PERIOD.start))):
        with pytest.raises(InvalidInput, match="can only be renamed"):
            event_transitions.new_period(over, None, PERIOD.end + HOUR, PERIOD.end)


def test_before_end_is_repeated_when_the_lease_is_prolonged_but_not_when_it_is_cut() -> None:
    known = done(done(lease(before_end=WITH_BEFORE_END), START, PERIOD.start), BEFORE_END, WITH_BEFORE_END)
    longer = _moved(known, None, PERIOD.end + HOUR, WITH_BEFORE_END + MINUTE)
    assert (longer.event(BEFORE_END).status, longer.event(BEFORE_END).due_at) == (UNDONE, WITH_BEFORE_END + HOUR)
    cut = _moved(known, None, PERIOD.end - 5 * MINUTE, WITH_BEFORE_END + MINUTE)
    assert cut.event(BEFORE_END).status is DONE
    assert cut.event(END).due_at == PERIOD.end - 5 * MINUTE


def test_a_start_that_was_put_back_does_not_hold_up_an_end_that_comes_sooner() -> None:
    known = lease()
    for _ in range(9):
        known = _fall_short(known, START, PERIOD.start, 0.99)
    assert known.event(START).run_at > PERIOD.start + 4 * MINUTE
    cut = _moved(known, None, PERIOD.start + MINUTE, PERIOD.start + timedelta(seconds=1))
    assert cut.event(START).run_at == PERIOD.start + MINUTE
    assert (cut.event(START).attempts, cut.event(START).token) == (9, 1)


def test_reschedule_is_refused_while_an_event_runs_and_says_nothing_when_nothing_changes() -> None:
    known = lease(before_end=WITH_BEFORE_END)
    assert event_transitions.reschedule(known, Times(PERIOD, None), NOON, uuid4) == ()
    with pytest.raises(Busy):
        event_transitions.reschedule(claimed(known, START, PERIOD.start), Times(PERIOD, None), PERIOD.start, uuid4)
    assert [e.kind for e in _with_new_before_end(lease())] == [BEFORE_END]


def _with_new_before_end(known: Lease) -> tuple[facts.PlannedEvent, ...]:
    (fact,) = event_transitions.reschedule(known, Times(Period(PERIOD.start, PERIOD.end), WITH_BEFORE_END), NOON, uuid4)
    assert isinstance(fact, facts.LeaseRescheduled)
    assert [e.kind for e in after(known, fact).events] == [START, BEFORE_END, END]
    return fact.events


def test_an_adjustment_comes_before_the_end_and_uses_its_event_again() -> None:
    known = done(lease(), START, PERIOD.start)
    planned = event_transitions.adjustment(known, PERIOD.start + MINUTE, uuid4)
    known = after(known, facts.LeaseRescheduled(PERIOD.start + MINUTE, PERIOD, (planned,)))
    assert [e.kind for e in known.events] == [START, EventKind.ADJUST, END]
    known = done(known, EventKind.ADJUST, PERIOD.start + MINUTE)
    assert event_transitions.adjustment(known, PERIOD.start + HOUR, uuid4).id == planned.id
    assert known.event(EventKind.ADJUST).status is EventStatus.DONE
