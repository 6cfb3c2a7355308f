"""The port: all that the engine may ask of a cloud.

Every verb that changes something is "make it so": asked twice, it ends in the
same place.  It carries the token of the claim it is done under; the cloud
remembers the highest token per host and per server, and refuses a lower one
with Fenced, so that a worker which was thought dead cannot undo what its
successor did (engine.md 2).
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
"""Of servers in these statuses images can be made; the others never ran, or are broken."""


class CloudError(Exception):
    """The cloud could not do it now; it may later."""


class Refused(CloudError):
    """The cloud will never do this; another try is no use."""


class Fenced(Exception):
    """A later claim has already worked on this: whoever asks has lost its event."""


class NotYet(Exception):
    """What was asked is under way in the cloud; look again later.  Spends no attempt."""


class InUse(Exception):
    """What was asked together with other things could not be done without waiting for others: to be asked alone."""


@dataclass(frozen=True, slots=True)
class CloudHost:
    """A host as the cloud describes it.  Sizes: MB of memory, GB of disk."""

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
    """How many servers are on it."""
    ids: tuple[str, ...] = ()
    """By which the cloud knows it besides its name: its hypervisor id, and its UUID where that is another one."""
    capabilities: Mapping[str, str] = field(default_factory=dict)
    """Its traits and its resource classes, as `provided` spells them."""


TRAIT, RESOURCES = "trait:", "resources:"
"""Beginnings of the names of such capabilities."""

COUNTED = frozenset({"VCPU", "PCPU", "MEMORY_MB", "DISK_GB"})
"""Resource classes that a host has as sizes of its own."""

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
    """RESERVED, BUILD, ERROR, one of those that are IMAGEABLE, or another one of the cloud's own."""
    host: str | None
    busy: bool = False
    """Something that was asked of it is not finished."""
    fault: str | None = None
    created_at: datetime | None = None


FREEPOOL = "freepool"
"""The pool of hosts kept for leases."""

DRAINING, RECYCLING, CLEANING, MAINTENANCE, FAILED = "draining", "recycling", "cleaning", "maintenance", "failed"
KEPT = frozenset({FREEPOOL, DRAINING, RECYCLING, CLEANING, MAINTENANCE, FAILED})
"""Pools that are nobody's: no server is booted on their hosts."""


@dataclass(frozen=True, slots=True)
class LeasePool:
    """The pool of one reservation, as the cloud has it."""

    id: int
    """Of its aggregate."""
    wanted: Mapping[str, str] | None
    """What its hosts are to be like, while it is promised and empty; None once hosts were lent to it."""


@dataclass(frozen=True, slots=True)
class CloudFlavor:
    """A size of servers, as one project sees it.  MB of memory, GB of disk (root and ephemeral)."""

    id: str
    name: str
    vcpus: int
    memory_mb: int
    disk_gb: int
    extra_specs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Capacity:
    """Room for servers of one size on hosts of the reservation pool, for one project.

    `slots` is host name -> how many servers fit there.  With `affinity` True
    all servers of `group_id` are on one host, with False each on another one;
    None asks for no group.
    """

    pool: str
    """Name of the pool, and id of the private flavor through which the room is used: the reservation's id."""
    project_id: str
    vcpus: int
    memory_mb: int
    disk_gb: int
    slots: Mapping[str, int]
    affinity: bool | None = None
    group_id: str | None = None
    extra_specs: Mapping[str, str] = field(default_factory=dict)
    """More of the flavor, where it is the copy of another one."""


@dataclass(frozen=True, slots=True)
class ExternalSubnet:
    """A part of a network outside.  Addresses are IPv4, as they are spelled."""

    id: str
    cidr: str
    gateway: str | None
    handed_out: tuple[tuple[str, str], ...] = ()
    """First and last of each range of addresses that the cloud gives to projects by itself."""


@dataclass(frozen=True, slots=True)
class ExternalNetwork:
    """A network outside, of which floating addresses are."""

    id: str
    name: str
    subnets: tuple[ExternalSubnet, ...]


