"""Traits and resource classes of hosts, as Placement tells them and as nodes of the bundled cloud do."""

from pathlib import Path

import pytest

from climate.cloud.bundled import BundledCloud
from tests.cloud.nova import nova
from tests.compute.cloud_factory import node, place

N1 = "n1.example.org"


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of the SDK's own code
def test_placement_tells_them(tmp_path: Path) -> None:
    with nova(tmp_path) as (there, cloud):
        there.placement.traits[N1] = ["HW_CPU_X86_AVX2", "CUSTOM_GPU"]
        there.placement.inventories[N1] = {
            "VCPU": {"total": 8, "reserved": 0},
            "CUSTOM_GPU": {"total": 4, "reserved": 1},
            "CUSTOM_RESERVATION_1F6A": {"total": 2},
        }
        (host,) = cloud.find_hosts(N1)
        assert host.capabilities == {
            "trait:HW_CPU_X86_AVX2": "True",
            "trait:CUSTOM_GPU": "True",
            "resources:CUSTOM_GPU": "3",
        }
        assert [each.name for each in cloud.find_hosts(host.ids[0])] == [N1]
        there.placement.traits.clear()
        assert cloud.find_hosts(N1)[0].capabilities == {}  # Placement knows no such provider


def test_a_node_tells_them_in_its_stats(cloud_database: str, tmp_path: Path) -> None:
    stats = {"traits": ["CUSTOM_FAST"], "resources": {"CUSTOM_GPU": 4, "VCPU": 8}}
    odd = {"traits": "CUSTOM_FAST", "resources": [1]}
    with place(cloud_database, tmp_path, [node("n1", stats=stats), node("n2", stats=odd)]) as here:
        cloud = BundledCloud(here.compute)
        assert cloud.find_hosts("n1")[0].capabilities == {"trait:CUSTOM_FAST": "True", "resources:CUSTOM_GPU": "4"}
        assert cloud.find_hosts("n2")[0].capabilities == {}
