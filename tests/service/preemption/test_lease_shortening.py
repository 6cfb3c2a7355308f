"""Preemptible leases when an ordinary one needs their hosts: what is planned in its transaction."""

from datetime import timedelta

import pytest
from sqlalchemy import Engine

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import InvalidInput, NotEnoughHosts
from climate.domain.facts import Hold
from climate.domain.period import Period
from climate.domain.status import LeaseStatus
from climate.service.journal import consistency_check
from climate.service.leases import broken_leases, leases, update
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes
from tests.broken_rows import spoil
from tests.conftest import MEMBER, STRANGER, Clock
from tests.scenarios.test_races import nothing_is_promised_twice
from tests.service.lease_actions import get, held, hosts_wanted, kinds, run_due
from tests.service.preemption.steps import ALL, LEAD, NOTICE, ends, ordinary, spare, told


def test_free_hosts_are_taken_first(climate: Climate, clock: Clock) -> None:
    lease = spare(climate, clock, ALL - 1)
    other = ordinary(climate, clock)
    assert not held(other) & held(lease)
    assert kinds(climate, lease) == ["LeaseCreated"]


def test_a_running_lease_loses_no_more_than_what_is_needed(climate: Climate, clock: Clock) -> None:
    lease = spare(climate, clock, 2, ALL)
    run_due(climate)
    other = ordinary(climate, clock, hosts_wanted(3), start=3)
    after = get(climate, lease)
    assert held(after) == held(lease), "taken before it was needed"
    assert ends(after)[:3] == [other.period.start] * 3
    assert ends(after)[3:] == [lease.period.end] * (ALL - 3)
    plans = after.reservations[0].preemptions
    assert {plan.host for plan in plans} == held(other)
    assert {plan.take_at for plan in plans} == {other.period.start - LEAD}
    assert {plan.warn_at for plan in plans} == {other.period.start - LEAD - NOTICE}
    assert {plan.needed_by for plan in plans} == {other.id}
    assert told(climate, lease) == ["lease.preemption_planned"]
    assert nothing_is_promised_twice(climate)
    assert consistency_check.differences(climate) == []


def test_an_ordinary_lease_has_no_fewer_hosts_for_preemptible_ones(climate: Climate, clock: Clock) -> None:
    lease = spare(climate, clock, 1, ALL - 2)
    other = ordinary(climate, clock, hosts_wanted(1, 5), start=1, hours=1)
    assert len(held(other)) == 5
    assert len(held(other) & held(lease)) == 3


def test_a_lease_without_enough_hosts_ends_before_its_start(climate: Climate, clock: Clock) -> None:
    lease = spare(climate, clock, ALL - 2, start=5, hours=1)
    filler = ordinary(climate, clock, hosts_wanted(2), start=5, hours=1)
    early = ordinary(climate, clock, hosts_wanted(ALL - 2), start=1, hours=4.5)
    after = get(climate, lease)
    assert held(early) == held(lease)
    assert after.status is LeaseStatus.TERMINATED
    assert held(after) == set()
    assert "too few of its hosts" in str(after.reason)
    assert told(climate, lease) == ["lease.preempted"]
    assert held(filler)
    assert consistency_check.differences(climate) == []


def test_a_lease_that_has_not_started_moves_where_it_can(climate: Climate, clock: Clock) -> None:
    lease = spare(climate, clock, 2, start=5, hours=1)
    mine = held(lease)
    needed = f'["==", "$hypervisor_hostname", "h{min(mine)}"]'
    one = ordinary(climate, clock, hosts_wanted(hypervisor_properties=needed), start=5, hours=1)
    after = get(climate, lease)
    assert held(one) == {min(mine)}
    assert len(held(after)) == 2
    assert not held(after) & held(one)
    assert told(climate, lease) == ["lease.preemption_moved"]
    assert after.period == lease.period
    assert consistency_check.differences(climate) == []


def test_a_preemptible_lease_takes_nothing_from_anybody(climate: Climate, clock: Clock) -> None:
    spare(climate, clock, ALL - 1)
    with pytest.raises(NotEnoughHosts, match="2 wanted, 8 match, 1 of them free"):
        spare(climate, clock, 2)
    ordinary(climate, clock, start=0, hours=8)
    with pytest.raises(NotEnoughHosts, match="1 wanted, 8 match, 0 of them free"):
        spare(climate, clock, 1)


def test_a_refusal_counts_preemptible_hosts_as_free(climate: Climate, clock: Clock) -> None:
    lease = spare(climate, clock, ALL - 1, hours=8)
    ordinary(climate, clock, hours=2)
    with pytest.raises(
        NotEnoughHosts, match="8 wanted, 8 match, 7 of them free; it would fit from 2030-01-01 14:00:00"
    ):
        ordinary(climate, clock, hosts_wanted(ALL))
    assert kinds(climate, lease) == ["LeaseCreated"], "a refusal took a host"


