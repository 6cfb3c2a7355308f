"""Flavors that ask for traits and resource classes: hosts that have them, counted at every instant."""

import json
from dataclasses import replace

import pytest

from climate.cloud import CloudFlavor, provided
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import Conflict, InvalidInput, NotEnoughHosts
from climate.service.hosts import inventory
from climate.service.leases import update
from climate.service.leases.update import Changes
from tests.conftest import ADMIN, MEMBER, Clock, cloud_host
from tests.service.capacity_factory import slots
from tests.service.lease_actions import make, run_due

GPU = "resources:CUSTOM_GPU"


@pytest.fixture
def cloud(climate: Climate) -> FakeCloud:
    assert isinstance(climate.cloud, FakeCloud)
    return climate.cloud


def flavored(climate: Climate, amount: int, extra_specs: dict[str, str], vcpus: int = 1) -> dict[str, object]:
    """A reservation of servers of a flavor with these extra specs, which is made for it."""
    assert isinstance(climate.cloud, FakeCloud)
    name = json.dumps([extra_specs, vcpus])
    climate.cloud.flavors[name] = CloudFlavor(name, "f", vcpus, 128, 1, extra_specs)
    return {"resource_type": "flavor:instance", "flavor_id": name, "amount": amount}


def describe(climate: Climate, number: int, **extra: str | None) -> None:
    inventory.update(climate, ADMIN, str(number), {name.replace("__", ":"): value for name, value in extra.items()})


def test_required_and_forbidden_traits(climate: Climate, clock: Clock) -> None:
    describe(climate, 3, trait__CUSTOM_A="True")
    describe(climate, 4, trait__CUSTOM_A="True", trait__CUSTOM_B="True")
    both = {"trait:CUSTOM_A": "required", "trait:CUSTOM_B": "forbidden"}
    assert slots(make(climate, clock, flavored(climate, 4, both))) == {3: 4}
    with pytest.raises(NotEnoughHosts, match="1 hosts match, and 0 fit on them"):
        make(climate, clock, flavored(climate, 1, both))
    without = flavored(climate, 8, {"trait:CUSTOM_A": "forbidden"}, vcpus=4)
    assert not set(slots(make(climate, clock, without))) & {3, 4}


def test_a_resource_class_is_counted_at_every_instant(climate: Climate, clock: Clock) -> None:
    describe(climate, 3, resources__CUSTOM_GPU="3")
    describe(climate, 4, resources__CUSTOM_GPU="1")
    two, one = flavored(climate, 1, {GPU: "2"}), flavored(climate, 1, {GPU: "1"})
    assert slots(make(climate, clock, two, start=1, hours=2)) == {3: 1}
    assert slots(make(climate, clock, two, start=3, hours=2)) == {3: 1}  # what ends makes room
    assert slots(make(climate, clock, flavored(climate, 2, {GPU: "1"}), start=2, hours=2)) == {3: 1, 4: 1}
    for start, hours in ((1, 3), (2, 1), (3, 1)):
        with pytest.raises(NotEnoughHosts, match="2 hosts match"):
            make(climate, clock, one, start=start, hours=hours)
    assert slots(make(climate, clock, one, start=1, hours=1)) in ({3: 1}, {4: 1})


def test_two_reservations_of_a_lease_share_what_there_is(climate: Climate, clock: Clock) -> None:
    describe(climate, 3, resources__CUSTOM_GPU="3")
    two, one = flavored(climate, 1, {GPU: "2"}), flavored(climate, 1, {GPU: "1"})
    with pytest.raises(NotEnoughHosts):
        make(climate, clock, two, two)
    assert slots(make(climate, clock, two, one)) == {3: 2}


def test_hosts_that_are_full_of_something_else_are_passed_over(climate: Climate, clock: Clock) -> None:
    """Hosts are looked at from the fullest on: the one with the class left is found though it comes last."""
    for number in range(1, 9):
        describe(climate, number, resources__CUSTOM_GPU="1")
    wanted = flavored(climate, 1, {GPU: "1"})
    taken = [slots(make(climate, clock, wanted)) for _ in range(8)]
    assert sorted(host for each in taken for host in each) == list(range(1, 9))
    with pytest.raises(NotEnoughHosts):
        make(climate, clock, wanted)


