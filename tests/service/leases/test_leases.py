"""A lease is promised, or refused with a reason and without a trace."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import Forbidden, InvalidInput, InvalidPeriod, InvalidRequirements, NotEnoughHosts, NotFound
from climate.domain.lease import Lease
from climate.domain.policy import Caller
from climate.service.journal import consistency_check
from climate.service.leases import leases, update
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes
from climate.store.leases.leases import Listing
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock
from tests.service.conftest import CLEANING
from tests.service.lease_actions import held, hosts_wanted, make, rows

DAY = timedelta(days=1)


def test_it_takes_free_matching_hosts(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(2, resource_properties='[">", "$gpu_count", "1"]'))
    assert held(lease) < {5, 6, 7, 8}
    assert len(held(lease)) == 2


@pytest.mark.parametrize(("least", "most", "expected"), [(1, 3, 3), (2, 20, 8), (8, 8, 8)])
def test_as_many_as_are_free_up_to_max(climate: Climate, clock: Clock, least: int, most: int, expected: int) -> None:
    assert len(held(make(climate, clock, hosts_wanted(least, most)))) == expected


@pytest.mark.parametrize("years", [169, 170, 300, 6000])
def test_none_ends_after_the_last_date(climate: Climate, clock: Clock, years: int) -> None:
    start = clock.time.replace(year=2030 + years, month=12, day=30)
    with pytest.raises(InvalidPeriod, match="the last possible date"):
        leases.create(climate, MEMBER, LeaseRequest("late", start, start + DAY, None, [hosts_wanted(1)]))


def test_max_takes_what_is_left_over(climate: Climate, clock: Clock) -> None:
    first = make(climate, clock, hosts_wanted(6))
    second = make(climate, clock, hosts_wanted(1, 5))
    assert held(first) | held(second) == set(range(1, 9))


def test_it_does_not_matter_which_of_its_reservations_is_asked_for_first(climate: Climate, clock: Clock) -> None:
    make(climate, clock, hosts_wanted(3, hypervisor_properties='["<", "$vcpus", "8"]'))
    gpus = hosts_wanted(1, 4, resource_properties='[">", "$gpu_count", "1"]')
    one = hosts_wanted(1, hypervisor_properties='["==", "$hypervisor_hostname", "h5"]')
    lease = make(climate, clock, hosts_wanted(1, 8), gpus, one)
    anything, some, this = (set(r.hosts) for r in lease.reservations)
    assert this == {5}
    assert some | anything == {6, 7, 8, *anything - {5, 6, 7, 8}}
    assert len(anything - {5, 6, 7, 8}) == 1
    moved = update.update(
        climate, MEMBER, lease.id, Changes(start=lease.period.start + DAY, end=lease.period.end + DAY)
    )
    assert held(moved) == set(range(1, 9))
    assert moved.reservations[2].hosts == (5,)
    with pytest.raises(NotEnoughHosts, match=r"for reservations 1 and 2 together: .*8 free, 1 too few"):
        make(climate, clock, hosts_wanted(1), hosts_wanted(8), start=50)


def test_reservations_of_one_lease_never_share_a_host(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(3), hosts_wanted(2), hosts_wanted(1, 8))
    assert [len(r.hosts) for r in lease.reservations] == [3, 2, 3]
    assert len(held(lease)) == 8


def test_together_they_may_want_too_much(climate: Climate, clock: Clock, engine: Engine) -> None:
    before = rows(engine)
    with pytest.raises(NotEnoughHosts):
        make(climate, clock, hosts_wanted(5), hosts_wanted(4))
    assert rows(engine) == before


def test_a_host_is_free_again_the_moment_a_lease_ends(climate: Climate, clock: Clock) -> None:
    make(climate, clock, hosts_wanted(8), start=1, hours=2)
    make(climate, clock, hosts_wanted(8), start=3, hours=2)
    with pytest.raises(NotEnoughHosts):
        make(climate, clock, start=2.99, hours=0.02)
    assert make(climate, clock, hosts_wanted(8), start=0.5, hours=0.5)


def test_cleaning_time_is_kept_free_after_each_lease(cleaned: Climate, clock: Clock) -> None:
    lease = make(cleaned, clock, hosts_wanted(8), start=2, hours=2)
    (during,) = {hold.during for hold in lease.reservations[0].holds}
    assert (during.start, during.end) == (lease.period.start, lease.period.end + CLEANING)
    margin = CLEANING / timedelta(hours=1)
    for start, hours in ((4 + 0.9 * margin, 1), (0.5, 1.5 - 0.9 * margin)):
        with pytest.raises(NotEnoughHosts):
            make(cleaned, clock, start=start, hours=hours)
    assert make(cleaned, clock, start=4 + margin, hours=1)
    assert make(cleaned, clock, start=0.5, hours=1.5 - margin)


def test_best_fit_keeps_long_free_stretches_whole(climate: Climate, clock: Clock) -> None:
    before = make(climate, clock, hosts_wanted(1), start=1, hours=2)
    after = make(climate, clock, hosts_wanted(1), start=5, hours=2)
    assert held(before) == held(after), "the second lease should stand beside the first"
    between = make(climate, clock, hosts_wanted(1), start=3, hours=2)
    assert held(between) == held(before), "the gap between two leases is the tightest fit"


def test_hosts_are_chosen_by_chance_where_the_setting_says_so(climate: Climate, clock: Clock) -> None:
    make(climate, clock, hosts_wanted(1), start=1, hours=1)
    random = replace(climate, settings=replace(climate.settings, randomize_host_selection=True))
    best, chance = (
        {host for at in range(20) for host in held(make(one, clock, hosts_wanted(1), start=10 * at + 5, hours=1))}
        for one in (climate, random)
    )
    assert len(best) == 1
    assert len(chance) >= 4


def test_a_shortage_says_how_many_match_how_many_are_free_and_when_it_would_fit(
    climate: Climate, clock: Clock, engine: Engine
) -> None:
    gpu: dict[str, Any] = {"resource_properties": '[">", "$gpu_count", "1"]'}
    make(climate, clock, hosts_wanted(3, **gpu), start=1, hours=2)
    before = rows(engine)
    with pytest.raises(NotEnoughHosts, match=r"2 wanted, 4 match, 1 of them free; .* from 2030-01-01 15:00"):
        make(climate, clock, hosts_wanted(2, **gpu), start=2, hours=1)
    with pytest.raises(NotEnoughHosts, match="5 wanted, 4 match"):
        make(climate, clock, hosts_wanted(5, **gpu), start=2, hours=1)
    assert rows(engine) == before


def test_when_it_would_fit_it_fits(climate: Climate, clock: Clock) -> None:
    for start in (1, 2, 4):
        make(climate, clock, hosts_wanted(3), start=start, hours=2.5)
    with pytest.raises(NotEnoughHosts, match="would fit from 2030-01-01 18:30:00"):
        make(climate, clock, hosts_wanted(8), start=1, hours=1)
    assert make(climate, clock, hosts_wanted(8), start=6.5, hours=1)


def test_it_fits_as_soon_as_the_hosts_are_cleaned_and_no_later(cleaned: Climate, clock: Clock) -> None:
    make(cleaned, clock, hosts_wanted(8), start=1, hours=2)
    with pytest.raises(NotEnoughHosts, match="would fit from 2030-01-01 15:10:00"):
        make(cleaned, clock, start=2, hours=1)
    assert make(cleaned, clock, start=3 + CLEANING / timedelta(hours=1), hours=1)


SPECS: list[tuple[dict[str, Any], type[Exception]]] = [
    ({"resource_type": "unknown"}, InvalidInput),
    ({}, InvalidInput),
    (hosts_wanted(2, 1), InvalidInput),
    (hosts_wanted(1, hypervisor_properties="[]["), InvalidRequirements),
    (hosts_wanted(1, resource_properties='["==", "$nobody_has_this", "1"]'), InvalidRequirements),
    (hosts_wanted(1, hypervisor_properties='["==", "$vcpus", "many"]'), InvalidRequirements),
    (hosts_wanted(1, resource_properties='["==", "$gpu_count", "a\\u0000b"]'), InvalidRequirements),
    (hosts_wanted(1, resource_properties='["==", "$gpu_count", "\\ud800"]'), InvalidRequirements),
    (hosts_wanted(9), NotEnoughHosts),
    ({"resource_type": "virtual:instance", "resource_id": "11111111-1111-1111-1111-111111111111"}, NotFound),
]


@pytest.mark.parametrize(("spec", "error"), SPECS)
def test_a_refused_lease_leaves_nothing(
    climate: Climate, clock: Clock, engine: Engine, spec: dict[str, Any], error: type[Exception]
) -> None:
    before = rows(engine)
    with pytest.raises(error):
        make(climate, clock, hosts_wanted(1), spec)
    assert rows(engine) == before
    assert make(climate, clock, hosts_wanted(8))


@pytest.mark.parametrize(
    ("start", "end"),
    [(-0.1, 1), (1, 1), (1, 0.5), (1, 24 * 731 + 1), (-0.01, -0.005), (-0.01, 0), (None, 0)],
)
def test_dates_that_are_refused(climate: Climate, clock: Clock, start: float | None, end: float) -> None:
    clock.forward(milliseconds=500)
    begin = None if start is None else clock.time + timedelta(hours=start)
    order = LeaseRequest("l", begin, clock.time + timedelta(hours=end), None, [hosts_wanted()])
    with pytest.raises(InvalidPeriod):
        leases.create(climate, MEMBER, order)


def test_no_start_means_now_and_a_minute_of_the_past_is_forgiven(climate: Climate, clock: Clock) -> None:
    clock.forward(seconds=30, milliseconds=500)
    end = clock.time + timedelta(hours=1)
    now = leases.create(climate, MEMBER, LeaseRequest("l", None, end, None, [hosts_wanted()]))
    assert now.period.start == clock.time.replace(microsecond=0)
    full_minute = clock.time.replace(second=0, microsecond=0)
    assert leases.create(climate, MEMBER, LeaseRequest("l", full_minute, end, None, [hosts_wanted()])).id


def test_who_may(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock)
    reader = Caller("r", "project", frozenset({"reader"}), "req")
    order = LeaseRequest("l", None, clock.time + timedelta(hours=1), None, [hosts_wanted()])
    for caller in (reader, Caller("n", "project")):
        with pytest.raises(Forbidden):
            leases.create(climate, caller, order)
    assert leases.get(climate, reader, lease.id) == lease == leases.get(climate, ADMIN, lease.id)
    with pytest.raises(NotFound):
        leases.get(climate, STRANGER, lease.id)
    with pytest.raises(NotFound):
        leases.history(climate, STRANGER, lease.id)
    with pytest.raises(NotFound):
        leases.delete(climate, STRANGER, lease.id)


def test_a_dry_run_leaves_nothing(climate: Climate, clock: Clock, engine: Engine) -> None:
    before = rows(engine)
    order = LeaseRequest("l", None, clock.time + timedelta(hours=1), None, [hosts_wanted(2)])
    assert isinstance(leases.create(climate, MEMBER, order, dry_run=True), Lease)
    assert rows(engine) == before


def test_what_is_read_is_what_was_created(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(2), hosts_wanted(1))
    assert leases.get(climate, MEMBER, lease.id) == lease
    assert leases.listed(climate, MEMBER, Listing()) == [lease]
    assert leases.listed(climate, STRANGER, Listing()) == []
    assert consistency_check.differences(climate) == []


def test_the_cloud_is_not_needed_to_promise_hosts(climate: Climate, clock: Clock) -> None:
    assert isinstance(climate.cloud, FakeCloud)
    climate.cloud.broken = True
    assert make(climate, clock)
