"""A lease whose host is not given back by the one before it starts on another host."""

from datetime import timedelta

from climate.cloud import Refused
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.status import LeaseStatus
from climate.service.journal import consistency_check
from climate.service.leases import healing, leases
from climate.service.leases.leases import LeaseRequest
from tests.conftest import MEMBER, Clock
from tests.service.host_operations.test_recycling import spread
from tests.service.lease_actions import get, held, hosts_wanted, make, run_due


def stuck(climate: Climate, clock: Clock, cloud: FakeCloud, count: int) -> set[int]:
    """`count` hosts of a lease whose end was given up, just now."""
    first = make(climate, clock, hosts_wanted(count), start=0, hours=1)
    run_due(climate)
    cloud.failures["take_back"] = Refused("stuck")
    clock.forward(hours=1)
    run_due(climate)
    cloud.failures.clear()
    assert get(climate, first).status is LeaseStatus.ERROR
    return held(first)


def next_on(climate: Climate, clock: Clock, count: int, minutes: int) -> LeaseRequest:
    start = clock.time + timedelta(minutes=minutes)
    return LeaseRequest("next", start, start + timedelta(hours=1), None, [hosts_wanted(count)])


def test_it_gets_other_hosts_in_time_and_starts(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    kept = stuck(climate, clock, cloud, 4)
    lease = leases.create(climate, MEMBER, next_on(climate, clock, 8 - len(kept), minutes=30))
    while not held(lease) & kept:  # the choice is at random: until it fell on a host that is not given back
        leases.delete(climate, MEMBER, lease.id)
        lease = leases.create(climate, MEMBER, next_on(climate, clock, 8 - len(kept), minutes=30))
    assert healing.heal_all(climate) == []
    clock.forward(minutes=21)
    assert healing.heal_all(climate) == [lease.id]
    assert not held(get(climate, lease)) & kept
    assert healing.heal_all(climate) == []
    clock.forward(minutes=9)
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    assert consistency_check.differences(climate) == []


def test_where_nothing_else_is_free_it_goes_on_waiting(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    stuck(climate, clock, cloud, 1)
    lease = leases.create(climate, MEMBER, next_on(climate, clock, 8, minutes=5))
    assert healing.heal_all(climate) == []
    assert get(climate, lease) == lease


def test_a_lease_that_was_begun_keeps_its_hosts(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = make(climate, clock, hosts_wanted(2), start=0, hours=9)
    run_due(climate)
    stuck(climate, clock, cloud, 3)
    assert healing.heal_all(climate) == []
    assert held(get(climate, lease)) == held(lease)


def test_an_end_that_takes_too_long_is_not_waited_for(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    first = make(climate, clock, hosts_wanted(1), start=0, hours=1)
    run_due(climate)
    (number,) = held(first)
    cloud.boot("project", f"h{number}")
    cloud.looks_until_gone = 10**6
    lease = spread(climate, clock, number, minutes=65, alike=f"h{number % 8 + 1}")
    clock.time = first.period.end
    run_due(climate)
    clock.forward(minutes=10)
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.PENDING
    assert healing.heal_all(climate) == [lease.id]
    run_due(climate)
    after = get(climate, lease)
    assert (after.status, held(after), after.degraded) == (LeaseStatus.ACTIVE, {number % 8 + 1}, False)
    assert get(climate, first).status is LeaseStatus.TERMINATING
    assert consistency_check.differences(climate) == []
