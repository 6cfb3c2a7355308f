"""Guests get NUMA cells and PCI devices of nodes that report enough of them, beside the servers that are there."""

from dataclasses import replace
from typing import Any

import pytest

from climate.compute.errors import BadRequest, NoValidHost
from climate.compute.models.flavor import Flavor
from climate.compute.models.request import Spec
from climate.compute.placement.numa_and_pci_requests import Demand, GuestCell, demand_of
from climate.compute.scheduler.filtering.scheduler import select
from climate.compute.scheduler.filters.pci_numa_trust import NUMA, PCI
from climate.compute.scheduler.hosts.numa import fit
from climate.compute.scheduler.placement_plan import Plan
from climate.compute.scheduler.scheduler_parts import Options, Rules
from tests.compute.node_tables import hosts

OPTIONS = Options(pci_aliases=(("gpu", ("10de", "20b0")), ("nic", ("8086", "1572")), ("fast", ("10de", "20b0"))))
GPU, NIC = {"vendor_id": "10DE", "product_id": "20B0"}, {"vendor_id": "8086", "product_id": "1572"}
TWO = [{"cpus": 4, "memory_mb": 4096}] * 2


def asking(vcpus: int = 4, ram_mb: int = 4096, **specs: str) -> Spec:
    """A request whose flavor has extra specs; `pci` and `numa` stand for their usual keys."""
    named = {"pci": "pci_passthrough:alias", "numa": "hw:numa_nodes"}
    extra = {named.get(key, key): text for key, text in specs.items()}
    flavor = Flavor("f", "f", vcpus, ram_mb, 0, extra_specs=extra)
    return Spec("demo", vcpus, ram_mb, 0, flavor=flavor, demands={})


def placed(spec: Spec, count: int, *rows: dict[str, Any]) -> list[str]:
    plan: Plan = select(hosts(*rows), spec, count, Rules((NUMA, PCI), (), OPTIONS))
    return [pick.node for pick in plan.picks]


def has(**stats: Any) -> dict[str, Any]:
    return {"stats": stats, "ram_ratio": 1.0, "cpu_ratio": 1.0}


def test_devices_are_promised_once_also_within_a_request() -> None:
    rows = {}, has(pci_devices=[NIC]), has(pci_devices=[GPU, NIC, GPU])
    assert placed(asking(pci="gpu:1"), 2, *rows) == ["n3", "n3"]
    assert placed(asking(pci="gpu:2,nic"), 1, *rows) == ["n3"]
    with pytest.raises(NoValidHost, match="'PciPassthroughFilter'") as refused:
        placed(asking(pci="gpu:1"), 3, *rows)
    assert refused.value.found == 2
    assert refused.value.trail["filters"][1]["removed"][0]["why"] == "has 0 of 1 PCI devices 10de:20b0 free."


def test_two_aliases_of_one_device_share_it() -> None:
    rows = (has(pci_devices=[GPU, GPU]),)
    assert placed(asking(pci="gpu:1,fast:1"), 1, *rows) == ["n1"]
    with pytest.raises(NoValidHost):
        placed(asking(pci="gpu:1,fast:2"), 1, *rows)


def test_devices_of_servers_that_are_there_are_not_free() -> None:
    there = {1: (Demand(devices=(("fast", 1),)), Demand(devices=(("old", 9),)))}
    rows = has(pci_devices=[GPU]), has(pci_devices=[GPU])
    assert placed(replace(asking(pci="gpu"), demands=there), 1, *rows) == ["n2"]


@pytest.mark.parametrize("told", [None, "many", [7], [{"vendor_id": "10de"}], [{"vendor_id": 1, "product_id": 2}]])
def test_a_node_that_reports_nonsense_has_no_devices(told: Any) -> None:
    assert placed(asking(pci="gpu"), 1, has(pci_devices=told), has(pci_devices=[GPU])) == ["n2"]


def test_each_cell_of_a_guest_is_on_another_cell() -> None:
    rows = {}, has(numa_cells=TWO[:1]), has(numa_cells=TWO)
    assert placed(asking(numa="2"), 2, *rows) == ["n3", "n3"]
    assert placed(asking(numa="1"), 3, *rows) == ["n2", "n3", "n3"]
    with pytest.raises(NoValidHost) as refused:
        placed(asking(numa="3", vcpus=3, ram_mb=3), 1, *rows)
    why = [entry["why"] for entry in refused.value.trail["filters"][0]["removed"]]
    assert why == ["reports no NUMA cells.", *["has no free NUMA cells for the guest's."] * 2]


