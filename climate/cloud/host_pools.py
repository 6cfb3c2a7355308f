"""Hosts of a cloud and the pools that they are in: the protocol HostPools and its values."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from sqlalchemy import Connection

from climate.cloud.errors import Trouble
from climate.database.connections import Insert, Query


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
    result = {f"{TRAIT}{name}": "True" for name in traits}
    result |= {f"{RESOURCES}{name}": str(count) for name, count in amounts.items() if name not in COUNTED}
    return {name: text for name, text in result.items() if len(name) <= LONGEST_CAPABILITY and text}


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


class HostPools(Protocol):
    """Find hosts and move them between pools. Hosts are named by hypervisor host name, pools by their reservation."""

    def find_hosts(self, name: str) -> Sequence[CloudHost]:
        """Return the hosts of that name: none, one, or several when the name is ambiguous.

        If there is none, return the host whose hypervisor id or UUID is `name`.
        """

    def ordinary_hosts(self) -> Sequence[CloudHost]:
        """Return the hosts that ordinary boots use, by name: all hosts that are in no pool, whoever created it."""

    def health(self) -> Mapping[str, str | None]:
        """Return the fault of each host that the cloud knows of; None if it can run servers now."""

    def silent_hosts(self) -> frozenset[str]:
        """Return the hosts whose services are down; hosts that are only disabled are not among them."""

    def pools(self) -> Mapping[str, frozenset[str]]:
        """Return names of hosts by pool: the reservation pool, lease pools, and other KEPT pools that have hosts.

        Planned pools without hosts are left out.
        """

    def host_query(self, conn: Connection) -> Query | None:
        """Return a query of all hosts for a statement of the engine, as `health` and `pools` return them.

        Its columns are the `name` of a host, its `pool`, and `is_well`. A name that two hosts share occurs twice.
        Return None for a cloud whose tables are not in the engine's database; the engine then calls `health` and
        `pools`.
        """

    def enrol(self, host: str, token: int) -> None:
        """Add a host to the reservation pool. Raise Refused when servers run on it or a lease has it."""

    def withdraw(self, host: str, token: int) -> None:
        """Remove a host from the reservation pool, back to the ordinary scheduler. Raise Refused when a lease has it.

        Do nothing if there is no such host.
        """

    def place(self, host: str, to: str | None, token: int) -> None:
        """Move one host, with its servers, to a KEPT pool, to an existing lease pool, or to the ordinary scheduler.

        Raise NotYet for the reservation pool while servers without a slot there are on the host. Raise Refused for an
        unknown host or lease pool. The lease pool that the host leaves is not deleted.
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

    def lend(
        self, pool: str, project_id: str, hosts: Sequence[str], token: int, shared_with: Sequence[str] = ()
    ) -> None:
        """Create the pool for a project and move these hosts from the reservation pool into it.

        `shared_with` are the further projects that may boot there; called again, it replaces former ones. A closed
        pool is opened again. Raise NotYet while a host is elsewhere, or while servers of shared capacity are on it.
        Raise Refused for an unknown host.
        """

    def close(self, pool: str, token: int) -> None:
        """Refuse further boots in the pool, whether it has hosts of its own or shared capacity."""

    def take_back(self, pool: str, hosts: Sequence[str], token: int, to: str | None = FREEPOOL) -> None:
        """Move the pool's hosts to a KEPT pool, or with None to the ordinary scheduler, and delete the pool.

        Servers move along, but never into the reservation pool: raise NotYet while they are on the hosts. `hosts` are
        those that the reservation holds. Afterwards none of them can be moved into the pool under a lower token, even
        if that never happened before.
        """


@dataclass(frozen=True, slots=True)
class Loan:
    """Arguments of `HostPools.lend`."""

    pool: str
    project_id: str
    hosts: tuple[str, ...]
    token: int
    shared_with: tuple[str, ...] = ()


@runtime_checkable
class LendsTogether(Protocol):
    """A cloud that can move hosts into several pools at once; it may implement this beside `HostPools`."""

    def lend_together(self, loans: Sequence[Loan]) -> Sequence[Trouble | None]:
        """Do for each loan what `HostPools.lend` does; return the outcome of each, independent of the others.

        Wait for no lock; the outcome is InUse if that would be necessary. After an exception none, or an unknown
        number, has succeeded, so the caller sends each alone.
        """


@dataclass(frozen=True, slots=True)
class Return:
    """Arguments of `HostPools.take_back`."""

    pool: str
    hosts: tuple[str, ...]
    token: int
    to: str | None = FREEPOOL


@runtime_checkable
class TakesBackTogether(Protocol):
    """A cloud that can take back the hosts of several pools at once; it may implement this beside `HostPools`."""

    def take_back_together(self, returns: Sequence[Return]) -> Sequence[Trouble | None]:
        """Do for each return what `HostPools.take_back` does; return the outcome of each, independent of the others.

        The outcome is InUse for a pool with servers, and where it would have to wait for a lock. After an exception
        none, or an unknown number, has succeeded, so the caller sends each alone.
        """
