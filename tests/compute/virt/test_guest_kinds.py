"""Nodes say what servers they can run, by their driver or by their entry, and images find them by it."""

import platform
from dataclasses import replace
from pathlib import Path

import pytest

from climate.compute.models.node import NodeSpec
from climate.compute.scheduler.filters import images
from climate.compute.virt import VirtDriver
from climate.compute.virt.containers.driver import BubblewrapContainer
from climate.compute.virt.multi_node import MultiNodeDriver
from climate.compute.virt.process import ProcessDriver
from climate.compute.virt.qemu.driver import QemuDriver
from tests.compute.node_tables import hosts
from tests.compute.scheduler.filter_answers import SMALL, kept

HERE = Path("/nonexistent")
PLAIN = NodeSpec("a", 8, 8192, 100)
MEMBERS: dict[str, VirtDriver] = {
    "process": ProcessDriver(HERE),
    "container": ProcessDriver(HERE, BubblewrapContainer()),
    "tcg": QemuDriver(HERE, "tcg"),
    "kvm": QemuDriver(HERE, "kvm"),
}
QEMU_RUNS = (("x86_64", "qemu", "hvm"), ("i686", "qemu", "hvm"))


class Anywhere(MultiNodeDriver):
    """A cluster whose drivers are asked what they run, whether or not their programs are installed here."""

    def _reason(self, driver: str) -> str | None:
        return None


def told(spec: NodeSpec) -> NodeSpec:
    return Anywhere(lambda: [spec], MEMBERS).nodes()[0]


def finds(driver: str, properties: dict[str, str], **said: str) -> bool:
    """Whether an image with these properties finds a node of the driver."""
    spec = told(replace(PLAIN, driver=driver, **said))
    table = hosts({"supported": spec.supported, "hypervisor_type": spec.hypervisor_type})
    return kept(images.IMAGE_PROPERTIES, table, replace(SMALL, image=properties)) == [True]


def test_a_node_runs_what_its_driver_does() -> None:
    here = platform.machine()
    assert told(PLAIN).supported == ((here, "climate", "exe"), (here, "process", "exe"))
    assert told(replace(PLAIN, driver="tcg")).supported == QEMU_RUNS
    assert told(replace(PLAIN, driver="kvm")).supported == (
        *QEMU_RUNS,
        ("x86_64", "kvm", "hvm"),
        ("i686", "kvm", "hvm"),
    )
    assert [told(replace(PLAIN, driver=driver)).hypervisor_type for driver in MEMBERS] == [
        *("climate", "climate"),
        *("QEMU", "QEMU"),
    ]


def test_what_the_entry_says_stands() -> None:
    said = replace(PLAIN, driver="tcg", supported=(("x86_64", "kvm", "hvm"),), hypervisor_type="KVM")
    assert told(said) == said
    assert told(replace(PLAIN, driver="tcg", hypervisor_type="KVM")).hypervisor_type == "KVM"
    assert told(replace(PLAIN, driver="tcg", supported=said.supported)).hypervisor_type == "QEMU"


@pytest.mark.parametrize(
    ("properties", "found"),
    [
        ({"img_hv_type": "kvm"}, ["kvm"]),
        ({"img_hv_type": "qemu"}, ["tcg", "kvm"]),
        ({"hypervisor_type": "KVM", "hw_vm_mode": "hvm"}, ["kvm"]),
        ({"img_hv_type": "lxc"}, ["container"]),
        ({"img_hv_type": "container", "hw_vm_mode": "exe"}, ["container"]),
        ({"img_hv_type": "process"}, ["process"]),
        ({"img_hv_type": "climate"}, ["process", "container"]),
        ({"hw_vm_mode": "exe"}, ["process", "container"]),
        ({"hw_vm_mode": "hvm"}, ["tcg", "kvm"]),
        ({"img_hv_type": "lxc", "hw_vm_mode": "hvm"}, []),
        ({"img_hv_type": "xen"}, []),
        ({}, ["process", "container", "tcg", "kvm"]),
    ],
)
def test_an_image_finds_the_nodes_of_its_hypervisor_type(properties: dict[str, str], found: list[str]) -> None:
    assert [driver for driver in MEMBERS if finds(driver, properties)] == found


def test_an_image_finds_the_nodes_whose_entries_name_its_hypervisor_type() -> None:
    assert finds("process", {"hypervisor_type": "openvz"}, hypervisor_type="OpenVZ")
    assert not finds("process", {"hypervisor_type": "openvz"})
    assert finds("tcg", {"hypervisor_type": "kvm", "hw_vm_mode": "hvm"}, hypervisor_type="KVM")
    assert not finds("tcg", {"hypervisor_type": "kvm", "hw_vm_mode": "exe"}, hypervisor_type="KVM")
