"""Contents of a Blazar database as values. Ids are Blazar's; times are in UTC."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

HOSTS, SERVERS, FLAVORS, ADDRESSES = "physical:host", "virtual:instance", "flavor:instance", "virtual:floatingip"
START, BEFORE_END, END = "start_lease", "before_end_lease", "end_lease"
UNDONE, IN_PROGRESS, DONE, ERROR = "UNDONE", "IN_PROGRESS", "DONE", "ERROR"
STABLE = frozenset({"PENDING", "ACTIVE", "TERMINATED", "ERROR"})
"""Statuses of leases on which Blazar is not working."""


@dataclass(frozen=True, slots=True)
class BlazarHost:
    """A row of `computehosts` with its capabilities. Sizes: MB of memory, GB of disk."""

    id: str
    name: str
    service_name: str
    vcpus: int
    memory_mb: int
    local_gb: int
    cpu_info: str
    hypervisor_type: str
    hypervisor_version: int
    availability_zone: str
    reservable: bool
    created_at: datetime | None
    extra: Mapping[str, str]
    """Extra capabilities, traits and amounts of resource classes, in the names of climate."""
    amounts: Mapping[str, int] = field(default_factory=dict)
    """Reservable amounts of all resource classes that Blazar knows of, after overcommitment."""


@dataclass(frozen=True, slots=True)
class BlazarAddress:
    """A row of `floatingips`."""

    id: str
    network_id: str
    subnet_id: str
    address: str
    reservable: bool
    created_at: datetime | None


@dataclass(frozen=True, slots=True)
class BlazarEvent:
    """A row of `events`."""

    id: str
    kind: str
    time: datetime
    status: str


@dataclass(frozen=True, slots=True)
class WantedHosts:
    """A row of `computehost_reservations`."""

    count_range: str
    hypervisor_properties: str
    resource_properties: str
    before_end: str


@dataclass(frozen=True, slots=True)
class WantedServers:
    """A row of `instance_reservations`; `resource_properties` of a flavor:instance is the flavor."""

    vcpus: int
    memory_mb: int
    disk_gb: int
    amount: int
    affinity: bool | None
    resource_properties: str
    server_group_id: str | None


@dataclass(frozen=True, slots=True)
class WantedAddresses:
    """A row of `floatingip_reservations` with its required addresses."""

    network_id: str
    amount: int
    required: tuple[str, ...]


Wanted = WantedHosts | WantedServers | WantedAddresses


@dataclass(frozen=True, slots=True)
class BlazarReservation:
    """A row of `reservations` with its allocations. `wanted` is None if its row in the table of its type is missing."""

    id: str
    resource_type: str
    status: str
    missing_resources: bool
    resources_changed: bool
    wanted: Wanted | None
    hosts: tuple[str, ...] = ()
    """Allocated hosts by id; one entry per server for reservations of servers."""
    addresses: tuple[str, ...] = ()
    """Allocated floating IPs by id."""


@dataclass(frozen=True, slots=True)
class BlazarLease:
    """A row of `leases` with its reservations and events."""

    id: str
    name: str
    user_id: str
    project_id: str
    start: datetime
    end: datetime
    status: str
    created_at: datetime | None
    reservations: tuple[BlazarReservation, ...] = ()
    events: tuple[BlazarEvent, ...] = ()

    def states(self, kind: str) -> tuple[str, ...]:
        """Return the statuses of its events of a kind."""
        return tuple(event.status for event in self.events if event.kind == kind)

    @property
    def is_over(self) -> bool:
        """Return whether its end is done, so that it holds nothing."""
        return self.states(END) == (DONE,)

    @property
    def has_begun(self) -> bool:
        """Return whether Blazar may have moved hosts for it that it did not take back."""
        return not self.is_over and self.states(START) != (UNDONE,)


@dataclass(frozen=True, slots=True)
class BlazarProperty:
    """A row of `resource_properties` for hosts."""

    name: str
    private: bool


@dataclass(frozen=True, slots=True)
class BlazarData:
    """All that is imported, at one moment."""

    hosts: tuple[BlazarHost, ...] = ()
    addresses: tuple[BlazarAddress, ...] = ()
    leases: tuple[BlazarLease, ...] = ()
    properties: tuple[BlazarProperty, ...] = ()
