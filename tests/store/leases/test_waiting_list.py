"""Marks of the waiting list: what was released, which leases it concerns, and when all of it is tried."""

from datetime import timedelta

import pytest

from climate.context import Climate
from climate.domain.lease import Lease
from climate.domain.period import Period
from climate.store.leases import healing_waits, waiting_list
from climate.store.leases.waiting_list import Marks
from tests.conftest import Clock
from tests.service.lease_actions import hosts_wanted, make
from tests.service.waiting_list.test_entries import ALL, queue

HOUR = timedelta(hours=1)


@pytest.fixture
def line(climate: Climate, clock: Clock) -> list[Lease]:
    """Leases that wait: two of a fixed period in 2 and 6 hours, one whose period moves for 12 hours."""
    make(climate, clock, hosts_wanted(ALL), start=0, hours=20)
    found = [queue(climate, clock, start=2), queue(climate, clock, start=6), queue(climate, clock, start=1, until=12)]
    with climate.engine.begin() as conn:
        waiting_list.settle(conn, waiting_list.due(conn, clock.time), clock.time)
    return found


def concerned(climate: Climate, clock: Clock, patience: timedelta | None = None) -> list[tuple[str, bool]]:
    """Ids of the leases that the due marks concern, and whether they are passed over."""
    with climate.engine.connect() as conn:
        marks = waiting_list.due(conn, clock.time)
        entries = waiting_list.entries(conn, marks, clock.time, 7, patience)
    return [(str(entry.lease_id), entry.is_passed_over) for entry in entries]


def release(climate: Climate, *periods: Period) -> None:
    with climate.engine.begin() as conn:
        healing_waits.wake(conn, periods)


def test_a_release_concerns_the_leases_whose_periods_it_overlaps(
    climate: Climate, clock: Clock, line: list[Lease]
) -> None:
    early, late, moving = (str(lease.id) for lease in line)
    assert concerned(climate, clock) == []
    release(climate, Period(clock.time + 3 * HOUR, clock.time + 4 * HOUR))
    assert concerned(climate, clock) == [(early, False), (moving, False)]
    release(climate, Period(clock.time + 7 * HOUR, clock.time + 9 * HOUR))
    assert concerned(climate, clock) == [(early, False), (late, False), (moving, False)]


def test_a_release_after_all_periods_concerns_nobody(climate: Climate, clock: Clock, line: list[Lease]) -> None:
    release(climate, Period(clock.time + 14 * HOUR, clock.time + 20 * HOUR))
    assert concerned(climate, clock) == []


def test_fixed_periods_that_overlap_the_concerned_ones_come_with_them(
    climate: Climate, clock: Clock, line: list[Lease]
) -> None:
    early, late, moving = (str(lease.id) for lease in line)
    release(climate, Period(clock.time + 1 * HOUR, clock.time + 2 * HOUR))
    assert concerned(climate, clock) == [(moving, False)]
    assert concerned(climate, clock, HOUR) == [(moving, False)], "nobody has waited for an hour"
    assert concerned(climate, clock, timedelta(0)) == [(early, True), (late, True), (moving, False)]


def test_a_release_of_any_resource_concerns_all(climate: Climate, clock: Clock, line: list[Lease]) -> None:
    with climate.engine.begin() as conn:
        healing_waits.wake(conn)
    assert concerned(climate, clock) == [(str(lease.id), False) for lease in line]


def test_a_lease_that_was_refused_is_passed_over_for_a_time(climate: Climate, clock: Clock, line: list[Lease]) -> None:
    with climate.engine.begin() as conn:
        waiting_list.mark_lease(conn, line[0].id, clock.time + HOUR)
        healing_waits.wake(conn)
    assert concerned(climate, clock)[0] == (str(line[0].id), True)
    clock.forward(hours=1)
    assert concerned(climate, clock)[0] == (str(line[0].id), False)


def test_settled_marks_are_gone_and_those_of_the_meantime_stay(
    climate: Climate, clock: Clock, line: list[Lease]
) -> None:
    release(climate, Period(clock.time, clock.time + HOUR))
    with climate.engine.connect() as conn:
        marks = waiting_list.due(conn, clock.time)
    release(climate, Period(clock.time + HOUR, clock.time + 2 * HOUR))
    with climate.engine.begin() as conn:
        waiting_list.settle(conn, marks, clock.time)
        left = waiting_list.due(conn, clock.time)
    assert left.during == Period(clock.time + HOUR, clock.time + 2 * HOUR)
    assert not set(marks.ids) & set(left.ids)


def test_promises_count_until_they_begin(climate: Climate, clock: Clock, line: list[Lease]) -> None:
    with climate.engine.begin() as conn:
        waiting_list.mark_promise(conn, line[0].id, Period(clock.time + HOUR, clock.time + 2 * HOUR))
        assert waiting_list.promised(conn, clock.time) == 1
        assert waiting_list.promised(conn, clock.time + HOUR) == 0
        assert waiting_list.length(conn) == (3, clock.time)
        assert waiting_list.entries(conn, Marks((), False, None, ()), clock.time, 7, None) == []
