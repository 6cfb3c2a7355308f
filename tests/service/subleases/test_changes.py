"""Changes of sub-leases, and of leases that have some."""

from datetime import timedelta

import pytest

from climate.context import Climate
from climate.domain.errors import Busy, Conflict, Forbidden, LimitExceeded
from climate.domain.host_hours import stretches
from climate.domain.hosts.pools import Pool
from climate.domain.lease import Lease
from climate.domain.limits import Limit
from climate.service.admission import limits
from climate.service.journal import consistency_check
from climate.service.leases import leases, update
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock
from tests.scenarios.test_races import nothing_is_promised_twice
from tests.service.lease_actions import facts, get, held, hosts_wanted, kinds, reservation, rows, run_due
from tests.service.preemption.steps import spare
from tests.service.subleases.steps import ALL, give, parent, pool_of, tick

HOUR = timedelta(hours=1)


@pytest.mark.parametrize("start", [0, 3])
def test_a_lease_with_sub_leases_is_neither_shortened_nor_deleted(climate: Climate, clock: Clock, start: int) -> None:
    long = parent(climate, clock)
    run_due(climate)
    lease = give(climate, clock, long, start=start)
    tick(climate, clock)
    clock.time += HOUR
    before = rows(climate.engine)
    fewer = [{"id": reservation(long), "min": 1, "max": 2}]
    for changes in (
        Changes(end=long.period.end - HOUR),
        Changes(end_now=True),
        Changes(reservations=fewer),
    ):
        with pytest.raises(Conflict, match=str(lease.id)):
            update.update(climate, MEMBER, long.id, changes)
    for caller in (MEMBER, ADMIN):
        with pytest.raises(Conflict, match=str(lease.id)):
            leases.delete(climate, caller, long.id)
    assert rows(climate.engine) == before
    leases.delete(climate, STRANGER, lease.id)
    tick(climate, clock)
    leases.delete(climate, MEMBER, long.id)
    tick(climate, clock)
    assert consistency_check.differences(climate) == []


@pytest.mark.parametrize("start", [0, 3])
def test_a_lease_with_sub_leases_is_prolonged_with_them(climate: Climate, clock: Clock, start: int) -> None:
    long = parent(climate, clock)
    run_due(climate)
    lease = give(climate, clock, long, start=start)
    tick(climate, clock)
    update.update(climate, MEMBER, long.id, Changes(end=long.period.end + HOUR))
    own = get(climate, lease)
    assert own.parent is not None
    until = own.parent.until
    assert until == long.reservations[0].holds[0].during.end + HOUR
    assert {hold.during.end for hold in own.reservations[0].holds} == {until}
    ends = {hold.host: hold.during.end for hold in get(climate, long).reservations[0].holds}
    assert {ends[host] for host in held(long) - held(lease)} == {until}
    assert {ends.get(host) for host in held(lease)} == {lease.reservations[0].holds[0].during.start if start else None}
    tick(climate, clock, lease.period.end)
    again = get(climate, long)
    assert held(again) == held(long)
    assert {hold.during.end for hold in again.reservations[0].holds} == {until}
    assert consistency_check.differences(climate) == []


def test_a_lease_is_not_prolonged_if_a_host_in_a_sub_lease_is_promised(climate: Climate, clock: Clock) -> None:
    long = parent(climate, clock, hosts_wanted(ALL))
    run_due(climate)
    lease = give(climate, clock, long)
    (host, *_) = held(lease)
    named = f'["==", "$hypervisor_hostname", "h{host}"]'
    parent(climate, clock, hosts_wanted(hypervisor_properties=named), start=24)
    with pytest.raises(Conflict, match="promised to another"):
        update.update(climate, MEMBER, long.id, Changes(end=long.period.end + HOUR))


def test_a_lease_waits_for_a_deleted_sub_lease(climate: Climate, clock: Clock) -> None:
    long = parent(climate, clock)
    run_due(climate)
    lease = give(climate, clock, long, start=3)
    leases.delete(climate, STRANGER, lease.id)
    with pytest.raises(Busy, match="try again"):
        update.update(climate, MEMBER, long.id, Changes(end=long.period.end + HOUR))
    tick(climate, clock)
    update.update(climate, MEMBER, long.id, Changes(end=long.period.end + HOUR))
    assert consistency_check.differences(climate) == []


