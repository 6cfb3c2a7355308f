"""`Compute`: the dependencies of the bundled cloud's functions, passed in explicitly."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Protocol

from sqlalchemy import Connection, Engine

from climate.compute import audit_trail
from climate.compute.audit_trail import TellChange
from climate.compute.cells.options import CellOptions
from climate.compute.images.quota import ImageLimits
from climate.compute.models.flavor import Flavor
from climate.compute.models.node import DEFAULTS, SERVICE_DOWN_SECONDS, NodeDefaults
from climate.compute.network.allocation.change_notifications import TellNetwork, silent_network
from climate.compute.network.allocation.queue import AllocationQueue
from climate.compute.network.driver.registry import DriverCache
from climate.compute.network.network_options import NetworkOptions
from climate.compute.nodes.attestation import SPEC, Trust
from climate.compute.scheduler.decisions.notifications import Tell, silent
from climate.compute.scheduler.filtering.scheduler import select
from climate.compute.scheduler.filters import FILTERS
from climate.compute.scheduler.hosts.snapshot_cache import SnapshotCache
from climate.compute.scheduler.multi import scheduler_of
from climate.compute.scheduler.placement_plan import Schedule
from climate.compute.scheduler.scheduler_parts import Rules
from climate.compute.scheduler.weighers import WEIGHERS
from climate.compute.store.clock import database_time
from climate.compute.store.networks import allocator_messages
from climate.compute.virt import VirtDriver
from climate.compute.virt.live_migrator import Limits
from climate.compute.zones.options import Zones
from climate.sealed_secrets import Vault


class Cast(Protocol):
    """Wake the compute service of servers by a message, which may be lost or delivered twice."""

    def __call__(self, service_host: str, /, *server_ids: str) -> None: ...


TRUSTED = "TrustedFilter"

DEFAULT_RULES = Rules(FILTERS, WEIGHERS)


@dataclass(frozen=True)
class Compute:
    """Dependencies and settings of the bundled cloud; nothing is global."""

    engine: Engine
    home: Path
    service_host: str
    """The compute service of this process, if it carries out tasks."""
    driver: VirtDriver
    cast: Cast
    now: Callable[[Connection], datetime] = database_time
    schedule: Schedule = select
    rules: Rules = DEFAULT_RULES
    trust: Trust = field(default_factory=Trust)
    """The trust levels that an attestation service reports for the compute services."""
    uuid_builds: bool = False
    """Use a UUID as the reservation id of requests for servers, instead of `r-` and eight characters."""
    tell_change: TellChange = audit_trail.silent
    """Called with each change by an administrator, in the transaction of the change."""
    tell: Tell = silent
    """Called at the start and the end of each selection of nodes."""
    defaults: NodeDefaults = DEFAULTS
    down_seconds: float = SERVICE_DOWN_SECONDS
    """Seconds without a heartbeat after which a service is down."""
    leaving_pools: frozenset[str] = frozenset()
    """Pools whose nodes are drained of servers, see climate.compute.migrations.host_drain."""
    confirm_seconds: float = 0
    """Seconds after which a migrated or resized server is confirmed; 0: its owner confirms it."""
    live_limits: Limits = field(default_factory=Limits)
    """The limits of live migrations."""
    roster: SnapshotCache = field(default_factory=SnapshotCache)
    """The snapshot of all nodes that this process caches."""
    network: NetworkOptions = field(default_factory=NetworkOptions)
    network_drivers: DriverCache = field(default_factory=DriverCache)
    network_service: str | None = None
    """The network service of this process; None: it has the name of the compute service."""
    network_netns: str | None = None
    """The network namespace in which the network service works; None: the namespace of this process."""
    network_queue: AllocationQueue | None = None
    """The queue of network hosts that allocate addresses; None: addresses are allocated in the database directly."""
    zones: Zones = field(default_factory=Zones)
    """The name of this zone, and the client of its child zones."""

    vault: Vault = field(default_factory=Vault.of_this_process)
    """Seals the private keys of VPNs and the keys of live migrations."""
    image_limits: ImageLimits = field(default_factory=ImageLimits)
    """The limits of a project's images, and the free space to keep on their disk."""

    volume_gb: int = 0
    """Maximum GB of a project's volumes without a lease; 0: only leases create volumes, -1: unlimited."""

    cells: CellOptions = field(default_factory=CellOptions)
    """The role of this deployment in a tree of cells."""

    def scheduling(self, kind: str) -> "Compute":
        """Return the cloud with the scheduler for one kind of request, see climate.compute.scheduler.multi."""
        schedule, rules = scheduler_of(kind, self.schedule, self.rules)
        return self if schedule is self.schedule else replace(self, schedule=schedule, rules=rules)

    def attested(self, flavor: Flavor) -> Mapping[str, str]:
        """Return the trust level of each service host if the flavor requires one and a filter checks it.

        It may call another service over HTTP, so call it before a transaction begins.
        """
        asked = SPEC in flavor.extra_specs and any(rule.name == TRUSTED for rule in self.rules.filters)
        return self.trust.levels(self.engine) if asked else {}

    def other_time(self, conn: Connection) -> datetime | None:
        """Return the time of a clock that was passed in; None for the database's, which any statement can read."""
        return None if self.now is database_time else self.now(conn)

    @property
    def network_host(self) -> str:
        """Return the name of this process's network service."""
        return self.network_service or self.service_host

    @property
    def network_notifier(self) -> TellNetwork:
        """Return the function that records changes for the allocators of networks."""
        return silent_network if self.network_queue is None else allocator_messages.write

    @property
    def images(self) -> Path:
        """Return the folder of the contents of images."""
        return self.home / "images"
