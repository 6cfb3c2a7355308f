"""Room for servers: what is promised, what is refused, what can be changed."""

from dataclasses import replace
from typing import Any

import pytest

from climate.context import Climate
from climate.domain.errors import ClimateError, Conflict, InvalidInput, NotEnoughHosts
from climate.domain.hosts.shared_capacity import group_id
from climate.service.hosts import inventory
from climate.service.journal import consistency_check
from climate.service.leases import leases, update
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes
from tests.conftest import ADMIN, MEMBER, Clock
from tests.service.capacity_factory import change, overruns, servers, slots
from tests.service.lease_actions import get, held, hosts_wanted, make, run_due

SMALL, LARGE = {1, 2, 3, 4}, {5, 6, 7, 8}  # of 4 and of 8 VCPUs, all with 8192 MB and 100 GB


def only(*numbers: int) -> dict[str, str]:
    return {"resource_properties": '["in", "$id", [' + ", ".join(f'"{number}"' for number in numbers) + "]]"}


def refused(climate: Climate, clock: Clock, *wanted: dict[str, Any], start: float = 1, hours: float = 2) -> str:
    with pytest.raises(NotEnoughHosts) as said:
        make(climate, clock, *wanted, start=start, hours=hours)
    return str(said.value)


def test_what_is_held_and_how_its_owner_uses_it(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, servers(3, affinity=True))
    (one,) = lease.reservations
    assert set(slots(lease).values()) == {3}
    assert one.spec["flavor_id"] == str(one.id)
    assert one.spec["server_group_id"] == group_id(one.id)
    assert (one.spec["aggregate_id"], one.spec["affinity"]) == (None, True)
    assert make(climate, clock, servers(1)).reservations[0].spec["server_group_id"] is None
    assert consistency_check.differences(climate) == []


def test_affinity(climate: Climate, clock: Clock) -> None:
    assert slots(make(climate, clock, servers(5, affinity=True))).keys() <= LARGE
    apart = slots(make(climate, clock, servers(8, affinity=False)))
    assert (set(apart), set(apart.values())) == (SMALL | LARGE, {1})
    assert "each on another host" in refused(climate, clock, servers(9, affinity=False))
    assert "on one host" in refused(climate, clock, servers(9, affinity=True))


def test_hosts_that_are_shared_are_filled_before_others(climate: Climate, clock: Clock) -> None:
    first = make(climate, clock, servers(1))
    for _ in range(3):
        assert held(make(climate, clock, servers(1))) == held(first)
    assert make(climate, clock, hosts_wanted(7))


def test_nothing_beyond_what_the_hosts_have_counted_per_slot(climate: Climate, clock: Clock) -> None:
    """W2: each slot counts, and not each reservation."""
    make(climate, clock, servers(2, vcpus=4, affinity=True, **only(5)))
    assert refused(climate, clock, servers(1, **only(5)))
    make(climate, clock, servers(3, vcpus=2, **only(6)))
    assert "1 fit on them" in refused(climate, clock, servers(2, vcpus=2, **only(6)))
    make(climate, clock, servers(1, vcpus=2, **only(6)))
    assert overruns(climate) == []


@pytest.mark.parametrize("size", [{"memory_mb": 4096}, {"disk_gb": 50}])
def test_memory_and_disk_count_too(climate: Climate, clock: Clock, size: dict[str, int]) -> None:
    make(climate, clock, servers(2, **size, **only(5)))
    assert refused(climate, clock, servers(1, **size, **only(5)))


def test_a_free_slot_is_found(climate: Climate, clock: Clock) -> None:
    """W19: three of four slots are taken, and there is the fourth."""
    make(climate, clock, servers(3, **only(1)))
    make(climate, clock, servers(1, **only(1)))
    refused(climate, clock, servers(1, **only(1)))


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 1, 3)])
def test_back_to_back(climate: Climate, clock: Clock, order: tuple[int, ...]) -> None:
    """W11: what ends at an instant makes room for what begins then, whichever was asked for first."""
    for start in order:
        make(climate, clock, servers(4, **only(1)), start=start, hours=1)
    refused(climate, clock, servers(1, **only(1)), start=1.5, hours=1)
    assert overruns(climate) == []


