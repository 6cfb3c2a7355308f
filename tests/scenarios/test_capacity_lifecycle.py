"""Room for servers from its start to its end, over a cloud that can be broken."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from climate.cloud import FREEPOOL, Capacity, CloudFlavor, Refused
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import Conflict, NotFound
from climate.domain.facts import HostMoved
from climate.domain.hosts.pools import Pool
from climate.domain.lease import Lease
from climate.domain.status import LeaseStatus
from climate.plugin import ResourceRequest
from climate.service.events import event_dispatch
from climate.service.hosts import inventory
from climate.service.journal import consistency_check
from climate.service.journal.rebuild import rebuild
from climate.service.leases import healing, leases, update
from climate.service.leases.update import Changes
from climate.store.hosts import pool_membership
from climate.store.leases.leases import Listing
from tests.conftest import ADMIN, MEMBER, Clock
from tests.service.capacity_factory import change, overruns, servers, slots
from tests.service.lease_actions import (
    ADJUST,
    CLOSE,
    END,
    START,
    claim,
    event,
    get,
    held,
    hosts_wanted,
    make,
    reservation,
    run,
    run_due,
    settle,
)

ON_5 = {"resource_properties": '["==", "$id", "5"]'}
ON_5_TO_7 = {"resource_properties": '["in", "$id", ["5", "6", "7"]]'}
TINY = CloudFlavor("42", "tiny", 2, 256, 0, {"hw:mem_page_size": "large"})


@pytest.fixture
def cloud(climate: Climate) -> FakeCloud:
    assert isinstance(climate.cloud, FakeCloud)
    climate.cloud.flavors["42"] = TINY
    return climate.cloud


def flavored(amount: int = 1, **more: object) -> dict[str, object]:
    return {"resource_type": "flavor:instance", "flavor_id": "42", "amount": amount, **more}


def pool_of(climate: Climate, host: int) -> Pool:
    with climate.engine.connect() as conn:
        return pool_membership.get(conn, host).pool


def test_from_start_to_end(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = make(climate, clock, servers(3, affinity=True, **ON_5), start=0, hours=1)
    pool, spec = reservation(lease), lease.reservations[0].spec
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    assert cloud.granted[pool] == Capacity(
        pool, MEMBER.project_id, 1, 128, 1, {"h5": 3}, affinity=True, group_id=spec["server_group_id"]
    )
    for _ in range(3):
        cloud.boot_granted(pool, "h5")
    with pytest.raises(Refused):
        cloud.boot_granted(pool, "h5")
    assert "h5" in cloud.pools()[FREEPOOL], "it stays in the reservation pool"
    assert pool_of(climate, 5) is Pool.RESERVATION
    clock.forward(hours=1)
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.TERMINATED
    assert (list(cloud.servers_on("h5")), cloud.granted) == ([], {})
    assert cloud.doubled() == []
    assert consistency_check.differences(climate) == []


def test_the_end_waits_until_the_servers_are_gone(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = make(climate, clock, servers(2, **ON_5), start=0, hours=1)
    after = make(climate, clock, servers(8, **ON_5), start=1, hours=1)
    run_due(climate)
    cloud.boot_granted(reservation(lease), "h5")
    cloud.looks_until_gone = 5
    clock.forward(hours=1)
    run_due(climate)
    assert event(climate, lease, END).reason == "servers are still being deleted: 1"
    assert event(climate, after, START).status == "UNDONE", "its slots are not free yet"
    with pytest.raises(Refused):
        cloud.boot_granted(reservation(lease), "h5")
    settle(climate, clock, hours=0.1)
    assert get(climate, lease).status is LeaseStatus.TERMINATED
    assert get(climate, after).status is LeaseStatus.ACTIVE


def test_who_shares_a_host_does_not_wait_for_others(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    make(climate, clock, servers(2, **ON_5), start=0, hours=5)
    run_due(climate)
    later = make(climate, clock, servers(2, **ON_5), start=1, hours=1)
    clock.forward(hours=1)
    run_due(climate)
    assert get(climate, later).status is LeaseStatus.ACTIVE
    clock.forward(hours=1)
    run_due(climate)
    assert len(cloud.granted) == 1


def test_starts_on_one_host_in_any_order(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    found = [make(climate, clock, servers(2, **ON_5), start=0, hours=1) for _ in range(3)]
    for message in reversed(claim(climate)):
        run(climate, message)
    assert {get(climate, lease).status for lease in found} == {LeaseStatus.ACTIVE}
    clock.forward(hours=1)
    for message in reversed(claim(climate)):
        run(climate, message)
    assert {get(climate, lease).status for lease in found} == {LeaseStatus.TERMINATED}


def test_a_late_start_grants_nothing_after_the_end(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = make(climate, clock, servers(2, **ON_5), start=0, hours=1)
    (late,) = claim(climate)
    clock.forward(hours=2)
    event_dispatch.rescue(climate, "poller")
    settle(climate, clock, hours=0.1)
    assert get(climate, lease).status is LeaseStatus.TERMINATED
    run(climate, late)
    assert cloud.granted == {}


def test_more_is_handed_over_when_it_grows(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = make(climate, clock, servers(2, **ON_5), start=0)
    run_due(climate)
    change(climate, lease, amount=4)
    change(climate, lease, amount=5)
    run_due(climate)
    assert event(climate, lease, ADJUST).status == "DONE"
    assert cloud.granted[reservation(lease)].slots == {"h5": 5}
    clock.forward(minutes=1)
    change(climate, lease, amount=6)
    run_due(climate)
    assert cloud.granted[reservation(lease)].slots == {"h5": 6}


def test_a_grace_period(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = make(climate, clock, servers(2, grace_period=600, **ON_5), start=0, hours=1)
    run_due(climate)
    pool = reservation(lease)
    cloud.boot_granted(pool, "h5")
    clock.forward(hours=1)
    run_due(climate)
    assert event(climate, lease, CLOSE).status == "DONE"
    assert cloud.is_closed(pool)
    assert len(cloud.servers_on("h5")) == 1
    longer = update.update(climate, MEMBER, lease.id, Changes(end=clock.time + timedelta(hours=1)))
    assert longer.reservations[0].holds[0].during.end == longer.period.end + timedelta(seconds=600)
    run_due(climate)
    assert not cloud.is_closed(pool)
    settle(climate, clock, hours=1.2)
    assert get(climate, lease).status is LeaseStatus.TERMINATED
    assert list(cloud.servers_on("h5")) == []


def test_it_starts_on_the_hosts_that_are_ready(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = make(climate, clock, servers(8, affinity=False), start=1)
    move(climate, clock, 2, Pool.FAILED)
    clock.forward(hours=1)
    run_due(climate)
    assert sorted(cloud.granted[reservation(lease)].slots) == ["h1", "h3", "h4", "h5", "h6", "h7", "h8"]
    assert get(climate, lease).degraded


def test_a_host_that_recycles_is_the_last_to_be_shared(climate: Climate, clock: Clock) -> None:
    """To promise it is to end the servers that were to go on there, and to wait for that."""
    move(climate, clock, 5, Pool.RECYCLING)
    assert 5 not in slots(make(climate, clock, servers(16, **ON_5_TO_7), start=0))
    assert slots(make(climate, clock, servers(1, **ON_5_TO_7), start=0)) == {5: 1}


def move(climate: Climate, clock: Clock, host: int, pool: Pool) -> None:
    with climate.engine.begin() as conn:
        place = pool_membership.get(conn, host, lock=True)
        pool_membership.record(conn, ADMIN, [(place, [HostMoved(clock.time, pool, "for a test")])])


@pytest.mark.parametrize("active", [False, True])
def test_other_slots_for_those_of_a_host_that_is_no_more(climate: Climate, clock: Clock, active: bool) -> None:
    lease = make(climate, clock, servers(10, resource_properties='["in", "$id", ["5", "6", "7"]]'), start=0)
    gone, kept = sorted(slots(lease), key=lambda host: slots(lease)[host])
    with climate.engine.begin() as conn:
        present = lease.reservations[0]
        ask = ResourceRequest(
            present.spec, lease.period, MEMBER, climate.settings, present, active=active, patient=True, taken=(gone,)
        )
        got = climate.plugins["virtual:instance"].reserve(conn, ask)
    assert {hold.host: hold.slots for hold in got.holds} == {kept: 8, ({5, 6, 7} - {gone, kept}).pop(): 2}
    assert got.spec == present.spec


def test_two_reservations_on_a_host_that_fails_both_get_another(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    lease = make(climate, clock, servers(2, **ON_5_TO_7), servers(1, 2, True, **ON_5_TO_7), start=0)
    (gone,) = slots(lease)
    run_due(climate)
    cloud.unwell[f"h{gone}"] = "down"
    move(climate, clock, gone, Pool.FAILED)
    assert healing.heal_all(climate) == [lease.id]
    run_due(climate)
    healed = get(climate, lease)
    assert gone not in slots(healed)
    assert sum(slots(healed).values()) == 3
    assert {host for r in healed.reservations for host in cloud.granted[str(r.id)].slots} == {
        f"h{host}" for host in slots(healed)
    }
    assert [r.resources_changed for r in healed.reservations] == [True, True]
    assert overruns(climate) == []
    assert consistency_check.differences(climate) == []


def test_hosts_that_it_shares_can_be_avoided(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, servers(2, **ON_5_TO_7), servers(1, **ON_5_TO_7))
    first, second = lease.reservations
    (host,) = first.hosts

    def chosen(**more: Any) -> set[int]:
        ask = ResourceRequest(
            first.spec, lease.period, MEMBER, climate.settings, first, taken=(host,), beside=(second,), **more
        )
        with climate.engine.begin() as conn:
            got = climate.plugins["virtual:instance"].reserve(conn, replace(ask, patient=True))
        return {hold.host for hold in got.holds}

    assert chosen() == {host}
    assert host not in chosen(avoided=frozenset({host}))


def test_where_there_is_no_other_host_it_lacks_slots(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = make(climate, clock, servers(2, **ON_5), start=0)
    run_due(climate)
    cloud.unwell["h5"] = "down"
    move(climate, clock, 5, Pool.FAILED)
    healing.heal_all(climate)
    assert get(climate, lease).degraded
    assert make(climate, clock, servers(1)), "others go on"
    del cloud.unwell["h5"]
    move(climate, clock, 5, Pool.RESERVATION)
    healing.heal_all(climate)
    run_due(climate)
    assert not get(climate, lease).degraded
    assert cloud.granted[reservation(lease)].slots == {"h5": 2}


def test_an_end_without_a_start(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    cloud.failures["grant"] = Refused("no")
    lease = make(climate, clock, servers(2), start=0, hours=1)
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.ERROR
    clock.forward(hours=1)
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.TERMINATED
    assert make(climate, clock, hosts_wanted(8), start=0)


def test_a_lost_answer_of_the_cloud_doubles_nothing(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    cloud.unheard = {"grant": 1, "revoke": 1}
    lease = make(climate, clock, servers(2), start=0, hours=1)
    settle(climate, clock, hours=2)
    assert get(climate, lease).status is LeaseStatus.TERMINATED
    assert cloud.doubled() == []


class TestFlavors:
    def test_a_copy_is_handed_over(self, climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
        lease = make(climate, clock, flavored(2), start=0)
        spec = lease.reservations[0].spec
        assert (spec["flavor_id"], spec["affinity"], spec["vcpus"]) == (reservation(lease), None, 2)
        assert json.loads(spec["resource_properties"])["name"] == "tiny"
        del cloud.flavors["42"]
        run_due(climate)
        granted = cloud.granted[reservation(lease)]
        assert (granted.vcpus, granted.memory_mb, granted.disk_gb) == (2, 256, 0)
        assert granted.extra_specs == {"hw:mem_page_size": "large"}
        assert granted.group_id is None
        assert consistency_check.differences(climate) == []

    def test_each_slot_counts_beside_those_of_other_kinds(
        self, climate: Climate, clock: Clock, cloud: FakeCloud
    ) -> None:
        """W19, and no conflict with other reservations on the same host."""
        for host in range(2, 9):
            inventory.remove(climate, ADMIN, str(host))
        make(climate, clock, servers(2))
        make(climate, clock, flavored(1))
        with pytest.raises(Conflict, match="Not enough hosts available"):
            make(climate, clock, flavored(1))
        assert overruns(climate) == []

    def test_refusals(self, climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
        with pytest.raises(NotFound, match="'flavor_id': 'nobodys'"):
            make(climate, clock, flavored(1, flavor_id="nobodys"))
        with pytest.raises(Conflict, match="Affinity not supported yet"):
            make(climate, clock, flavored(1, affinity=False))
        cloud.flavors["own"] = replace(TINY, extra_specs={"aggregate_instance_extra_specs:reservation": "r"})
        with pytest.raises(Conflict, match="belongs to a reservation"):
            make(climate, clock, flavored(1, flavor_id="own"))

    @pytest.mark.parametrize("spec", [{"amount": 3}, {"flavor_id": "43"}, {"affinity": True}])
    def test_nothing_but_dates_changes(
        self, climate: Climate, clock: Clock, cloud: FakeCloud, spec: dict[str, object]
    ) -> None:
        lease = make(climate, clock, flavored(2))
        with pytest.raises(Conflict, match=f"{next(iter(spec))} cannot be updated"):
            change(climate, lease, **spec)
        same = change(climate, lease, flavor_id=reservation(lease), amount=2)
        assert same.reservations == lease.reservations
        longer = Changes(start=lease.period.start + timedelta(hours=3), end=lease.period.end + timedelta(hours=3))
        assert slots(update.update(climate, MEMBER, lease.id, longer)) == slots(lease)

    def test_a_capability_can_be_changed_beside_it(self, climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
        (host,) = held(make(climate, clock, flavored(1)))
        assert inventory.update(climate, ADMIN, str(host), {"rack": "r1"})


def test_it_can_be_recreated_from_the_journal(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = make(climate, clock, servers(3, **ON_5), flavored(2), start=0)
    run_due(climate)
    change(climate, lease, amount=4)
    run_due(climate)
    before = get(climate, lease)
    rebuild(climate)
    assert get(climate, lease) == before
    assert consistency_check.differences(climate) == []


def test_its_lease_can_be_deleted_at_any_time(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    waiting, running = make(climate, clock, servers(1)), make(climate, clock, servers(1), start=0)
    run_due(climate)
    for lease in (waiting, running):
        leases.delete(climate, MEMBER, lease.id)
    run_due(climate)
    assert _gone(climate, waiting, running)
    assert cloud.granted == {}


def _gone(climate: Climate, *given: Lease) -> bool:
    return not {lease.id for lease in given} & {one.id for one in leases.listed(climate, ADMIN, Listing())}
