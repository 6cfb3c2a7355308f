"""A node: what a compute service offers to put servers on, and how much of it is taken."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from climate.compute.clusters.cluster_spec import ClusterSpec

DEFAULT_ZONE = "nova"
"""The availability zone of a node that names none."""

SERVICE_DOWN_SECONDS = 60
"""A service that was not heard of for so long is down."""

FREEPOOL = "freepool"
"""The pool of nodes kept for leases."""

KEPT = frozenset({FREEPOOL, "draining", "recycling", "cleaning", "maintenance", "failed"})
"""Pools that are nobody's: kept for leases, or out of use for a while.  All but the first may have servers."""

PROMISED, WANTED = "climate:promised", "climate:wanted:"
"""Metadata of a pool that is promised and still empty; what its keys begin with that say what its nodes are like."""

OWNER, CLOSED = "blazar:owner", "climate:closed"
"""Metadata of a lent pool: whose it is; whether nobody may boot there any more."""


@dataclass(frozen=True, slots=True)
class NodeDefaults:
    """What holds of nodes that say nothing else: how often their room may be promised, and what they keep (C.1, MB)."""

    ram_ratio: float = 1.5
    cpu_ratio: float = 16.0
    disk_ratio: float = 1.0
    reserved_ram_mb: int = 512
    reserved_disk_mb: int = 0


DEFAULTS = NodeDefaults()


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A node as its driver describes it.  Sizes: MB of memory, GB of disk; what it reserves: MB of both."""

    name: str
    vcpus: int
    memory_mb: int
    local_gb: int
    driver: str = "process"
    hypervisor_type: str = "climate"
    hypervisor_version: int = 1000000
    cpu_info: str = ""
    """A JSON object, or nothing."""
    zone: str | None = None
    netns: str | None = None
    """The network namespace that is the node's network; None: that of its service."""
    host_ip: str = "127.0.0.1"
    ram_ratio: float | None = None
    """None, here and below: as `NodeDefaults` says."""
    cpu_ratio: float | None = None
    disk_ratio: float | None = None
    reserved_ram_mb: int | None = None
    reserved_disk_mb: int | None = None
    disk_least_gb: int | None = None
    """Disk that is left at least, however much is promised; None: not known."""
    supported: tuple[tuple[str, str, str], ...] = ()
    """What it runs: (architecture, hypervisor type, mode)."""
    stats: Mapping[str, Any] = field(default_factory=dict)
    """Its further capabilities."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    cluster: ClusterSpec | None = None
    """The node is the sum of these members; its sizes are known when they are looked at."""
    joins: str | None = None
    """It is a member of the cluster of that name, behind another service, and no node of its own."""


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
    host_ip: str
    reserved_ram_mb: int
    reserved_disk_mb: int
    present: bool
    """Its driver reports it."""
    maintenance: str | None
    """Why no new servers are put on it; None: they are."""
    service_id: int
    enabled: bool
    disabled_reason: str | None
    up: bool
    servers: int
    """How many servers are on it."""
    stats: Mapping[str, Any] = field(default_factory=dict)
    """Its further capabilities."""


@dataclass(frozen=True, slots=True)
class Service:
    """A compute service: the process that works on the nodes it reports."""

    id: int
    uuid: str
    host: str
    enabled: bool
    disabled_reason: str | None
    forced_down: bool
    up: bool
    beat_at: datetime
    zone: str | None
    """That all of its nodes are in; None: they name none, or several."""


@dataclass(frozen=True, slots=True)
class Liveness:
    """How many services of a kind were heard of lately."""

    known: int
    last: datetime | None
    """When the last of them was heard of; None where none ever was."""
    longest: datetime | None
    """When the one was heard of that has been silent for the longest time."""
    up: int