class Cloud(Protocol):
    """Hosts are named by their hypervisor host name, pools by the id of the reservation they are lent to."""

    def find_hosts(self, name: str) -> Sequence[CloudHost]:
        """The hosts of that name: none, one, or several when the name is ambiguous.

        Where there is none, the host of which `name` is the hypervisor id or the UUID.
        """

    def ordinary_hosts(self) -> Sequence[CloudHost]:
        """The hosts that ordinary boots use, by name: all that are in none of the pools, whoever made those."""

    def enrol(self, host: str, token: int) -> None:
        """Put a host into the reservation pool; Refused when servers run on it or it is lent."""

    def withdraw(self, host: str, token: int) -> None:
        """Give a host of the reservation pool back to the ordinary scheduler; Refused when it is lent.

        Nothing to do where there is no such host.
        """

    def promise_pool(self, pool: str, wanted: Mapping[str, str]) -> int:
        """Make the empty pool of a reservation, with what is wanted as its metadata; the id of its aggregate.

        Asked again with other wishes it changes them.  Nothing is changed once hosts were lent to it.
        """

    def pool_insert(self, conn: Connection, wanted: Mapping[str, Mapping[str, str]]) -> Insert | None:
        """Return the INSERT that promises new pools in a transaction of the engine, RETURNING name and id of each.

        A pool that there is stays as it is.  None for a cloud whose tables are not in the engine's
        database: `promise_pool` asks it.
        """

    def forget_pool(self, pool: str) -> None:
        """Drop a pool that was promised and never lent; nothing to do where there is none."""

    def lease_pools(self) -> Mapping[str, LeasePool]:
        """The pools of reservations by name: promised ones, and those that are lent."""

    def lend(self, pool: str, project_id: str, hosts: Sequence[str], token: int) -> None:
        """Make the pool for a project and move these hosts from the reservation pool into it.

        A pool that was closed is open again.  NotYet while one of the hosts is
        elsewhere, or servers of what is granted are on it; Refused where there
        is none of that name.
        """

    def close(self, pool: str, token: int) -> None:
        """Let nobody boot in the pool any more, whether it was lent or granted."""

    def take_back(self, pool: str, hosts: Sequence[str], token: int, to: str | None = FREEPOOL) -> None:
        """Move the pool's hosts to one of the KEPT pools, or with None to the ordinary scheduler, and drop the pool.

        Servers go along, but never into the reservation pool: NotYet while they
        are on the hosts.  `hosts` were to be lent to it.  Also where that never
        came about, none of them can be lent under a lower token any more.
        """

    def place(self, host: str, to: str | None, token: int) -> None:
        """Move one host, with its servers, to a KEPT pool, to a lease pool that there is, or to the ordinary scheduler.

        NotYet into the reservation pool while servers are on it, but for those
        that have a slot there; Refused where there is no such host or lease
        pool.  A lease pool that it leaves stays.
        """

    def health(self) -> Mapping[str, str | None]:
        """What is wrong with each host that the cloud knows of; None: nothing, it can run servers now."""

    def silent_hosts(self) -> frozenset[str]:
        """Hosts from which the cloud hears nothing; those that are merely disabled answer."""

    def servers_on(self, host: str) -> Sequence[CloudServer]:
        """The servers on a host."""

    def find_flavor(self, flavor_id: str, project_id: str) -> CloudFlavor | None:
        """The flavor of that id or name that a project may use, or None."""

    def grant(self, capacity: Capacity, token: int) -> None:
        """Let a project boot servers with the flavor named like the pool, as many on each host as there are slots.

        The hosts stay in the reservation pool.  Asked again with other slots it
        changes them.  A pool that was closed is open again.  The pool remembers
        the token; hosts do not, for others have slots on them under claims of
        their own, in any order.  A lower token than a host's own is refused.
        """

    def revoke(self, pool: str, hosts: Sequence[str], token: int) -> None:
        """Drop what was granted: flavor, group and pool; NotYet while servers are there, which `servers_in` tells.

        The pool cannot be granted under a lower token any more, also where that
        never came about.  Tokens of `hosts`, which others share, do not matter.
        """

    def find_external(self, network: str) -> ExternalNetwork | None:
        """The network outside of that id or name, or None."""

    def lend_address(self, pool: str, project_id: str, network_id: str, address: str, token: int) -> None:
        """Make a floating address of a network outside, for a project; marked with `blazar` and `reservation:<pool>`.

        NotYet while the address is lent to another pool; Refused where the
        cloud has it for something else, or has no such network.
        """

    def take_back_addresses(self, pool: str, addresses: Sequence[str], token: int) -> None:
        """Take the addresses that are lent to a pool from the servers that have them, and drop them.

        `addresses` were handed over to its project, which may have taken the
        marks from them.  Also where nothing was lent, nothing can be lent to
        the pool under a lower token any more.
        """

    def find_storage(self, backend: str) -> CloudStorage | None:
        """The place of that name in which volumes can be made, or None."""

    def make_volume(self, order: VolumeOrder, token: int) -> None:
        """Make a volume for a project, or let it grow where it is smaller than asked for.

        Refused where there is no such backend.
        """

    def drop_volumes(self, pool: str, token: int, *, keep: bool) -> None:
        """Take all volumes of a pool from their servers and delete them; with `keep` leave them to their project.

        Also where there are none, none can be made for the pool under a lower
        token any more.  NotYet while servers still have them.
        """

    def volumes(self, pools: Sequence[str]) -> Sequence[CloudVolume]:
        """The volumes that there are of these pools."""

    def pools(self) -> Mapping[str, frozenset[str]]:
        """Names of hosts by pool: the reservation pool, those that are lent, other KEPT ones that have hosts.

        Without those that are only promised.
        """

    def servers_in(self, pool: str) -> Sequence[CloudServer]:
        """The servers on the hosts of a pool; of a granted one, those that use it."""

    def server(self, server_id: str) -> CloudServer | None:
        """A server, or None when there is none (any more)."""

    def sleeping(self) -> Sequence[CloudServer]:
        """All servers that are RESERVED."""

    def wake(self, server_id: str, token: int) -> None:
        """Spawn a RESERVED server; nothing to do when it is ACTIVE.  Refused when there is none."""

    def suspend(self, server_id: str, token: int) -> None:
        """Suspend an ACTIVE server.

        One that is RESIZED keeps its new size, and is to be looked at anew: NotYet.
        """

    def snapshot(self, server_id: str, image: str, token: int, occasion: str = "") -> None:
        """Make an image of that name from an IMAGEABLE server; nothing to do when it was made for this occasion.

        NotYet until it is there: to be asked again, which is also how one that failed is made anew.
        """

    def move_server(self, server_id: str, host: str, token: int, *, alone: bool = False) -> None:
        """Have a server leave a host for any other that takes it, running where that can be done.

        Nothing to do while it moves, when it is on another host, and when there
        is none.  Refused where it cannot move now, or no host has room for it.
        NotYet while something else is under way, with `alone` also while another
        server is on its way from the host.  It is seen on `host` until it has moved.
        """

    def evacuate_server(self, server_id: str, host: str, token: int) -> None:
        """Make a server of a silent host anew on another one; whoever asks has seen that the host is off.

        Nothing to do when it is on another host already, or there is none.
        Refused where the host answers, the server cannot be made anew, or no
        other host takes it; NotYet while something is under way.
        """

    def delete_server(self, server_id: str, token: int) -> None:
        """Delete a server; nothing to do when there is none.  It may still be seen for a while."""


@dataclass(frozen=True, slots=True)
class Loan:
    """What `Cloud.lend` is asked for."""

    pool: str
    project_id: str
    hosts: tuple[str, ...]
    token: int


Trouble = CloudError | NotYet | Fenced | InUse
"""Why one of several loans came to nothing."""


@runtime_checkable
class LendsTogether(Protocol):
    """A cloud that can lend several pools at once; it may implement this beside `Cloud`."""

    def lend_together(self, loans: Sequence[Loan]) -> Sequence[Trouble | None]:
        """Do for each what `Cloud.lend` does; the outcome of each, none of which concerns the others.

        Waits for nobody: InUse where that would be necessary.  An error that is raised leaves all of them undone,
        or nobody knows how many: each is then to be asked alone.
        """
