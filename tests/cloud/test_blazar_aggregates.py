"""Aggregates and flavors that Blazar created are used and deleted like those of climate."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from climate.cloud import FREEPOOL, Capacity, Cloud
from climate.cloud.openstack.pools.aggregates import CLOSED, GRANTED, NOBODY, OWNER, RESERVATION, TENANT
from tests.cloud.nova import Nova, nova

pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of the SDK's own code

N1 = "n1.example.org"
POOL = "0d1e3c52-56c1-4d0e-9a3c-6c6b1f0c0001"
SLOT = "resources:CUSTOM_RESERVATION_0D1E3C52_56C1_4D0E_9A3C_6C6B1F0C0001"
FLAVOR_SPEC = "aggregate_instance_extra_specs:reservation"


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[Nova, Cloud]]:
    with nova(tmp_path) as found:
        found[0].put(FREEPOOL, ("n1", "n2"))
        yield found


def share(there: Nova, *hosts: str) -> None:
    """What Blazar creates for a reservation of servers; at its start it adds the hosts."""
    there.put(POOL, hosts, **{OWNER: "demo", RESERVATION: POOL, TENANT: "demo"})
    there.flavor(POOL, **{FLAVOR_SPEC: POOL, SLOT: "1"})
    there.access[POOL].add("demo")


def size() -> Capacity:
    return Capacity(POOL, "demo", 2, 4096, 20, {N1: 2})


def test_shared_capacity_of_blazar_leaves_its_hosts_in_the_reservation_pool(both: tuple[Nova, Cloud]) -> None:
    there, cloud = both
    share(there, "n1")
    assert cloud.pools() == {FREEPOOL: {N1, "n2.example.org"}}
    there.run("s1", N1, flavor={"original_name": f"reservation:{POOL}"})
    there.run("s2", N1)
    assert [server.id for server in cloud.servers_in(POOL)] == ["s1"]


def test_shared_capacity_that_blazar_started_is_closed_and_taken_back(both: tuple[Nova, Cloud]) -> None:
    there, cloud = both
    share(there, "n1")
    cloud.close(POOL, 5)
    assert {TENANT: NOBODY, CLOSED: "true", GRANTED: "demo"}.items() <= there.of(POOL)["metadata"].items()
    assert there.access[POOL] == set()
    cloud.revoke(POOL, [N1], 6)
    assert there.log[-3:] == [f"drop flavor {POOL}", f"remove_host {POOL} n1", f"drop {POOL}"]


def test_shared_capacity_that_blazar_planned_is_granted(both: tuple[Nova, Cloud]) -> None:
    """Its slots have the names that Blazar would give them."""
    there, cloud = both
    share(there)
    for _ in range(2):
        cloud.grant(size(), 5)
    assert there.of(POOL)["metadata"]["climate:slots:n1"] == "2"
    assert there.of(POOL)["hosts"] == ["n1"]
    assert there.of(POOL)["metadata"].items() >= {GRANTED: "demo", TENANT: "demo", RESERVATION: POOL}.items()
    assert OWNER not in there.of(POOL)["metadata"]
    assert (there.flavors[POOL]["specs"], there.access[POOL]) == ({FLAVOR_SPEC: POOL, SLOT: "1"}, {"demo"})


def test_a_pool_that_blazar_lent_is_taken_back(both: tuple[Nova, Cloud]) -> None:
    there, cloud = both
    there.of(FREEPOOL)["hosts"] = ["n2"]
    there.put(POOL, ("n1",), **{OWNER: "demo", "availability_zone": f"blazar_{POOL}"})
    assert cloud.pools()[POOL] == {N1}
    cloud.close(POOL, 5)
    cloud.take_back(POOL, [N1], 6)
    assert cloud.pools() == {FREEPOOL: {N1, "n2.example.org"}}


def test_a_pool_that_blazar_planned_is_lent_or_dropped(both: tuple[Nova, Cloud]) -> None:
    there, cloud = both
    there.put(POOL, **{OWNER: "demo", "availability_zone": f"blazar_{POOL}"})
    assert cloud.lease_pools()[POOL].wanted is None, "the requirements are not known"
    cloud.lend(POOL, "demo", [N1], 5)
    assert (there.of(POOL)["hosts"], there.of(POOL)["metadata"][TENANT]) == (["n1"], "demo")
    cloud.take_back(POOL, [N1], 6)
    there.put(POOL, **{OWNER: "demo"})
    cloud.take_back(POOL, [N1], 7)
    assert there.log[-1] == f"drop {POOL}"
