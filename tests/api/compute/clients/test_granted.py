"""Servers on room that is granted, by the openstack client, as the peer's users boot them."""

import pytest

from climate.cloud import Capacity
from climate.cloud.bundled import BundledCloud
from tests.api.compute.clients.conftest import NODES, Person
from tests.compute.served_cloud import Served

POOL = "9c7f3f1e-3a55-4be0-8b3d-3d9f9f0c0001"
GROUP = "9c7f3f1e-3a55-4be0-8b3d-3d9f9f0c0002"


@pytest.fixture
def flavor(cloud: Served, boss: Person) -> str:
    """The name of the flavor of two slots on one node, and one on the other, for the project demo."""
    project, there = boss.read("project show demo")["id"], BundledCloud(cloud.here.compute)
    for name in NODES:
        there.enrol(name, 1)
    there.grant(Capacity(POOL, project, 1, 256, 1, {"n1": 2, "n2": 1}, False, GROUP), 1)
    return f"reservation:{POOL}"


@pytest.mark.slow
def test_they_boot_by_the_flavor_and_the_group_until_the_slots_are_used_up(
    cloud: Served, boss: Person, demo: Person, flavor: str
) -> None:
    assert flavor in demo.names("flavor list --all")
    assert demo.names("server group list", "ID") == [GROUP]
    group = f"--hint group={GROUP}"
    demo(f"server create --flavor {flavor} --image demo {group} --wait g1")
    demo(f"server create --flavor {POOL} --image demo {group} --wait g2")
    demo(f"server create --flavor {POOL} --image demo --wait g3")
    demo(f"server create --flavor {POOL} --image demo g4")
    demo.sees("g4", "ERROR")
    assert "Of the 3 slots" in str(demo.read("server show g4")["fault"])
    assert "400" in demo.refused("server resize --flavor m1.small g1")
    for refused in (
        f"flavor delete {POOL}",
        f"flavor set --property a=b {POOL}",
        f"flavor unset --project demo {POOL}",
    ):
        assert boss.refused(refused)
    assert demo.refused(f"server group delete {GROUP}")
    there = BundledCloud(cloud.here.compute)
    assert len({server.host for server in there.servers_in(POOL)} - {None}) == 2
    demo("server delete --wait g1 g2 g3 g4")
    there.revoke(POOL, NODES, 2)
    assert flavor not in boss.names("flavor list --all")
    for name in NODES:
        there.withdraw(name, 9)
