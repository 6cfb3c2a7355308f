"""A worker that is killed while it takes or returns hosts of a sub-lease: the next one goes on, and does it once."""

import pytest

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.lease import Lease
from climate.domain.status import LeaseStatus
from climate.service.events import event_dispatch
from climate.service.hosts import reconcile
from climate.service.journal import consistency_check
from climate.service.subleases import round as subleases
from tests.conftest import Clock
from tests.scenarios.test_races import nothing_is_promised_twice
from tests.service.lease_actions import get, held, kinds, reservation, run_due
from tests.service.preemption.test_killed import killed
from tests.service.subleases.steps import give, parent, tick, told

PLACES = [("commit", 0), ("commit", 1), ("verb", 0), ("verb", 1)]


def in_pool(cloud: FakeCloud, lease: Lease) -> set[str]:
    return set(cloud.pools().get(reservation(lease), ()))


def names(lease: Lease) -> set[str]:
    return {f"h{host}" for host in held(lease)}


@pytest.mark.parametrize(("where", "number"), PLACES)
def test_hosts_are_taken_once(climate: Climate, clock: Clock, cloud: FakeCloud, where: str, number: int) -> None:
    long = parent(climate, clock)
    run_due(climate)
    lease = give(climate, clock, long)
    with killed(climate, cloud, where, number) as reached:
        subleases.run_round(climate)
    assert reached
    assert nothing_is_promised_twice(climate)
    reconcile.correct(climate)
    clock.forward(minutes=3)
    tick(climate, clock)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    assert in_pool(cloud, lease) == names(lease)
    assert in_pool(cloud, long) == names(long) - names(lease)
    assert (told(climate, long), kinds(climate, long).count("SubletHostsTaken")) == (["lease.sublet"], 1)
    assert nothing_is_promised_twice(climate)
    assert consistency_check.differences(climate) == []


@pytest.mark.parametrize(("where", "number"), PLACES)
def test_hosts_are_returned_once(climate: Climate, clock: Clock, cloud: FakeCloud, where: str, number: int) -> None:
    long = parent(climate, clock)
    run_due(climate)
    lease = give(climate, clock, long)
    tick(climate, clock)
    clock.time = lease.period.end
    run_due(climate)
    with killed(climate, cloud, where, number) as reached:
        subleases.run_round(climate)
        run_due(climate)
    assert reached
    assert nothing_is_promised_twice(climate)
    reconcile.correct(climate)
    clock.forward(minutes=3)
    event_dispatch.rescue(climate, "poller")
    clock.forward(minutes=1)
    tick(climate, clock)
    assert held(get(climate, long)) == held(long)
    assert in_pool(cloud, long) == names(long)
    assert kinds(climate, long).count("SubletHostsReturned") == kinds(climate, lease).count("SubleaseReturned") == 1
    assert nothing_is_promised_twice(climate)
    assert consistency_check.differences(climate) == []


@pytest.mark.parametrize("number", range(3))
def test_who_is_killed_while_it_gives_has_given_all_or_nothing(
    climate: Climate, clock: Clock, cloud: FakeCloud, number: int
) -> None:
    long = parent(climate, clock)
    run_due(climate)
    before = get(climate, long)
    with killed(climate, cloud, "commit", number):
        give(climate, clock, long)
    after = get(climate, long)
    assert after == before or len(after.reservations[0].sublets) == 2
    assert nothing_is_promised_twice(climate)
    assert consistency_check.differences(climate) == []
