"""PCI devices and NUMA cells of nodes are promised once, in a cloud and by requests of the same moment."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from climate.compute.errors import BadRequest, NoValidHost, VirtError
from climate.compute.models.flavor import Flavor
from climate.compute.models.server import DELETE, ERROR
from climate.compute.nodes.hardware_discovery import numa_cells, pci_devices
from climate.compute.nodes.nodes_file_entry import node_spec
from climate.compute.servers import actions, resize
from tests.compute.cloud_factory import Place, node, place
from tests.compute.test_schedulers import under

FILTERS = "RamFilter,ComputeFilter,NUMATopologyFilter,PciPassthroughFilter"
GPU = {"vendor_id": "10de", "product_id": "20b0"}
CARD = Flavor("g", "card", 1, 512, 1, extra_specs={"pci_passthrough:alias": "gpu:1"})
CELLS = Flavor("c", "cells", 4, 4096, 1, extra_specs={"hw:numa_nodes": "2"})


@pytest.fixture
def there(scratch: str, tmp_path: Path) -> Iterator[Place]:
    """A cloud of three nodes: one without anything, one with two cards, one with a card and two cells."""
    cells = [{"cpus": 4, "memory_mb": 4096}] * 2
    second = node("n2", stats={"pci_devices": [GPU, GPU]})
    third = node("n3", stats={"pci_devices": [GPU], "numa_cells": cells}, ram_ratio=1.0, cpu_ratio=1.0)
    with place(scratch, tmp_path, [node("n1"), second, third]) as found:
        yield under(found, "filter", scheduler_filters=FILTERS, pci_aliases="gpu=10de:20b0")


def test_a_device_has_one_server_until_it_is_deleted(there: Place) -> None:
    made = [there.boot_one(CARD, networks=()) for _ in range(4)]
    assert Counter(server.node for server in made) == {"n2": 2, "n3": 1, None: 1}
    assert "PciPassthroughFilter" in str(next(server for server in made if server.status == ERROR).fault)
    gone = made[0]
    actions.request_task(there.compute, gone.id, DELETE)
    there.settle()
    assert there.boot_one(CARD, networks=()).node == gone.node


def test_requests_of_the_same_moment_get_devices_of_their_own(there: Place) -> None:
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda number: there.boot(CARD, networks=(), project_id=f"p{number}")[0], range(8)))
    assert Counter(server.node for server in made) == {"n2": 2, "n3": 1, None: 5}


def test_cells_are_promised_by_the_ratios_of_the_node(there: Place) -> None:
    assert [there.boot(CELLS, networks=())[0].node for _ in range(3)] == ["n3", "n3", None]


def test_a_resize_asks_for_what_the_new_flavor_has(there: Place) -> None:
    plain = there.boot_one(networks=(), zone="nova::n1", admin=True)
    with pytest.raises(NoValidHost, match="PciPassthroughFilter"):
        resize.resize(there.compute, plain.id, CARD)
    there.boot(CARD, networks=(), zone="nova::n3", admin=True)
    other = there.boot_one(networks=(), zone="nova::n2", admin=True)
    resize.resize(there.compute, other.id, CARD)


def test_an_alias_that_is_not_defined_is_refused(there: Place) -> None:
    with pytest.raises(BadRequest, match="PCI alias other is not defined; known are gpu"):
        there.boot(Flavor("o", "o", 1, 512, 1, extra_specs={"pci_passthrough:alias": "other"}))
    assert there.count("compute_servers") == 0


def test_a_node_reports_what_its_entry_says() -> None:
    entry = {"name": "n", "vcpus": 8, "memory_mb": 8192, "local_gb": 10, "stats": {"own": 1}}
    cells = [{"cpus": 4, "memory_mb": 4096}]
    found = node_spec(entry | {"numa_cells": cells, "pci_devices": [GPU]})
    assert found.stats == {"own": 1, "numa_cells": cells, "pci_devices": [GPU]}
    machine = node_spec(entry | {"numa_cells": "auto", "pci_devices": "auto"})
    assert machine.stats == {"own": 1, "numa_cells": numa_cells(), "pci_devices": pci_devices()}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("numa_cells", {"cpus": 1}),
        ("numa_cells", [{"cpus": 1}]),
        ("numa_cells", [{"cpus": -1, "memory_mb": 1}]),
        ("numa_cells", "some"),
        ("pci_devices", [{"vendor_id": "10de"}]),
        ("pci_devices", [{"vendor_id": "10de", "product_id": "x"}]),
        ("pci_devices", [GPU | {"colour": "red"}]),
    ],
)
def test_an_entry_that_cannot_be_understood_is_named(key: str, value: object) -> None:
    with pytest.raises(VirtError, match=f"node n: {key} must be"):
        node_spec({"name": "n", "vcpus": 8, "memory_mb": 8192, "local_gb": 10, key: value})


def test_the_machine_is_read_as_linux_shows_it(tmp_path: Path) -> None:
    for number, listed in ((0, "0-3,8"), (10, "4-7"), (2, "9")):
        folder = tmp_path / f"devices/system/node/node{number}"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(f"{listed}\n")
        (folder / "meminfo").write_text(f"\nNode {number} MemTotal:  {1024 * (number + 1)} kB\nNode 0 MemFree: 1 kB\n")
    device = tmp_path / "bus/pci/devices/0000:3b:00.0"
    device.mkdir(parents=True)
    (device / "vendor").write_text("0x10DE\n")
    (device / "device").write_text("0x20b0\n")
    assert numa_cells(tmp_path) == [
        {"cpus": 5, "memory_mb": 1},
        {"cpus": 1, "memory_mb": 3},
        {"cpus": 4, "memory_mb": 11},
    ]
    assert pci_devices(tmp_path) == [{"address": "0000:3b:00.0", **GPU}]
    assert (numa_cells(tmp_path / "none"), pci_devices(tmp_path / "none")) == ([], [])