def test_sizes_can_be_counted_otherwise_than_the_flavor_says(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    describe(climate, 3, resources__CUSTOM_BAREMETAL="1")
    specs = {"resources:CUSTOM_BAREMETAL": "1", "resources:VCPU": "0", "resources:MEMORY_MB": "0"}
    lease = make(climate, clock, flavored(climate, 1, {**specs, "resources:DISK_GB": "0"}, vcpus=64), start=0)
    assert slots(lease) == {3: 1}
    spec = lease.reservations[0].spec
    assert (spec["vcpus"], spec["memory_mb"], spec["disk_gb"]) == (0, 0, 0)
    run_due(climate)
    granted = cloud.granted[str(lease.reservations[0].id)]
    assert (granted.vcpus, granted.memory_mb, granted.extra_specs["resources:VCPU"]) == (64, 128, "0")


def test_dedicated_cpus_count_like_others(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, flavored(climate, 1, {"resources:VCPU": "1", "resources:PCPU": "3"}, vcpus=9))
    assert lease.reservations[0].spec["vcpus"] == 4


@pytest.mark.parametrize(
    ("specs", "said"),
    [
        ({"trait:CUSTOM_A": "wanted"}, "Extra spec trait:CUSTOM_A must be required or forbidden, not 'wanted'"),
        ({"trait:custom": "required"}, "Extra spec trait:custom: a name has capital letters"),
        ({GPU: "two"}, f"Extra spec {GPU} must be a number from 0 to 999999999, not 'two'"),
        ({GPU: "-1"}, "not '-1'"),
        ({"resources:": "1"}, "a name has capital letters"),
    ],
)
def test_what_cannot_be_understood_is_refused(climate: Climate, clock: Clock, specs: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        make(climate, clock, flavored(climate, 1, specs))


def test_a_trait_stays_while_a_lease_relies_on_it(climate: Climate, clock: Clock) -> None:
    describe(climate, 3, trait__CUSTOM_A="True", resources__CUSTOM_GPU="3")
    make(climate, clock, flavored(climate, 1, {"trait:CUSTOM_A": "required", GPU: "1", "trait:CUSTOM_B": "forbidden"}))
    for change in ({"trait__CUSTOM_A": None}, {"resources__CUSTOM_GPU": "1"}, {"trait__CUSTOM_B": "True"}):
        with pytest.raises(Conflict, match="leases on it rely on them"):
            describe(climate, 3, **change)
    describe(climate, 3, rack="7")
    describe(climate, 4, trait__CUSTOM_A="True")


def test_a_host_is_registered_with_what_the_cloud_knows_of_it(climate: Climate, cloud: FakeCloud) -> None:
    told = provided(["HW_CPU_X86_AVX2", "T" * 80], {"CUSTOM_GPU": 4, "VCPU": 64})
    cloud.hosts["h9"] = replace(cloud_host("h9"), capabilities=told)
    made = inventory.register(climate, ADMIN, "h9", {GPU: "2", "rack": "1"})
    assert made.extra == {"trait:HW_CPU_X86_AVX2": "True", GPU: "2", "rack": "1"}


def test_growing_longer_counts_own_slots_as_free(climate: Climate, clock: Clock) -> None:
    describe(climate, 3, resources__CUSTOM_GPU="1")
    one = flavored(climate, 1, {GPU: "1"})
    first, second = (make(climate, clock, one, start=start, hours=1) for start in (1, 3))
    longer = update.update(climate, MEMBER, first.id, Changes(end=second.period.start))
    assert slots(longer) == {3: 1}
    with pytest.raises(NotEnoughHosts):
        update.update(climate, MEMBER, longer.id, Changes(end=second.period.end))
