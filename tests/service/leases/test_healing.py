"""A lease whose host fails gets another one, or is told what it lacks until that is put right."""

from dataclasses import replace

from sqlalchemy import Engine, text

from climate.cloud import FAILED, FREEPOOL
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.hosts.pools import Pool
from climate.domain.lease import Lease
from climate.domain.status import LeaseStatus
from climate.service.host_operations import failures, recycling
from climate.service.journal import consistency_check
from climate.service.leases import healing, leases, update
from climate.service.leases.update import Changes
from tests.conftest import ADMIN, MEMBER, Clock
from tests.service.host_rounds import fall_ill, pass_time, place, pool_of, recover, rounds, told
from tests.service.lease_actions import claim, get, held, hosts_wanted, make, reservation, run, run_due
from tests.service.leases.test_broken_leases import OF_A_NEWER_RELEASE


def running(climate: Climate, clock: Clock, count: int, **more: object) -> Lease:
    lease = make(climate, clock, hosts_wanted(count, **more), start=0, hours=5)
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    return get(climate, lease)


def test_a_running_lease_gets_another_host(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = running(climate, clock, 2)
    lost = min(held(lease))
    fall_ill(climate, clock, lost)
    after = get(climate, lease)
    assert len(held(after)) == 2
    assert lost not in held(after)
    assert all(reservation(lease) in pool_of(climate, host) for host in held(after))
    assert {place(climate, host).pool for host in held(after)} == {Pool.LENT}
    only = after.reservations[0]
    assert (only.missing, only.resources_changed, after.degraded) == (0, True, True)
    assert len(told(climate, "lease.healed")) == 1
    assert not any(f"h{lost}" in message for message in told(climate, "lease.healed"))
    assert consistency_check.differences(climate) == []


def test_the_owners_next_update_clears_the_flag(climate: Climate, clock: Clock) -> None:
    lease = running(climate, clock, 1)
    fall_ill(climate, clock, min(held(lease)))
    assert get(climate, lease).degraded
    update.update(climate, MEMBER, lease.id, Changes(name="seen"))
    assert not get(climate, lease).degraded


def test_where_there_is_no_other_it_is_degraded_until_its_own_is_back(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    lease = running(climate, clock, 8)
    server = cloud.boot("project", "h3")
    fall_ill(climate, clock, 3)
    after = get(climate, lease)
    assert held(after) == held(lease), "nobody else gets it when it comes back"
    assert (after.reservations[0].missing, after.degraded) == (1, True)
    assert pool_of(climate, 3) == {FAILED}
    assert len(told(climate, "lease.degraded")) == 1
    recover(climate, clock, 3)
    after = get(climate, lease)
    assert (after.reservations[0].missing, after.degraded) == (0, False)
    assert pool_of(climate, 3) == {reservation(lease)}
    assert place(climate, 3).pool is Pool.LENT
    assert cloud.server(server) is not None
    assert consistency_check.differences(climate) == []


def test_servers_left_on_a_replaced_host_go_on_until_the_lease_ends(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    lease = running(climate, clock, 1)
    lost = min(held(lease))
    cloud.boot("project", f"h{lost}")
    fall_ill(climate, clock, lost)
    recover(climate, clock, lost)
    there = place(climate, lost)
    assert (there.pool, there.until) == (Pool.RECYCLING, lease.period.end)
    assert there.reservation_id == lease.reservations[0].id


def test_a_lease_that_starts_soon_is_healed_and_a_later_one_is_not(climate: Climate, clock: Clock) -> None:
    soon = make(climate, clock, hosts_wanted(4), start=0.9, hours=1)
    late = make(climate, clock, hosts_wanted(8), start=5, hours=1)
    lost = min(held(soon))
    fall_ill(climate, clock, lost)
    assert lost not in held(get(climate, soon))
    assert not get(climate, soon).degraded, "it has not started: nothing that it had was changed"
    assert get(climate, late) == late
    every = replace(climate, settings=replace(climate.settings, healing_seconds=0))
    rounds(every)
    assert get(climate, late).reservations[0].missing == 1


def test_a_lease_that_starts_without_a_host_says_so_and_gets_it_when_it_is_back(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    lease = make(climate, clock, hosts_wanted(8), start=0.5, hours=5)
    fall_ill(climate, clock, 2)
    assert get(climate, lease).reservations[0].missing == 1
    pass_time(climate, clock, minutes=30)
    after = get(climate, lease)
    assert (after.status, after.reservations[0].missing) == (LeaseStatus.ACTIVE, 1)
    assert pool_of(climate, 2) == {FAILED}
    recover(climate, clock, 2)
    rounds(climate)
    after = get(climate, lease)
    assert (after.reservations[0].missing, after.degraded) == (0, False)
    assert pool_of(climate, 2) == {reservation(lease)}
    assert cloud.doubled() == []
    assert consistency_check.differences(climate) == []


def test_what_fails_at_the_very_start_is_healed_after_it(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(2), start=2, hours=5)
    late = replace(climate, settings=replace(climate.settings, healing_seconds=1))
    lost = max(held(lease))
    fall_ill(late, clock, lost)
    clock.time = lease.period.start
    run_due(late)
    assert get(climate, lease).reservations[0].missing == 1
    rounds(late)
    after = get(climate, lease)
    assert (after.reservations[0].missing, len(held(after) - {lost})) == (0, 2)
    assert all(pool_of(climate, host) == {reservation(lease)} for host in held(after))


def test_of_two_that_fail_one_is_replaced_where_there_is_one(climate: Climate, clock: Clock) -> None:
    lease = running(climate, clock, 7)
    first, second = sorted(held(lease))[:2]
    spare = ({1, 2, 3, 4, 5, 6, 7, 8} - held(lease)).pop()
    fall_ill(climate, clock, first, second)
    after = get(climate, lease)
    assert spare in held(after)
    assert len(held(after)) == 7
    assert after.reservations[0].missing == 1
    recover(climate, clock, first, second)
    after = get(climate, lease)
    assert after.reservations[0].missing == 0
    assert len(held(after)) == 7
    assert {pool for host in range(1, 9) for pool in pool_of(climate, host)} == {FREEPOOL, reservation(lease)}


def test_reservations_that_lose_hosts_at_once_leave_each_other_what_only_one_can_have(
    climate: Climate, clock: Clock
) -> None:
    """The first takes any of the two that are left, and the second only one of them."""
    gpus = '["==", "$gpu_count", "2"]'
    for spare in (3, 5):
        taken = {"resource_properties": f'["==", "$id", "{spare}"]'}
        make(climate, clock, hosts_wanted(1, **taken), start=0, hours=1)
    lease = make(climate, clock, hosts_wanted(3), hosts_wanted(3, resource_properties=gpus), start=0, hours=5)
    run_due(climate)
    pass_time(climate, clock, hours=1)
    first, second = (r.hosts for r in get(climate, lease).reservations)
    assert set(first) == {1, 2, 4}
    assert set(second) == {6, 7, 8}
    fall_ill(climate, clock, first[0], second[0])
    after = get(climate, lease)
    assert [r.missing for r in after.reservations] == [0, 0]
    assert 3 in after.reservations[0].hosts
    assert 5 in after.reservations[1].hosts
    fall_ill(climate, clock, 3, 5)
    assert [r.missing for r in get(climate, lease).reservations] == [1, 1]
    recover(climate, clock, second[0])
    assert sum(r.missing for r in get(climate, lease).reservations) == 1
    assert consistency_check.differences(climate) == []


def test_no_more_hosts_than_were_promised(climate: Climate, clock: Clock) -> None:
    make(climate, clock, hosts_wanted(6), start=0, hours=1)
    lease = make(climate, clock, hosts_wanted(1, 8), start=0, hours=5)
    run_due(climate)
    assert len(held(lease)) == 2
    pass_time(climate, clock, hours=1)
    fall_ill(climate, clock, min(held(lease)))
    assert len(held(get(climate, lease))) == 2


def test_a_replacement_is_never_one_that_seems_unwell(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = running(climate, clock, 7)
    lost = min(held(lease))
    (spare,) = {1, 2, 3, 4, 5, 6, 7, 8} - held(lease)
    cloud.unwell[f"h{lost}"] = "down"
    pass_time(climate, clock, seconds=59)
    cloud.unwell[f"h{spare}"] = "down for a moment"
    pass_time(climate, clock, seconds=1)
    assert place(climate, lost).pool is Pool.FAILED
    assert place(climate, spare).pool is Pool.RESERVATION
    assert spare not in held(get(climate, lease))
    del cloud.unwell[f"h{spare}"]
    rounds(climate)
    rounds(climate)
    assert spare in held(get(climate, lease))


def test_a_busy_lease_is_healed_afterwards(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = running(climate, clock, 1)
    lost = min(held(lease))
    update.update(climate, MEMBER, lease.id, Changes(reservations=[{"id": str(lease.reservations[0].id), "max": 2}]))
    (adjust,) = claim(climate)
    cloud.unwell[f"h{lost}"] = "down"
    for _ in range(2):
        failures.check(climate)
        clock.forward(seconds=60)
    failures.check(climate)
    assert healing.heal_all(climate) == []
    run(climate, adjust)
    rounds(climate)
    after = get(climate, lease)
    assert lost not in held(after)
    assert after.reservations[0].missing == 0


def test_a_lease_whose_plugin_is_gone_keeps_no_other_from_being_healed(climate: Climate, clock: Clock) -> None:
    room_of_old = make(climate, clock, room(1), start=0, hours=5)
    lease = running(climate, clock, 1)
    left = {name: found for name, found in climate.plugins.items() if name != "virtual:instance"}
    fall_ill(replace(climate, plugins=left), clock, *held(room_of_old), *held(lease))
    assert not held(get(climate, lease)) & held(lease)
    assert get(climate, room_of_old).reservations[0].missing == 1


def test_room_for_servers_is_healed_too(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = make(climate, clock, room(6), start=0, hours=5)
    run_due(climate)
    lost = min(held(lease))
    fall_ill(climate, clock, lost)
    after = get(climate, lease)
    assert lost not in held(after)
    assert sum(hold.slots for hold in after.reservations[0].holds) == 6
    assert (after.reservations[0].missing, after.reservations[0].resources_changed) == (0, True)
    granted = cloud.granted[reservation(lease)].slots
    assert granted == {f"h{hold.host}": hold.slots for hold in after.reservations[0].holds}
    assert consistency_check.differences(climate) == []


def test_room_on_a_host_that_it_has_already_is_granted_too(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    for host in range(1, 7):
        failures.fail(climate, ADMIN, str(host), "x")
    other = make(climate, clock, room(7), start=0, hours=5)
    lease = make(climate, clock, room(5), start=0, hours=5)
    run_due(climate)
    (lost, one), (kept, four) = sorted((hold.host, hold.slots) for hold in lease.reservations[0].holds)
    assert (one, four) == (1, 4)
    leases.delete(climate, MEMBER, other.id)
    run_due(climate)
    fall_ill(climate, clock, lost)
    after = get(climate, lease)
    assert [(hold.host, hold.slots) for hold in after.reservations[0].holds] == [(kept, 5)]
    assert cloud.granted[reservation(lease)].slots == {f"h{kept}": 5}
    assert after.reservations[0].resources_changed
    assert len(told(climate, "lease.healed")) == 1


def test_room_that_is_nowhere_else_is_missing_until_the_host_is_back(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    lease = make(climate, clock, room(4 * 4 + 4 * 8), start=0, hours=5)
    run_due(climate)
    slots = {hold.host: hold.slots for hold in lease.reservations[0].holds}
    assert len(slots) == 8
    fall_ill(climate, clock, 7)
    after = get(climate, lease)
    assert held(after) == held(lease)
    assert after.reservations[0].missing == slots[7]
    recover(climate, clock, 7)
    after = get(climate, lease)
    assert (after.reservations[0].missing, after.degraded) == (0, False)
    assert cloud.granted[reservation(lease)].slots == {f"h{host}": count for host, count in slots.items()}
    assert pool_of(climate, 7) == {FREEPOOL}
    assert consistency_check.differences(climate) == []


def room(amount: int, vcpus: int = 1) -> dict[str, object]:
    """Servers of a CPU each, or more; the eight hosts have 4 and 8 CPUs."""
    size = {"vcpus": vcpus, "memory_mb": 1, "disk_gb": 1, "affinity": None, "resource_properties": ""}
    return {"resource_type": "virtual:instance", "amount": amount, **size}


def test_servers_that_use_room_go_on_when_their_host_was_ill_for_a_while(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    lease = make(climate, clock, room(4 * 4 + 4 * 8), start=0, hours=5)
    run_due(climate)
    server = cloud.boot_granted(reservation(lease), "h7")
    fall_ill(climate, clock, 7)
    recover(climate, clock, 7)
    recycling.run_round(climate)
    recycling.run_round(climate)
    assert server in {one.id for one in cloud.servers_on("h7")}
    assert pool_of(climate, 7) == {FREEPOOL}
    assert get(climate, lease).reservations[0].missing == 0
    assert consistency_check.differences(climate) == []


def test_servers_that_one_lease_left_on_a_shared_host_cost_the_others_none(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    everywhere = make(climate, clock, room(4 * 1 + 4 * 2, vcpus=3), start=0, hours=9)
    run_due(climate)
    small = make(climate, clock, room(1), start=0, hours=5)
    run_due(climate)
    host = min(held(small))
    assert host in held(everywhere)
    stays = cloud.boot_granted(reservation(everywhere), f"h{host}")
    left = cloud.boot_granted(reservation(small), f"h{host}")
    fall_ill(climate, clock, host)
    assert host not in held(get(climate, small))
    assert host in held(get(climate, everywhere))
    recover(climate, clock, host)
    recycling.run_round(climate)
    assert {stays, left} <= {one.id for one in cloud.servers_on(f"h{host}")}
    assert place(climate, host).pool is Pool.FAILED, "it comes back when the one that has no room there is gone"
    cloud.delete_server(left, 10**6)
    pass_time(climate, clock, seconds=1)
    assert pool_of(climate, host) == {FREEPOOL}
    assert get(climate, everywhere).reservations[0].missing == 0


def test_a_lease_none_of_whose_hosts_is_ready_starts_with_others_as_soon_as_there_are_some(
    climate: Climate, clock: Clock
) -> None:
    before = make(climate, clock, hosts_wanted(7), start=0, hours=1.1)
    lease = make(climate, clock, hosts_wanted(1), start=1, hours=5)
    run_due(climate)
    fall_ill(climate, clock, *held(lease))
    clock.time = lease.period.start
    rounds(climate)
    waits = get(climate, lease)
    assert (waits.status, waits.reservations[0].missing) == (LeaseStatus.STARTING, 1)
    assert "none of the hosts is ready: 1 host failed" in str(waits.reason)
    clock.time = before.period.end
    run_due(climate)
    pass_time(climate, clock, seconds=10)
    after = get(climate, lease)
    assert (after.status, after.degraded) == (LeaseStatus.ACTIVE, False)
    assert not held(after) & held(lease)
    assert consistency_check.differences(climate) == []


def test_a_lease_that_had_no_host_for_long_is_degraded_and_gets_what_comes_back(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    hurried = replace(climate, settings=replace(climate.settings, wait_seconds=60, healing_seconds=1))
    make(hurried, clock, hosts_wanted(1), start=2, hours=24)  # its host stays well: else the cloud is to blame
    lease = make(hurried, clock, hosts_wanted(7), start=2, hours=24)
    fall_ill(hurried, clock, *held(lease))
    clock.time = lease.period.start
    run_due(hurried)
    clock.forward(seconds=61)
    run_due(hurried)
    without = get(climate, lease)
    assert (without.status, without.reservations[0].missing) == (LeaseStatus.ACTIVE, 7)
    assert len(told(climate, "lease.degraded")) == 1
    pass_time(hurried, clock, hours=10)
    recover(hurried, clock, *held(lease))
    rounds(hurried)
    after = get(climate, lease)
    assert (after.reservations[0].missing, after.degraded) == (0, False)
    assert cloud.pools()[reservation(lease)] == {f"h{number}" for number in held(after)}
    assert len(held(after)) == 7
    clock.time = lease.period.end
    run_due(hurried)
    assert get(climate, lease).status is LeaseStatus.TERMINATED
    assert len(cloud.pools()[FREEPOOL]) == 8
    assert consistency_check.differences(climate) == []


def test_a_broken_lease_keeps_no_other_from_being_healed(climate: Climate, clock: Clock, engine: Engine) -> None:
    made = sorted((make(climate, clock) for _ in range(3)), key=lambda lease: lease.id)
    bad = made[1]
    for lease in made:
        failures.fail(climate, ADMIN, str(min(held(lease))), "broken")
    with engine.begin() as conn:
        conn.execute(text(OF_A_NEWER_RELEASE), {"lease_id": bad.id})
    healing.heal_all(climate)
    for lease in (made[0], made[2]):
        assert held(get(climate, lease)).isdisjoint(host for one in made for host in held(one))