def test_it_is_the_instant_that_counts_not_the_sum(climate: Climate, clock: Clock) -> None:
    for start in (1, 2, 3):
        make(climate, clock, servers(3, **only(1)), start=start, hours=1)
    make(climate, clock, servers(1, **only(1)), start=1, hours=3)
    assert "0 fit on them" in refused(climate, clock, servers(1, **only(1)), start=1, hours=3)


def test_whole_hosts_and_shared_ones_exclude_each_other(climate: Climate, clock: Clock) -> None:
    whole = make(climate, clock, hosts_wanted(7), start=1, hours=2)
    lease = make(climate, clock, servers(1), start=2, hours=2)
    assert not held(whole) & held(lease)
    refused(climate, clock, hosts_wanted(1), start=2, hours=1)
    assert make(climate, clock, hosts_wanted(7), start=3, hours=1)
    assert make(climate, clock, hosts_wanted(8), start=4, hours=1)


def test_several_reservations_of_one_lease_share_a_host(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, servers(2, **only(5)), servers(3, vcpus=2, **only(5)))
    assert slots(lease) == {5: 5}
    refused(climate, clock, servers(2, vcpus=4, **only(6)), servers(1, **only(6)))
    mixed = make(climate, clock, servers(1, **only(7, 8)), hosts_wanted(1, resource_properties='["==", "$id", "8"]'))
    assert [set(r.hosts) for r in mixed.reservations] == [{7}, {8}]
    assert overruns(climate) == []
    assert consistency_check.differences(climate) == []


def test_when_it_would_fit(climate: Climate, clock: Clock) -> None:
    make(climate, clock, servers(3, **only(1)), start=1, hours=4)
    make(climate, clock, servers(1, **only(1)), start=1, hours=2)
    assert "it would fit from 2030-01-01 15:00:00 UTC" in refused(climate, clock, servers(1, **only(1)))
    assert "it would fit from 2030-01-01 17:00:00 UTC" in refused(climate, clock, servers(4, **only(1)))
    assert "no later start" in refused(climate, clock, servers(5, **only(1)))


def test_a_smaller_size_fits_where_the_larger_one_was(climate: Climate, clock: Clock) -> None:
    """W13: what a reservation holds itself is no obstacle to its change."""
    lease = make(climate, clock, servers(1, vcpus=6, **only(5)))
    assert slots(change(climate, lease, vcpus=5)) == {5: 1}
    assert slots(change(climate, lease, vcpus=2, amount=4)) == {5: 4}
    with pytest.raises(NotEnoughHosts):
        change(climate, lease, amount=5)
    assert slots(get(climate, lease)) == {5: 4}
    assert overruns(climate) == []
    assert consistency_check.differences(climate) == []


def test_a_lease_of_several_reservations_is_moved_as_a_whole(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, servers(2, vcpus=2, **only(5)), servers(4, **only(5)), start=1, hours=2)
    moved = Changes(start=lease.period.start.replace(minute=30), end=lease.period.end.replace(minute=30))
    lease = update.update(climate, MEMBER, lease.id, moved)
    assert slots(lease) == {5: 6}
    assert {hold.during for r in lease.reservations for hold in r.holds} == {lease.period}


def test_what_has_not_started_can_be_changed_in_every_way(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, servers(2))
    assert set(slots(change(climate, lease, affinity=False)).values()) == {1}
    assert slots(change(climate, lease, affinity=None, amount=1)) != slots(lease)
    assert slots(change(climate, lease, **only(7))) == {7: 1}
    assert get(climate, lease).reservations[0].spec["resource_properties"] == only(7)["resource_properties"]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"amount": 1}, "amount cannot be updated"),
        ({"vcpus": 2}, "vcpus cannot be updated"),
        ({"memory_mb": 64}, "memory_mb cannot be updated"),
        ({"affinity": True}, "affinity cannot be updated"),
        ({"resource_properties": '["==", "$id", "1"]'}, "resource_properties cannot be updated"),
        ({"resource_id": "2b8b57a5-5aa5-4b0e-9d2b-1d6d1c0f5a11"}, "resource_id cannot be updated"),
    ],
)
def test_what_has_started_can_only_grow(climate: Climate, clock: Clock, spec: dict[str, Any], said: str) -> None:
    lease = make(climate, clock, servers(2, **only(5, 6)), start=0)
    run_due(climate)
    with pytest.raises(Conflict, match=said):
        change(climate, lease, **spec)
    assert slots(change(climate, lease, amount=10)) == {5: 8, 6: 2}


