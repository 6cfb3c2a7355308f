"""What servers the bundled drivers run: the words by which images ask for them."""

import platform
from dataclasses import replace

from climate.compute.models.node import NodeSpec

LIVE_DRIVERS = frozenset({"qemu"})
"""The drivers that can move running servers; see climate.compute.virt.live_migrator."""

Kind = tuple[str, str, str]
"""(architecture, hypervisor type, mode) of servers, in the words of Nova."""

ANY = "climate"
"""The hypervisor type of everything that is no virtual machine."""

UNSAID = NodeSpec("", 0, 0, 0).hypervisor_type
MACHINES = ("x86_64", "i686")


def of_programs(*types: str) -> tuple[Kind, ...]:
    """Servers that are processes of this machine's architecture, under each of these hypervisor types."""
    return tuple((platform.machine(), kind, "exe") for kind in (ANY, *types))


def of_machines(*types: str) -> tuple[Kind, ...]:
    """Virtual machines, under each of these hypervisor types.

    A node with KVM says `qemu` too, as Nova's libvirt driver does: images for either find it.
    """
    return tuple((architecture, kind, "hvm") for kind in types for architecture in MACHINES)


def completed(spec: NodeSpec, kinds: tuple[Kind, ...]) -> NodeSpec:
    """The node, with the servers that its driver can run where its entry leaves that open (cloud.md F.6)."""
    virtual = any(mode == "hvm" for _, _, mode in kinds)
    kind = "QEMU" if virtual and spec.hypervisor_type == UNSAID else spec.hypervisor_type
    return replace(spec, supported=spec.supported or kinds, hypervisor_type=kind)