def test_a_guest_that_fits_on_the_node_may_fit_on_none_of_its_cells() -> None:
    with pytest.raises(NoValidHost, match="'NUMATopologyFilter'"):
        placed(asking(vcpus=5, numa="1"), 1, has(numa_cells=TWO))
    assert placed(asking(vcpus=5), 1, has(numa_cells=TWO)) == ["n1"], "without the extra spec nobody asks for cells"


def test_ratios_hold_for_each_cell_and_never_for_one_guest_alone() -> None:
    large = has(numa_cells=TWO) | {"cpu_ratio": 2.0, "ram_ratio": 2.0}
    assert placed(asking(numa="2", vcpus=8, ram_mb=8192), 2, large) == ["n1", "n1"]
    with pytest.raises(NoValidHost):
        placed(asking(numa="2", vcpus=8, ram_mb=8192), 3, large)
    with pytest.raises(NoValidHost):
        placed(asking(numa="1", vcpus=5, ram_mb=512), 1, large)


def test_cells_of_different_sizes_find_theirs_in_whatever_order() -> None:
    uneven = {"hw:numa_cpus.0": "0", "hw:numa_cpus.1": "1-3", "hw:numa_mem.0": "512", "hw:numa_mem.1": "3584"}
    cells = [{"cpus": 4, "memory_mb": 4096}, {"cpus": 1, "memory_mb": 600}]
    for told in (cells, cells[::-1]):
        assert placed(asking(numa="2", **uneven), 1, has(numa_cells=told)) == ["n1"]


def test_a_cell_makes_room_for_another_of_the_same_guest() -> None:
    assert fit([(4, 500), (2, 1000)], [[GuestCell(1, 100), GuestCell(3, 100)]], (1.0, 1.0))
    assert fit([(4, 1000), (2, 900)], [[GuestCell(1, 100), GuestCell(3, 100)]], (1.0, 1.0))
    assert not fit([(4, 1000), (2, 900)], [[GuestCell(3, 100), GuestCell(3, 100)]], (1.0, 1.0))


@pytest.mark.parametrize(
    ("specs", "says"),
    [
        ({"pci": "gpu:0"}, "alias:1"),
        ({"pci": "gpu:x"}, "alias:1"),
        ({"pci": ":1"}, "alias:1"),
        ({"pci": "gpu:99999999999"}, "alias:1"),
        ({"pci": "other"}, "PCI alias other is not defined; known are fast, gpu, nic"),
        ({"numa": "0"}, "number from 1"),
        ({"numa": "two"}, "number from 1"),
        ({"numa": "3"}, "not divisible"),
        ({"numa": "2", "hw:numa_cpus.0": "0"}, "of all its 2 cells"),
        ({"numa": "1", "hw:numa_cpus.0": "0-2", "hw:numa_mem.0": "4096"}, "each of its 4 vCPUs once"),
        ({"numa": "1", "hw:numa_cpus.0": "0-x", "hw:numa_mem.0": "4096"}, "list of CPUs"),
        ({"numa": "1", "hw:numa_cpus.0": "0-99999999", "hw:numa_mem.0": "4096"}, "list of CPUs|each of its"),
        ({"numa": "1", "hw:numa_cpus.0": "0-3", "hw:numa_mem.0": "4095"}, "4096 MB together, not 4095"),
        ({"numa": "1", "hw:numa_cpus.0": "0-3", "hw:numa_mem.0": "-1"}, "number of MB"),
    ],
)
def test_what_a_flavor_asks_wrongly_is_named(specs: dict[str, str], says: str) -> None:
    with pytest.raises(BadRequest, match=says):
        placed(asking(**specs), 1, has(numa_cells=TWO, pci_devices=[GPU]))


def test_a_demand_is_read_from_a_flavor() -> None:
    assert demand_of({"pci_passthrough:alias": " gpu:2 , nic, gpu "}, 1, 1).devices == (("gpu", 3), ("nic", 1))
    assert demand_of({"hw:numa_nodes": "2"}, 4, 1024).cells == (GuestCell(2, 512), GuestCell(2, 512))
    assert not demand_of({"hw:cpu_policy": "dedicated"}, 4, 1024)
