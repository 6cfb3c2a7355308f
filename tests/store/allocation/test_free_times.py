"""Free times as they are read: overlapping slots are merged, and whole seconds are rounded outwards."""

from datetime import UTC, datetime, timedelta

from climate.context import Climate
from climate.domain.availability.demands import Horizon
from climate.domain.hosts import requirements
from climate.domain.period import Period
from climate.store.allocation import free_times
from climate.store.allocation.hosts import HostRequest
from tests.conftest import Clock
from tests.service.capacity_factory import servers
from tests.service.lease_actions import hosts_wanted, make


def test_overlapping_slots_take_a_host_once_and_hosts_that_are_off_wait(climate: Climate, clock: Clock) -> None:
    make(climate, clock, servers(1), start=1, hours=2)
    make(climate, clock, servers(1), start=2, hours=2)
    make(climate, clock, hosts_wanted(7), start=1, hours=1)
    hour, begin = timedelta(hours=1), int(clock.time.timestamp())
    with climate.engine.begin() as conn:
        conn.exec_driver_sql("UPDATE hosts SET switched_on = false WHERE id = 8")
        period = Period(clock.time, clock.time + 9 * hour)
        wanted = HostRequest(requirements.parse(""), Period(clock.time, clock.time + hour), 1, 1)
        found = free_times.of_hosts(conn, wanted, Horizon(period, clock.time), 60, clock.time + timedelta(minutes=9))
    assert (len(found.gaps.numbers), found.tail) == (8, 60)
    free = {at: found.gaps.free(begin + at, begin + at + 1) for at in (0, 540, 3599, 3600, 7199, 7200, 14399, 14400)}
    assert (len(free[0]), set(free[540]) - set(free[0])) == (7, {8})
    assert [len(free[at]) for at in (3599, 3600, 7199, 7200, 14399, 14400)] == [8, 0, 0, 7, 7, 8]


def test_a_second_that_has_begun_is_counted() -> None:
    assert free_times.seconds(datetime(2030, 1, 1, 0, 0, 1, 999999, UTC)) == free_times.seconds(
        datetime(2030, 1, 1, 0, 0, 1, tzinfo=UTC)
    )
