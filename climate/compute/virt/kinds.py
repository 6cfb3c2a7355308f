"""What servers the bundled drivers run, for nodes whose entries leave it open."""

import platform
from dataclasses import replace

from climate.compute.host import NodeSpec

QEMU_RUNS = (("x86_64", "qemu", "hvm"), ("i686", "qemu", "hvm"))
LIVE_DRIVERS = frozenset({"qemu"})
"""The drivers that can move running servers; see climate.compute.virt.live."""

UNSAID = NodeSpec("", 0, 0, 0).hypervisor_type


def completed(spec: NodeSpec) -> NodeSpec:
    """The node, with the servers that its driver can run (cloud.md F.6): images may ask for one of them."""
    if spec.driver != "qemu":
        return replace(spec, supported=spec.supported or ((platform.machine(), "climate", "exe"),))
    kind = "QEMU" if spec.hypervisor_type == UNSAID else spec.hypervisor_type
    return replace(spec, supported=spec.supported or QEMU_RUNS, hypervisor_type=kind)
