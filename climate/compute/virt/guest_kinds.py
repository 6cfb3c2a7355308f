"""Kinds of servers of the bundled drivers, as images require them."""

import platform
from dataclasses import replace

from climate.compute.models.node import NodeSpec

LIVE_DRIVERS = frozenset({"qemu"})
"""Drivers that can migrate running servers; see climate.compute.virt.live_migrator."""

Kind = tuple[str, str, str]
"""(architecture, hypervisor type, mode) of servers, with Nova's values."""

ANY = "climate"
"""Hypervisor type of servers that are not virtual machines."""

UNSAID = NodeSpec("", 0, 0, 0).hypervisor_type
MACHINES = ("x86_64", "i686")


def of_programs(*types: str) -> tuple[Kind, ...]:
    """Return the kinds of servers that are processes of this machine, for each of these hypervisor types."""
    return tuple((platform.machine(), kind, "exe") for kind in (ANY, *types))


def of_machines(*types: str) -> tuple[Kind, ...]:
    """Return the kinds of servers that are virtual machines, for each of these hypervisor types.

    A node with KVM also reports `qemu`, as Nova's libvirt driver does, so that images for either find it.
    """
    return tuple((architecture, kind, "hvm") for kind in types for architecture in MACHINES)


def completed(spec: NodeSpec, kinds: tuple[Kind, ...]) -> NodeSpec:
    """Return the node with its driver's kinds of servers if its entry names none."""
    virtual = any(mode == "hvm" for _, _, mode in kinds)
    kind = "QEMU" if virtual and spec.hypervisor_type == UNSAID else spec.hypervisor_type
    return replace(spec, supported=spec.supported or kinds, hypervisor_type=kind)
