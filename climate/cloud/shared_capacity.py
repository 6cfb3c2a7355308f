"""Capacity for servers on hosts that several leases share: the protocol SharedCapacity and its values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


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
    shared_with: tuple[str, ...] = ()
    """Further projects that may use the capacity."""


class SharedCapacity(Protocol):
    """Let projects boot servers of a size on hosts of the reservation pool."""

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
