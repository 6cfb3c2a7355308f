"""Interface of network allocators, which grant addresses over the API's queue and are notified of changes.

Method names are those of Nova's network API. An allocator decides, and the API records. A granted address belongs to a
server once the API's transaction has recorded it, provided that no other server has it by then. Messages arrive at
least once, so each method is idempotent.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from climate.compute.errors import NetworkError
from climate.entry_points import installed

GROUP = "climate.network_allocators"
"""Entry point group: each entry point is called with the worker's Compute and returns a NetworkAllocator."""

BUNDLED = "bundled"

GRANT_SECONDS = 300.0
"""Seconds after which an unrecorded grant is released; longer than any boot takes."""

ALLOCATE, ADD = "allocate_for_instance", "add_fixed_ip_to_instance"
CANCEL = "cancel_allocation"
DEALLOCATE, REMOVE = "deallocate_for_instance", "remove_fixed_ip_from_instance"
ASSOCIATE, DISASSOCIATE = "associate_floating_ip", "disassociate_floating_ip"


@dataclass(frozen=True, slots=True)
class Interface:
    """Interface of a server that needs an address."""

    server_id: str
    mac: str
    address: str | None = None
    """Requested address; None: any free one."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """Request for addresses of one network: one per interface, all or none."""

    id: str
    """Id of the request; a repeated message carries the same id and gets the same answer."""
    network_id: str
    cidr: str
    """Range of the network. The API refuses granted addresses that are reserved in it."""
    project_id: str
    interfaces: tuple[Interface, ...]
    vpn: bool = False
    """True for cloudpipes, which have a fixed address of their own."""


@dataclass(frozen=True, slots=True)
class Release:
    """Addresses that one server no longer has in one network."""

    network_id: str
    server_id: str
    addresses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Translation:
    """Floating address and the fixed address that it translates to."""

    network_id: str
    floating: str
    fixed: str


@dataclass(frozen=True, slots=True)
class InUse:
    """Addresses of a network that the API has recorded."""

    network_id: str
    servers: Mapping[str, str] = field(default_factory=dict)
    """Address -> id of the server that has it, or had it and may still lease it."""


class NetworkAllocator(Protocol):
    """Allocator of addresses. Raises NoMoreAddresses, BadRequest or Conflict to refuse; any other error is retried."""

    def allocate_for_instance(self, allocation: Allocation, /) -> Mapping[str, str]:
        """Grant an address to each interface. Return server id -> address."""

    def add_fixed_ip_to_instance(self, allocation: Allocation, /) -> Mapping[str, str]:
        """Grant one more address to an interface. Return server id -> address."""

    def cancel_allocation(self, allocation: Allocation, /) -> None:
        """Release the addresses that this request was granted; the boot failed."""

    def deallocate_for_instance(self, released: Release, /) -> None:
        """Record that a server was deleted: its floating addresses are disassociated, its fixed ones are free."""

    def remove_fixed_ip_from_instance(self, released: Release, /) -> None:
        """Record that a server lost some of its addresses."""

    def associate_floating_ip(self, change: Translation, /) -> None:
        """Record that a floating address was associated with a fixed one."""

    def disassociate_floating_ip(self, change: Translation, /) -> None:
        """Record that a floating address was disassociated."""

    def reconcile(self, in_use: InUse, /) -> None:
        """Release grants that are older than GRANT_SECONDS and not recorded."""


def names() -> list[str]:
    """Return the names of the installed allocators."""
    return sorted(entry.name for entry in installed(GROUP))


def load(name: str, compute: object) -> NetworkAllocator:
    """Return the installed allocator of that name. Raise NetworkError if it is missing or cannot be imported."""
    entries = [entry for entry in installed(GROUP) if entry.name == name]
    if not entries:
        raise NetworkError(f"No network allocator {name!r} is installed; installed are: {', '.join(names())}")
    try:
        made: NetworkAllocator = entries[0].load()(compute)
    except (ImportError, AttributeError) as error:
        raise NetworkError(f"The network allocator {name} cannot be loaded from {entries[0].value}: {error}") from error
    return made