def test_a_lease_is_deleted_as_soon_as_its_sub_leases_are_over(climate: Climate, clock: Clock) -> None:
    long = parent(climate, clock)
    run_due(climate)
    lease = give(climate, clock, long, start=3)
    leases.delete(climate, STRANGER, lease.id)
    leases.delete(climate, MEMBER, long.id)
    tick(climate, clock)
    assert {host for host in held(long) if pool_of(climate, host) is Pool.RESERVATION} == held(long)
    assert len(held(parent(climate, clock, hosts_wanted(ALL)))) == ALL
    assert consistency_check.differences(climate) == []


def test_a_sub_lease_is_prolonged_by_its_giver_only_and_within_the_parent(climate: Climate, clock: Clock) -> None:
    long = parent(climate, clock)
    run_due(climate)
    lease = give(climate, clock, long)
    tick(climate, clock)
    later = Changes(end=lease.period.end + HOUR)
    with pytest.raises(Forbidden, match="only the project that gave it"):
        update.update(climate, STRANGER, lease.id, later)
    update.update(climate, MEMBER, lease.id, later)
    with pytest.raises(Conflict, match="ends with its parent at the latest"):
        update.update(climate, ADMIN, lease.id, Changes(end=long.period.end + HOUR))
    with pytest.raises(Forbidden, match="yours gave it"):
        update.update(climate, MEMBER, lease.id, Changes(name="mine"))
    update.update(climate, STRANGER, lease.id, Changes(end=lease.period.end - HOUR, name="theirs"))
    after = get(climate, lease)
    assert (after.name, after.period.end) == ("theirs", lease.period.end - HOUR)
    assert after.reservations[0].holds == lease.reservations[0].holds
    with pytest.raises(Conflict, match="is a sub-lease"):
        update.update(climate, STRANGER, lease.id, Changes(reservations=[{"id": reservation(lease), "max": 3}]))
    assert consistency_check.differences(climate) == []


def test_hours_in_a_sub_lease_count_once_and_for_the_receiver(climate: Climate, clock: Clock) -> None:
    long = parent(climate, clock, hours=10)
    run_due(climate)
    lease = give(climate, clock, long, hours=4)
    tick(climate, clock, lease.period.end)
    tick(climate, clock, long.period.end)
    hours = {one.project_id: _hours(climate, one) for one in (long, lease)}
    assert sum(hours.values()) == pytest.approx(40, abs=0.3)
    assert hours[STRANGER.project_id] == pytest.approx(8, abs=0.1)


def _hours(climate: Climate, lease: Lease) -> float:
    return sum((one.during.end - one.during.start) / HOUR for one in stretches(facts(climate, lease)))


def test_hosts_in_a_sub_lease_count_in_the_limits_of_the_giver(climate: Climate, clock: Clock) -> None:
    limits.put(climate, ADMIN, MEMBER.project_id, {Limit.HOSTS_AT_ONCE: 4})
    limits.put(climate, ADMIN, STRANGER.project_id, {Limit.HOSTS_AT_ONCE: 1, Limit.LEASES: 1})
    long = parent(climate, clock)
    run_due(climate)
    give(climate, clock, long)
    tick(climate, clock)
    with pytest.raises(LimitExceeded):
        parent(climate, clock, hosts_wanted(1), hours=1)
    update.update(climate, MEMBER, long.id, Changes(end=long.period.end + HOUR))
    begin = clock.time + HOUR
    own = leases.create(climate, STRANGER, LeaseRequest("own", begin, begin + HOUR, None, [hosts_wanted(1)]))
    assert len(held(own)) == 1


def test_a_preemptible_lease_gives_way_to_a_later_end(climate: Climate, clock: Clock) -> None:
    long = parent(climate, clock)
    run_due(climate)
    lease = give(climate, clock, long, start=3)
    rest = spare(climate, clock, ALL, start=25)
    later = long.period.end + timedelta(hours=4)
    update.update(climate, MEMBER, long.id, Changes(end=later))
    assert {hold.during.end for hold in get(climate, lease).reservations[0].holds} == {later}
    assert "LeasePreempted" in kinds(climate, rest)
    ordinary = parent(climate, clock, hosts_wanted(ALL), start=29)
    with pytest.raises(Conflict, match="promised to another"):
        update.update(climate, MEMBER, long.id, Changes(end=ordinary.period.start + HOUR))
    assert nothing_is_promised_twice(climate)
    assert consistency_check.differences(climate) == []
