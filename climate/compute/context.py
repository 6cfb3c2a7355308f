"""`Compute`: what the verbs of the bundled cloud work with; handed in, never looked up."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Protocol

from sqlalchemy import Connection, Engine

from climate.compute import changes
from climate.compute.cells.options import CellOptions
from climate.compute.changes import TellChange
from climate.compute.images.quota import ImageLimits
from climate.compute.models.flavor import Flavor
from climate.compute.models.node import DEFAULTS, SERVICE_DOWN_SECONDS, NodeDefaults
from climate.compute.network.allocation.notify_allocators import TellNetwork, silent_network
from climate.compute.network.allocation.queue import AllocationQueue
from climate.compute.network.driver_registry import Wires
from climate.compute.network.network_options import NetworkOptions
from climate.compute.nodes.attestation import SPEC, Trust
from climate.compute.scheduler.decisions.notifications import Tell, silent
from climate.compute.scheduler.filtering.scheduler import select
from climate.compute.scheduler.filters import FILTERS
from climate.compute.scheduler.hosts.snapshot_cache import Roster
from climate.compute.scheduler.multi import scheduler_of
from climate.compute.scheduler.placement_plan import Schedule
from climate.compute.scheduler.scheduler_parts import Rules
from climate.compute.scheduler.weighers import WEIGHERS
from climate.compute.store.clock import database_time
from climate.compute.store.networks import messages
from climate.compute.virt import VirtDriver
from climate.compute.virt.live_migrator import Limits
from climate.compute.zones.options import Zones
from climate.sealed_secrets import Vault


class Cast(Protocol):
    """Rings the doorbell of a compute service for servers of its nodes.  May be lost or doubled."""

    def __call__(self, service_host: str, /, *server_ids: str) -> None: ...


TRUSTED = "TrustedFilter"

DEFAULT_RULES = Rules(FILTERS, WEIGHERS)


@dataclass(frozen=True)
class Compute:
    """Everything the bundled cloud needs, and nothing global."""

    engine: Engine
    home: Path
    service_host: str
    """The compute service that this process is, when it carries work out."""
    driver: VirtDriver
    cast: Cast
    now: Callable[[Connection], datetime] = database_time
    schedule: Schedule = select
    rules: Rules = DEFAULT_RULES
    trust: Trust = field(default_factory=Trust)
    """What an attestation service says of the compute services."""
    uuid_builds: bool = False
    """Requests for servers get a UUID as their reservation id, not `r-` and eight letters or digits."""
    tell_change: TellChange = changes.silent
    """Told of what administrators change, in the transaction of the change."""
    tell: Tell = silent
    """Told of the start and the end of each selection of nodes."""
    defaults: NodeDefaults = DEFAULTS
    down_seconds: float = SERVICE_DOWN_SECONDS
    """A service that was not heard of for so long is down."""
    leaving_pools: frozenset[str] = frozenset()
    """Servers are moved away from nodes in these pools, see climate.compute.migrations.host_drain."""
    confirm_seconds: float = 0
    """A server that was migrated or resized is confirmed after so long; 0: it waits for its owner."""
    live_limits: Limits = field(default_factory=Limits)
    """The bounds of live migrations."""
    roster: Roster = field(default_factory=Roster)
    """The snapshot of all nodes that this process keeps."""
    network: NetworkOptions = field(default_factory=NetworkOptions)
    wires: Wires = field(default_factory=Wires)
    network_service: str | None = None
    """The network service that this process is; None: it is called as the compute service is."""
    network_netns: str | None = None
    """The network namespace in which that one serves; None: this one."""
    network_queue: AllocationQueue | None = None
    """The queue of network hosts, of which addresses are asked; None: they are taken from the database directly."""
    zones: Zones = field(default_factory=Zones)
    """The name of this zone, and the client that talks to its children."""

    vault: Vault = field(default_factory=Vault.of_this_process)
    """Seals the private keys of VPNs and the keys of live migrations."""
    image_limits: ImageLimits = field(default_factory=ImageLimits)
    """What a project may have of images, and what stays free on their disk."""

    cells: CellOptions = field(default_factory=CellOptions)
    """This deployment as a cell in a tree of several."""

    def scheduling(self, kind: str) -> "Compute":
        """Return the cloud with the scheduler for one kind of request, see climate.compute.scheduler.multi."""
        schedule, rules = scheduler_of(kind, self.schedule, self.rules)
        return self if schedule is self.schedule else replace(self, schedule=schedule, rules=rules)

    def attested(self, flavor: Flavor) -> Mapping[str, str]:
        """Return the trust of each service host if the flavor asks for it and a filter goes by it.

        It may ask another service over HTTP, so call it before a transaction begins.
        """
        asked = SPEC in flavor.extra_specs and any(rule.name == TRUSTED for rule in self.rules.filters)
        return self.trust.levels(self.engine) if asked else {}

    @property
    def network_host(self) -> str:
        """The name of the network service that this process is, when it tends networks."""
        return self.network_service or self.service_host

    @property
    def tell_network(self) -> TellNetwork:
        """What writes down changes for the allocators of networks, where addresses are asked of their queue."""
        return silent_network if self.network_queue is None else messages.write

    @property
    def images(self) -> Path:
        """The folder of the contents of images."""
        return self.home / "images"
