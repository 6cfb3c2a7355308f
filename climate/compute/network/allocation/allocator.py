"""The port of managers that answer the API's queue: addresses are asked of them, and they are told of changes.

The names are those of Nova's network API (cloud.md D.9).  An allocator decides, and the API records: an address that
an allocator grants is a server's as soon as the transaction of the API has written it down, and only if nobody else
has it then.  Messages arrive at least once; each method does nothing more when it is called again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from climate.compute.errors import NetworkError
from climate.entry_points import installed

GROUP = "climate.network_allocators"
"""Entry points: each is called with the Compute of the worker, and returns a NetworkAllocator."""

BUNDLED = "bundled"

GRANT_SECONDS = 300.0
"""Time after which a grant that was not recorded is given up: longer than any boot takes."""

ALLOCATE, ADD = "allocate_for_instance", "add_fixed_ip_to_instance"
CANCEL = "cancel_allocation"
DEALLOCATE, REMOVE = "deallocate_for_instance", "remove_fixed_ip_from_instance"
ASSOCIATE, DISASSOCIATE = "associate_floating_ip", "disassociate_floating_ip"


@dataclass(frozen=True, slots=True)
class Interface:
    """An interface of a server that is to get an address."""

    server_id: str
    mac: str
    address: str | None = None
    """The very address that is asked for; None: any one."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """Addresses of one network: one for each interface, all of them or none."""

    id: str
    """Of the request; a message that is sent again has the same one, and gets the same answer."""
    network_id: str
    cidr: str
    """The range of the network, some of whose addresses the API gives to nobody: it refuses these when granted."""
    project_id: str
    interfaces: tuple[Interface, ...]
    vpn: bool = False
    """Whether the servers are cloudpipes, which have an address of their own."""


@dataclass(frozen=True, slots=True)
class Release:
    """Addresses of one server in one network that it does not have any more."""

    network_id: str
    server_id: str
    addresses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Translation:
    """A floating address, and the fixed one of a network that it stands for."""

    network_id: str
    floating: str
    fixed: str


@dataclass(frozen=True, slots=True)
class InUse:
    """What the API has recorded of a network."""

    network_id: str
    servers: Mapping[str, str] = field(default_factory=dict)
    """Address -> id of the server that has it, or had it and may still lease it."""


class NetworkAllocator(Protocol):
    """Raises NoMoreAddresses, BadRequest or Conflict where it refuses; any other error is tried again."""

    def allocate_for_instance(self, asked: Allocation, /) -> Mapping[str, str]:
        """Grant an address to each interface: server id -> address."""

    def add_fixed_ip_to_instance(self, asked: Allocation, /) -> Mapping[str, str]:
        """Grant one more address to an interface: server id -> address."""

    def cancel_allocation(self, asked: Allocation, /) -> None:
        """Give up what was granted to these interfaces by this request: they never got it."""

    def deallocate_for_instance(self, released: Release, /) -> None:
        """Note that a server is gone: its floating addresses stand for nothing, its fixed ones are free."""

    def remove_fixed_ip_from_instance(self, released: Release, /) -> None:
        """Note that a server has lost some of its addresses."""

    def associate_floating_ip(self, change: Translation, /) -> None:
        """Note that a floating address stands for a fixed one."""

    def disassociate_floating_ip(self, change: Translation, /) -> None:
        """Note that a floating address stands for nothing any more."""

    def reconcile(self, in_use: InUse, /) -> None:
        """Give up grants that are older than GRANT_SECONDS and are not recorded."""


def names() -> list[str]:
    """The installed allocators."""
    return sorted(entry.name for entry in installed(GROUP))


def load(name: str, compute: Any) -> NetworkAllocator:
    """The installed allocator of that name; NetworkError when there is none or it cannot be imported."""
    found = [entry for entry in installed(GROUP) if entry.name == name]
    if not found:
        raise NetworkError(f"No network allocator {name!r} is installed; installed are: {', '.join(names())}")
    try:
        made: NetworkAllocator = found[0].load()(compute)
    except (ImportError, AttributeError) as error:
        raise NetworkError(f"The network allocator {name} cannot be loaded from {found[0].value}: {error}") from error
    return made