def test_what_has_started_grows_where_it_is(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, servers(2, affinity=True, **only(5, 6)), start=0)
    (home,) = held(lease)
    make(climate, clock, servers(4, **only(home)), start=0)
    run_due(climate)
    assert slots(change(climate, lease, amount=4)) == {home: 4}
    with pytest.raises(NotEnoughHosts):
        change(climate, lease, amount=5)


def test_every_slot_in_use_stays_however_much_room_there_is(climate: Climate, clock: Clock) -> None:
    others = [make(climate, clock, servers(3 if n < 5 else 7, **only(n)), start=0) for n in (1, 2, 3, 4, 5)]
    lease = make(climate, clock, servers(5, **only(1, 2, 3, 4, 5)), start=0)
    run_due(climate)
    for other in others:
        leases.delete(climate, MEMBER, other.id)
    run_due(climate)
    grown = slots(change(climate, lease, amount=6))
    assert (set(grown), sum(grown.values())) == ({1, 2, 3, 4, 5}, 6)


def test_prolonging_into_somebody_elses_promise(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, servers(3, **only(1)), start=0, hours=1)
    make(climate, clock, servers(2, **only(1)), start=2, hours=1)
    run_due(climate)
    longer = Changes(end=lease.period.end.replace(hour=14))
    assert update.update(climate, MEMBER, lease.id, longer)
    with pytest.raises(NotEnoughHosts, match="what is in use can last until 2030-01-01 14:00:00 UTC at most"):
        update.update(climate, MEMBER, lease.id, Changes(end=lease.period.end.replace(hour=15)))
    assert get(climate, lease).period.end.hour == 14
    assert consistency_check.differences(climate) == []


def test_shortening_asks_nobody_and_keeps_the_slots(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, servers(3, **only(1)), start=1, hours=2)
    shorter = update.update(climate, MEMBER, lease.id, Changes(end=lease.period.end.replace(hour=14)))
    assert slots(shorter) == {1: 3}
    make(climate, clock, servers(4, **only(1)), start=2, hours=1)
    assert consistency_check.differences(climate) == []


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (servers(1, **only(99)), NotEnoughHosts),
        (servers(1, resource_properties='["==", "$nobodys", "1"]'), InvalidInput),
        (servers(2**31 - 1), NotEnoughHosts),
        (servers(2**31 - 1, vcpus=2**31 - 1, memory_mb=2**31 - 1), NotEnoughHosts),
        (servers(1, grace_period=86401), InvalidInput),
    ],
)
def test_refusals(climate: Climate, clock: Clock, spec: dict[str, Any], error: type[ClimateError]) -> None:
    with pytest.raises(error):
        make(climate, clock, spec)


def test_a_host_that_is_not_to_be_chosen_is_not(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, servers(4, **only(1)))
    inventory.update(climate, ADMIN, "2", {"rack": "r1"})
    assert held(make(climate, clock, servers(1, resource_properties='["==", "$rack", "r1"]'))) == {2}
    with pytest.raises(Conflict, match="rely on them"):
        inventory.update(climate, ADMIN, "2", {"rack": "r2"})
    with pytest.raises(Conflict, match=str(lease.id)):
        inventory.remove(climate, ADMIN, "1")


def test_cleaning_is_for_whole_hosts(climate: Climate, clock: Clock) -> None:
    climate = replace(climate, settings=replace(climate.settings, cleaning_time=3600))
    make(climate, clock, servers(4, **only(1)), start=1, hours=1)
    make(climate, clock, servers(4, **only(1)), start=2, hours=1)


def test_a_dry_run_holds_nothing(climate: Climate, clock: Clock) -> None:
    order = LeaseRequest("l", None, clock.time.replace(hour=15), None, [servers(4, **only(1))])
    assert slots(leases.create(climate, MEMBER, order, dry_run=True)) == {1: 4}
    assert make(climate, clock, servers(4, **only(1)))
