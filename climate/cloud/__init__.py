"""Interface between the engine and a cloud.

Every method that changes something is idempotent: a repeated call ends in the same state. It carries the fencing token
of the claim. The cloud stores the highest token per host and per server and refuses a lower one with Fenced. A worker
that was presumed dead therefore cannot undo the work of its successor.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, runtime_checkable

from sqlalchemy import Connection

from climate.cloud.volumes import CloudStorage, CloudVolume, VolumeOrder
from climate.connections import Insert

RESERVED, ACTIVE, SHUTOFF, SUSPENDED, BUILD, ERROR = "RESERVED", "ACTIVE", "SHUTOFF", "SUSPENDED", "BUILD", "ERROR"
PAUSED, SHELVED, RESIZED = "PAUSED", "SHELVED_OFFLOADED", "VERIFY_RESIZE"
IMAGEABLE = frozenset({ACTIVE, SHUTOFF, SUSPENDED, PAUSED, SHELVED, RESIZED})
"""Statuses of servers of which images can be created. Servers in other statuses never ran, or are broken."""


class CloudError(Exception):
    """The cloud could not do this now; a retry may succeed."""


class Refused(CloudError):
    """The cloud will never do this; a retry is useless."""


class Fenced(Exception):
    """A later claim has already worked on this object, so the caller has lost its event."""


class NotYet(Exception):
    """The request is under way in the cloud; the caller asks again later. It counts as no attempt."""


class InUse(Exception):
    """The request could not run together with others without waiting; the caller sends it alone."""


@dataclass(frozen=True, slots=True)
class CloudHost:
    """A host as the cloud describes it. Sizes: MB of memory, GB of disk."""

    name: str
    service_name: str
    vcpus: int
    memory_mb: int
    local_gb: int
    cpu_info: str
    hypervisor_type: str
    hypervisor_version: int
    availability_zone: str | None
    servers: int
    """Number of servers on the host."""
    ids: tuple[str, ...] = ()
    """Other identifiers of the host in the cloud: its hypervisor id, and its UUID where that differs."""
    capabilities: Mapping[str, str] = field(default_factory=dict)
    """Traits and resource classes of the host, in the form that `provided` returns."""


TRAIT, RESOURCES = "trait:", "resources:"
"""Prefixes of the names of such capabilities."""

COUNTED = frozenset({"VCPU", "PCPU", "MEMORY_MB", "DISK_GB"})
"""Resource classes that a host already has as sizes (CPUs, memory, disk)."""

LONGEST_CAPABILITY = 64


def provided(traits: Iterable[object], amounts: Mapping[str, object]) -> dict[str, str]:
    """Return traits and amounts of resource classes as capabilities: `trait:X` is True, `resources:Y` the amount."""
    found = {f"{TRAIT}{name}": "True" for name in traits}
    found |= {f"{RESOURCES}{name}": str(count) for name, count in amounts.items() if name not in COUNTED}
    return {name: text for name, text in found.items() if len(name) <= LONGEST_CAPABILITY and text}


@dataclass(frozen=True, slots=True)
class CloudServer:
    id: str
    name: str
    project_id: str
    status: str
    """RESERVED, BUILD, ERROR, one of IMAGEABLE, or another status of the cloud."""
    host: str | None
    busy: bool = False
    """An action on the server is not finished."""
    fault: str | None = None
    created_at: datetime | None = None


FREEPOOL = "freepool"
"""The pool of hosts that are kept for leases."""

DRAINING, RECYCLING, CLEANING, MAINTENANCE, FAILED = "draining", "recycling", "cleaning", "maintenance", "failed"
KEPT = frozenset({FREEPOOL, DRAINING, RECYCLING, CLEANING, MAINTENANCE, FAILED})
"""Pools that belong to no project: no server is booted on their hosts."""


@dataclass(frozen=True, slots=True)
class LeasePool:
    """The pool of one reservation in the cloud."""

    id: int
    """Id of its aggregate."""
    wanted: Mapping[str, str] | None
    """Requirements of its hosts while it is planned and empty; None once hosts were moved into it."""


@dataclass(frozen=True, slots=True)
class CloudFlavor:
    """A flavor, as one project sees it. MB of memory, GB of disk (root and ephemeral)."""

    id: str
    name: str
    vcpus: int
    memory_mb: int
    disk_gb: int
    extra_specs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Capacity:
    """Capacity for servers of one size on hosts of the reservation pool, for one project.

    `slots` maps the name of a host to the number of servers that fit there. With `affinity` True all servers of
    `group_id` are on one host, with False each is on another host; None means no group.
    """

    pool: str
    """Name of the pool and id of the private flavor that gives access to the capacity: the reservation's id."""
    project_id: str
    vcpus: int
    memory_mb: int
    disk_gb: int
    slots: Mapping[str, int]
    affinity: bool | None = None
    group_id: str | None = None
    extra_specs: Mapping[str, str] = field(default_factory=dict)
    """Extra specs of the flavor, if it is the copy of another flavor."""


