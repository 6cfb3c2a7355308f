"""A node: what a compute service offers to put servers on, and how much of it is taken."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from climate.compute.errors import VirtError

RAM_RATIO, CPU_RATIO, DISK_RATIO = 1.5, 16.0, 1.0
"""How often a node's memory, CPUs and disk may be promised (cloud.md C.1)."""

DEFAULT_ZONE = "nova"
"""The availability zone of a node that names none."""

SERVICE_DOWN_SECONDS = 60
"""A service that was not heard of for so long is down."""

FREEPOOL = "freepool"
"""The pool of nodes kept for leases."""

OWNER, CLOSED = "blazar:owner", "climate:closed"
"""Metadata of a lent pool: whose it is; whether nobody may boot there any more."""


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A node as its driver describes it.  Sizes: MB of memory, GB of disk."""

    name: str
    vcpus: int
    memory_mb: int
    local_gb: int
    driver: str = "process"
    hypervisor_type: str = "climate"
    hypervisor_version: int = 1000000
    cpu_info: str = ""
    zone: str | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """A node row with its service and what is taken of it.  Sizes: MB, GB; disk taken in MB."""

    id: int
    uuid: str
    name: str
    service_host: str
    service_uuid: str
    vcpus: int
    memory_mb: int
    local_gb: int
    used_vcpus: int
    used_ram_mb: int
    used_disk_mb: int
    hypervisor_type: str
    hypervisor_version: int
    cpu_info: str
    zone: str | None
    pool: str | None
    present: bool
    """Its driver reports it."""
    enabled: bool
    up: bool
    servers: int
    """How many servers are on it."""


_NUMBERS = ("vcpus", "memory_mb", "local_gb")
_TEXTS = ("driver", "hypervisor_type", "cpu_info", "zone")


def node_spec(entry: Any) -> NodeSpec:
    """The node that an entry of nodes.yaml describes; VirtError names what is wrong."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str) or not entry["name"]:
        raise VirtError(f"a node needs a name: {entry!r}")
    known: dict[str, Any] = {key: _count(entry, key) for key in _NUMBERS}
    known |= {key: str(entry[key]) for key in _TEXTS if entry.get(key) is not None}
    if "hypervisor_version" in entry:
        known["hypervisor_version"] = _count(entry, "hypervisor_version")
    return NodeSpec(name=entry["name"], **known)


def _count(entry: Mapping[str, Any], key: str) -> int:
    value = entry.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise VirtError(f"node {entry['name']}: {key} must be a whole number, not {value!r}")
    return value


@dataclass(frozen=True, slots=True)
class Service:
    """A compute service: the process that works on the nodes it reports."""

    id: int
    uuid: str
    host: str
    enabled: bool
    disabled_reason: str | None
    up: bool
    beat_at: Any
