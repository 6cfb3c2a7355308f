"""Nodes say what servers they can run, by their driver or by their entry."""

import platform
from dataclasses import replace

from climate.compute.host import NodeSpec
from climate.compute.virt.cluster import ClusterDriver
from climate.compute.virt.memory import MemoryDriver

PLAIN = NodeSpec("a", 8, 8192, 100)


def told(spec: NodeSpec) -> NodeSpec:
    members = {"qemu": MemoryDriver(), "process": MemoryDriver()}
    return ClusterDriver(lambda: [spec], members).nodes()[0]


def test_a_node_runs_what_its_driver_does() -> None:
    assert told(PLAIN).supported == ((platform.machine(), "climate", "exe"),)
    machines = told(replace(PLAIN, driver="qemu"))
    assert machines.supported == (("x86_64", "qemu", "hvm"), ("i686", "qemu", "hvm"))
    assert machines.hypervisor_type == "QEMU"


def test_what_the_entry_says_stands() -> None:
    said = replace(PLAIN, driver="qemu", supported=(("x86_64", "kvm", "hvm"),), hypervisor_type="KVM")
    assert told(said) == said
    assert told(replace(PLAIN, driver="qemu", hypervisor_type="KVM")).hypervisor_type == "KVM"
    assert told(replace(PLAIN, driver="qemu", supported=said.supported)).hypervisor_type == "QEMU"
