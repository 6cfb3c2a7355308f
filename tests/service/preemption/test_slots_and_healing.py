"""Slots of shared hosts, and leases that are healed, take whole hosts of preemptible leases."""

import pytest

from climate.context import Climate
from climate.domain.errors import NotEnoughHosts
from climate.domain.lease import Lease
from climate.service.journal import consistency_check
from climate.service.leases import healing, leases
from climate.service.waiting_list import round as waiting_round
from tests.conftest import MEMBER, STRANGER, Clock
from tests.scenarios.test_races import nothing_is_promised_twice
from tests.service.capacity_factory import overruns, servers, slots
from tests.service.host_rounds import fall_ill
from tests.service.lease_actions import get, held, hosts_wanted, make, run_due
from tests.service.preemption.steps import ALL, ordinary, spare, told
from tests.service.series.series_actions import leases_of, repeat
from tests.service.waiting_list.test_entries import queue


def is_sound(climate: Climate) -> None:
    assert overruns(climate) == []
    assert consistency_check.differences(climate) == []


def planned(climate: Climate, lease: Lease) -> int:
    return sum(len(r.preemptions) for r in get(climate, lease).reservations)


def test_slots_take_no_more_hosts_than_they_need(climate: Climate, clock: Clock) -> None:
    lease = spare(climate, clock, 1, ALL)
    other = ordinary(climate, clock, servers(2), start=1)
    assert sum(slots(other).values()) == 2
    assert planned(climate, lease) == len(slots(other))
    is_sound(climate)


def test_slots_come_onto_free_hosts_first(climate: Climate, clock: Clock) -> None:
    lease = spare(climate, clock, ALL - 1)
    before = get(climate, lease)
    other = ordinary(climate, clock, servers(2), start=1)
    assert not set(slots(other)) & held(lease)
    assert get(climate, lease) == before
    is_sound(climate)


def test_slots_that_are_too_many_take_nothing(climate: Climate, clock: Clock) -> None:
    lease = spare(climate, clock, ALL)
    before = get(climate, lease)
    with pytest.raises(NotEnoughHosts):
        ordinary(climate, clock, servers(1000), start=1)
    assert get(climate, lease) == before


def test_slots_of_the_waiting_list_and_of_series_take_them(climate: Climate, clock: Clock) -> None:
    blocker = make(climate, clock, hosts_wanted(ALL), hours=30)
    waits = queue(climate, clock, servers(2), caller=STRANGER)
    assert waits.waits
    leases.delete(climate, MEMBER, blocker.id)
    lease = spare(climate, clock, 1, ALL, hours=100)
    assert waiting_round.run_round(climate) == [waits.id]
    series = repeat(climate, clock, servers(2), caller=STRANGER)
    assert [sum(slots(one).values()) for one in leases_of(series)] == [2, 2, 2]
    assert planned(climate, lease) >= 1
    is_sound(climate)


@pytest.mark.parametrize("wanted", [hosts_wanted(2), servers(2)], ids=["hosts", "slots"])
def test_a_lease_is_healed_with_a_host_of_a_preemptible_one(
    climate: Climate, clock: Clock, wanted: dict[str, object]
) -> None:
    other = ordinary(climate, clock, wanted, hours=5)
    run_due(climate)
    lost = min(held(get(climate, other)))
    lease = spare(climate, clock, 1, ALL)
    run_due(climate)
    fall_ill(climate, clock, lost)
    healing.heal_all(climate)
    after = get(climate, other)
    assert lost not in held(after)
    assert after.reservations[0].missing == 0
    assert planned(climate, lease) + sum("preempt" in kind for kind in told(climate, lease)) > 0
    assert consistency_check.differences(climate) == []


def test_a_preemptible_lease_is_healed_with_free_hosts_alone(climate: Climate, clock: Clock) -> None:
    other = spare(climate, clock, 2)
    run_due(climate)
    lease = spare(climate, clock, ALL - 2)
    run_due(climate)
    before = held(get(climate, lease))
    fall_ill(climate, clock, min(held(other)))
    healing.heal_all(climate)
    assert held(get(climate, lease)) == before
    assert get(climate, other).reservations[0].missing == 1
    assert nothing_is_promised_twice(climate)
