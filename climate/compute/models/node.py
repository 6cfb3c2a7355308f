"""A node: the capacity that a compute service offers for servers, and its usage."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from climate.compute.clusters.cluster_spec import ClusterSpec

DEFAULT_ZONE = "nova"
"""The availability zone of a node that names none."""

SERVICE_DOWN_SECONDS = 60
"""Seconds without a heartbeat after which a service is down."""

FREEPOOL = "freepool"
"""The pool of nodes kept for leases."""

KEPT = frozenset({FREEPOOL, "draining", "recycling", "cleaning", "maintenance", "failed"})
"""Pools without owner: kept for leases, or out of use for a while. All but the first may have servers."""

PROMISED, WANTED = "climate:promised", "climate:wanted:"
"""Metadata of a pool that is promised and still empty, and prefix of its keys with the requirements on nodes."""

OWNER, CLOSED = "blazar:owner", "climate:closed"
"""Metadata of a lent pool: its owner, and a mark that booting there is closed."""

SHARED = "climate:shared_with"
"""Metadata of a lent pool: further projects that may boot there, separated by commas."""


def admits(owner: str | None, shared: str | None, project_id: str | None) -> bool:
    """Return whether a pool with this owner and these further projects is lent to a project."""
    return project_id is not None and (project_id == owner or project_id in (shared or "").split(","))


@dataclass(frozen=True, slots=True)
class NodeDefaults:
    """Defaults of nodes: allocation ratios, and reserved memory and disk in MB, as in Nova."""

    ram_ratio: float = 1.5
    cpu_ratio: float = 16.0
    disk_ratio: float = 1.0
    reserved_ram_mb: int = 512
    reserved_disk_mb: int = 0


DEFAULTS = NodeDefaults()


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A node as its driver describes it. Sizes: MB of memory, GB of disk; reserved amounts: MB of both."""

    name: str
    vcpus: int
    memory_mb: int
    local_gb: int
    driver: str = "process"
    hypervisor_type: str = "climate"
    hypervisor_version: int = 1000000
    cpu_info: str = ""
    """A JSON object, or empty."""
    zone: str | None = None
    netns: str | None = None
    """The network namespace of the node's network; None: that of its service."""
    host_ip: str = "127.0.0.1"
    ram_ratio: float | None = None
    """None, here and below: as in `NodeDefaults`."""
    cpu_ratio: float | None = None
    disk_ratio: float | None = None
    reserved_ram_mb: int | None = None
    reserved_disk_mb: int | None = None
    disk_least_gb: int | None = None
    """Disk in GB that is left at least, whatever is allocated; None: unknown."""
    supported: tuple[tuple[str, str, str], ...] = ()
    """Supported instances: (architecture, hypervisor type, mode)."""
    stats: Mapping[str, object] = field(default_factory=dict)
    """Further capabilities."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    cluster: ClusterSpec | None = None
    """The node is the sum of these members; its sizes are computed when they are read."""
    joins: str | None = None
    """The cluster, behind another service, of which it is a member; then it is no node of its own."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node row with its service and its usage. Sizes: MB, GB; used disk in MB."""

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
    """The reason why no new servers are placed on it; None: they are."""
    service_id: int
    enabled: bool
    disabled_reason: str | None
    up: bool
    servers: int
    """Number of servers on it."""
    stats: Mapping[str, object] = field(default_factory=dict)
    """Further capabilities."""


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
    """The zone of all its nodes; None: they name none, or several."""


@dataclass(frozen=True, slots=True)
class Liveness:
    """The number of services of a kind with a recent heartbeat."""

    known: int
    last: datetime | None
    """The latest heartbeat of any of them; None if there was none."""
    longest: datetime | None
    """The heartbeat of the service that has been silent for the longest time."""
    up: int