def test_the_lease_that_loses_least_gives_way(climate: Climate, clock: Clock) -> None:
    long = spare(climate, clock, 4, hours=9)
    short = spare(climate, clock, 1, 4, hours=4)
    other = ordinary(climate, clock, hosts_wanted(2), start=3, hours=2)
    assert held(other) <= held(short)
    assert kinds(climate, long) == ["LeaseCreated"]


def test_a_lease_above_its_minimum_gives_way_before_one_that_would_end(climate: Climate, clock: Clock) -> None:
    tight = spare(climate, clock, 4, hours=4)
    roomy = spare(climate, clock, 1, 4, hours=5)
    assert held(ordinary(climate, clock, start=2, hours=2)) <= held(roomy)
    assert kinds(climate, tight) == ["LeaseCreated"]


def test_the_second_lease_on_a_host_comes_earlier_than_the_first(climate: Climate, clock: Clock) -> None:
    lease = spare(climate, clock, 1, ALL)
    run_due(climate)
    late = ordinary(climate, clock, hosts_wanted(ALL), start=5, hours=1)
    early = ordinary(climate, clock, hosts_wanted(ALL), start=1, hours=1)
    assert ends(get(climate, lease)) == [early.period.start] * ALL
    assert {plan.needed_by for plan in get(climate, lease).reservations[0].preemptions} == {early.id}
    assert late.id != early.id
    assert nothing_is_promised_twice(climate)


def test_a_start_within_the_same_moment_leaves_an_instant(climate: Climate, clock: Clock) -> None:
    lease = spare(climate, clock, 1, ALL)
    run_due(climate)
    begin = clock.time - timedelta(seconds=30)
    other = leases.create(
        climate, STRANGER, LeaseRequest("o", begin, begin + timedelta(hours=1), None, [hosts_wanted()])
    )
    after = get(climate, lease)
    number = held(other).pop()
    instant = Period(begin - timedelta(seconds=1), begin)
    assert Hold(number, instant) in after.reservations[0].holds
    (plan,) = after.reservations[0].preemptions
    assert plan.take_at == clock.time + NOTICE
    assert run_due(climate) == 0, "started on a host that is in use"
    assert consistency_check.differences(climate) == []


def test_a_running_lease_is_prolonged_over_preemptible_ones(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = ordinary(climate, clock, hosts_wanted(ALL), hours=2)
    run_due(climate)
    waits = spare(climate, clock, 1, ALL, start=2, hours=2)
    longer = update.update(climate, STRANGER, lease.id, Changes(end=lease.period.end + timedelta(hours=1)))
    assert held(longer) == set(range(1, ALL + 1))
    assert get(climate, waits).status is LeaseStatus.TERMINATED
    assert nothing_is_promised_twice(climate)
    assert consistency_check.differences(climate) == []


def test_it_is_all_of_a_lease_or_nothing(climate: Climate, clock: Clock) -> None:
    end = clock.time + timedelta(hours=1)
    both = [hosts_wanted(preemptible=True), hosts_wanted()]
    with pytest.raises(InvalidInput, match="preemptible must be true for all reservations of a lease, or for none"):
        leases.create(climate, MEMBER, LeaseRequest("l", None, end, None, both))


def test_it_cannot_be_changed(climate: Climate, clock: Clock) -> None:
    lease = spare(climate, clock)
    change = {"id": str(lease.reservations[0].id), "preemptible": False}
    with pytest.raises(InvalidInput, match="preemptible of a reservation cannot be changed"):
        update.update(climate, MEMBER, lease.id, Changes(reservations=[change]))


def test_a_dry_run_takes_nothing(climate: Climate, clock: Clock) -> None:
    lease = spare(climate, clock, 1, ALL)
    order = LeaseRequest("o", None, clock.time + timedelta(hours=1), None, [hosts_wanted()])
    assert held(leases.create(climate, STRANGER, order, dry_run=True))
    assert kinds(climate, lease) == ["LeaseCreated"]


def test_lease_that_cannot_be_read_keeps_its_hosts_and_others_give_way(
    climate: Climate, clock: Clock, engine: Engine
) -> None:
    bad = spare(climate, clock, ALL // 2, hours=8, start=1)
    other = spare(climate, clock, 1, ALL // 2, hours=8, start=1)
    spoil(engine, bad.id)
    made = ordinary(climate, clock, hosts_wanted(ALL // 2), start=1)
    assert held(made) == held(other)
    with pytest.raises(NotEnoughHosts):
        ordinary(climate, clock, hosts_wanted(1), start=1)
    broken_leases.repair_lease(climate, bad.id, "events")
    assert held(get(climate, bad)) == held(bad)