@dataclass(frozen=True, slots=True)
class ExternalSubnet:
    """A subnet of an external network. Addresses are IPv4, as text."""

    id: str
    cidr: str
    gateway: str | None
    handed_out: tuple[tuple[str, str], ...] = ()
    """First and last address of each range that the cloud allocates to projects by itself."""


@dataclass(frozen=True, slots=True)
class ExternalNetwork:
    """An external network that provides floating IPs."""

    id: str
    name: str
    subnets: tuple[ExternalSubnet, ...]


class Cloud(Protocol):
    """Cloud interface of the engine. Hosts are named by hypervisor host name, pools by the id of their reservation."""

    def find_hosts(self, name: str) -> Sequence[CloudHost]:
        """Return the hosts of that name: none, one, or several when the name is ambiguous.

        If there is none, return the host whose hypervisor id or UUID is `name`.
        """

    def ordinary_hosts(self) -> Sequence[CloudHost]:
        """Return the hosts that ordinary boots use, by name: all hosts that are in no pool, whoever created it."""

    def enrol(self, host: str, token: int) -> None:
        """Add a host to the reservation pool. Raise Refused when servers run on it or a lease has it."""

    def withdraw(self, host: str, token: int) -> None:
        """Remove a host from the reservation pool, back to the ordinary scheduler. Raise Refused when a lease has it.

        Do nothing if there is no such host.
        """

    def promise_pool(self, pool: str, wanted: Mapping[str, str]) -> int:
        """Create the empty pool of a reservation, with its requirements as metadata; return the id of its aggregate.

        Called again with other requirements, update them. Change nothing once hosts were moved into it.
        """

    def pool_insert(self, conn: Connection, wanted: Mapping[str, Mapping[str, str]]) -> Insert | None:
        """Return the INSERT that creates new pools in a transaction of the engine, RETURNING name and id of each.

        An existing pool stays as it is. Return None for a cloud whose tables are not in the engine's database; the
        engine then calls `promise_pool`.
        """

    def forget_pool(self, pool: str) -> None:
        """Delete a pool that never had hosts; do nothing if there is none."""

    def lease_pools(self) -> Mapping[str, LeasePool]:
        """Return the pools of reservations by name: planned ones, and those that have hosts."""

    def lend(self, pool: str, project_id: str, hosts: Sequence[str], token: int) -> None:
        """Create the pool for a project and move these hosts from the reservation pool into it.

        A closed pool is opened again. Raise NotYet while a host is elsewhere, or while servers of shared capacity are
        on it. Raise Refused for an unknown host.
        """

    def close(self, pool: str, token: int) -> None:
        """Refuse further boots in the pool, whether it has hosts of its own or shared capacity."""

    def take_back(self, pool: str, hosts: Sequence[str], token: int, to: str | None = FREEPOOL) -> None:
        """Move the pool's hosts to a KEPT pool, or with None to the ordinary scheduler, and delete the pool.

        Servers move along, but never into the reservation pool: raise NotYet while they are on the hosts. `hosts` are
        those that the reservation holds. Afterwards none of them can be moved into the pool under a lower token, even
        if that never happened before.
        """

    def place(self, host: str, to: str | None, token: int) -> None:
        """Move one host, with its servers, to a KEPT pool, to an existing lease pool, or to the ordinary scheduler.

        Raise NotYet for the reservation pool while servers without a slot there are on the host. Raise Refused for an
        unknown host or lease pool. The lease pool that the host leaves is not deleted.
        """

    def health(self) -> Mapping[str, str | None]:
        """Return the fault of each host that the cloud knows of; None if it can run servers now."""

    def silent_hosts(self) -> frozenset[str]:
        """Return the hosts whose services are down; hosts that are only disabled are not among them."""

    def servers_on(self, host: str) -> Sequence[CloudServer]:
        """Return the servers on a host."""

    def find_flavor(self, flavor_id: str, project_id: str) -> CloudFlavor | None:
        """Return the flavor of that id or name that a project may use, or None."""

    def grant(self, capacity: Capacity, token: int) -> None:
        """Let a project boot servers with the flavor named like the pool, up to the number of slots on each host.

        The hosts stay in the reservation pool. Called again with other slots, update them. A closed pool is opened
        again. The pool stores the token. Hosts do not, because other claims have slots on them, in any order. A token
        lower than the host's own is refused.
        """

    def revoke(self, pool: str, hosts: Sequence[str], token: int) -> None:
        """Delete shared capacity: flavor, group and pool. Raise NotYet while servers are there (see `servers_in`).

        Afterwards the pool cannot be granted under a lower token, even if it never was. Tokens of `hosts`, which others
        share, do not matter.
        """

    def find_external(self, network: str) -> ExternalNetwork | None:
        """Return the external network of that id or name, or None."""

    def lend_address(self, pool: str, project_id: str, network_id: str, address: str, token: int) -> None:
        """Create a floating IP of an external network for a project, tagged `blazar` and `reservation:<pool>`.

        Raise NotYet while another pool has the address. Raise Refused if the cloud uses it for something else, or has
        no such network.
        """

    def take_back_addresses(self, pool: str, addresses: Sequence[str], token: int) -> None:
        """Detach and delete the floating IPs of a pool.

        `addresses` were handed over to its project, which may have removed the tags. Afterwards no address can be
        created for the pool under a lower token, even if there was none.
        """

    def find_storage(self, backend: str) -> CloudStorage | None:
        """Return the storage backend of that name, or None."""

    def make_volume(self, order: VolumeOrder, token: int) -> None:
        """Create a volume for a project, or extend it if it is smaller than requested.

        Raise Refused for an unknown backend.
        """

    def drop_volumes(self, pool: str, token: int, *, keep: bool) -> None:
        """Detach and delete all volumes of a pool; with `keep`, leave them to their project.

        Afterwards no volume can be created for the pool under a lower token, even if there was none. Raise NotYet while
        servers still use them.
        """

    def volumes(self, pools: Sequence[str]) -> Sequence[CloudVolume]:
        """Return the existing volumes of these pools."""

    def pools(self) -> Mapping[str, frozenset[str]]:
        """Return names of hosts by pool: the reservation pool, lease pools, and other KEPT pools that have hosts.

        Planned pools without hosts are left out.
        """

    def servers_in(self, pool: str) -> Sequence[CloudServer]:
        """Return the servers on the hosts of a pool; of shared capacity, the servers that use it."""

    def server(self, server_id: str) -> CloudServer | None:
        """Return a server, or None if it does not exist."""

    def sleeping(self) -> Sequence[CloudServer]:
        """Return all servers that are RESERVED."""

    def wake(self, server_id: str, token: int) -> None:
        """Spawn a RESERVED server; do nothing when it is ACTIVE. Raise Refused when there is none."""

    def suspend(self, server_id: str, token: int) -> None:
        """Suspend an ACTIVE server.

        Raise NotYet for a RESIZED server, which keeps its new size and has to be read again.
        """

    def snapshot(self, server_id: str, image: str, token: int, occasion: str = "") -> None:
        """Create an image of that name from an IMAGEABLE server; do nothing if this event has created it already.

        Raise NotYet until the image exists. A repeated call also replaces a failed image.
        """

    def move_server(self, server_id: str, host: str, token: int, *, alone: bool = False) -> None:
        """Migrate a server to any other host that accepts it, live if possible.

        Do nothing while it migrates, when it is on another host, or when there is none. Raise Refused if it cannot
        migrate now, or no host has capacity for it. Raise NotYet while another action is under way, and with `alone`
        also while another server leaves the host. The server is seen on `host` until it has moved.
        """

    def evacuate_server(self, server_id: str, host: str, token: int) -> None:
        """Evacuate a server of a silent host; the caller has verified that the host is off.

        Do nothing when it is on another host already, or there is none. Raise Refused if the host answers, the server
        cannot be rebuilt, or no other host accepts it. Raise NotYet while an action is under way.
        """

    def delete_server(self, server_id: str, token: int) -> None:
        """Delete a server; do nothing when there is none. It may still be visible for a while."""


@dataclass(frozen=True, slots=True)
class Loan:
    """Arguments of `Cloud.lend`."""

    pool: str
    project_id: str
    hosts: tuple[str, ...]
    token: int


Trouble = CloudError | NotYet | Fenced | InUse
"""Reason why one of several loans failed."""


@runtime_checkable
class LendsTogether(Protocol):
    """A cloud that can move hosts into several pools at once; it may implement this beside `Cloud`."""

    def lend_together(self, loans: Sequence[Loan]) -> Sequence[Trouble | None]:
        """Do for each loan what `Cloud.lend` does; return the outcome of each, independent of the others.

        Wait for no lock; the outcome is InUse if that would be necessary. After an exception none, or an unknown
        number, has succeeded, so the caller sends each alone.
        """
