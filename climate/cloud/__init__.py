"""The port: all that the engine may ask of a cloud.

Every verb that changes something is "make it so": asked twice, it ends in the
same place.  It carries the token of the claim it is done under; the cloud
remembers the highest token per host and per server, and refuses a lower one
with Fenced, so that a worker which was thought dead cannot undo what its
successor did (engine.md 2).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

RESERVED, ACTIVE, SHUTOFF, SUSPENDED, BUILD, ERROR = "RESERVED", "ACTIVE", "SHUTOFF", "SUSPENDED", "BUILD", "ERROR"
IMAGEABLE = frozenset({ACTIVE, SHUTOFF, SUSPENDED})
"""Of servers in these statuses images can be made; the others never ran, or are broken."""


class CloudError(Exception):
    """The cloud could not do it now; it may later."""


class Refused(CloudError):
    """The cloud will never do this; another try is no use."""


class Fenced(Exception):
    """A later claim has already worked on this: whoever asks has lost its event."""


class NotYet(Exception):
    """What was asked is under way in the cloud; look again later.  Spends no attempt."""


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


@dataclass(frozen=True, slots=True)
class CloudServer:
    id: str
    name: str
    project_id: str
    status: str
    """RESERVED, BUILD, ACTIVE, SHUTOFF, SUSPENDED or ERROR."""
    host: str | None
    busy: bool = False
    """Something that was asked of it is not finished."""
    fault: str | None = None
    created_at: datetime | None = None


class Cloud(Protocol):
    """Hosts are named by their hypervisor host name, pools by the id of the reservation they are lent to."""

    def find_hosts(self, name: str) -> Sequence[CloudHost]:
        """The hosts of that name: none, one, or several when the name is ambiguous."""

    def enrol(self, host: str) -> None:
        """Put a host into the reservation pool; Refused when servers run on it or it is lent."""

    def withdraw(self, host: str) -> None:
        """Give a host of the reservation pool back to the ordinary scheduler; Refused when it is lent."""

    def lend(self, pool: str, project_id: str, hosts: Sequence[str], token: int) -> None:
        """Make the pool for a project and move these hosts from the reservation pool into it.

        NotYet while one of them is elsewhere, Refused where there is none of that name.
        """

    def close(self, pool: str, token: int) -> None:
        """Let nobody boot in the pool any more."""

    def take_back(self, pool: str, hosts: Sequence[str], token: int) -> None:
        """Move the pool's hosts to the reservation pool and drop it; NotYet while servers are on them.

        `hosts` were to be lent to it.  Also where that never came about, none
        of them can be lent under a lower token any more.
        """

    def pools(self) -> Mapping[str, frozenset[str]]:
        """Every pool with the names of its hosts; the reservation pool is called `freepool`."""

    def servers_in(self, pool: str) -> Sequence[CloudServer]:
        """The servers on the hosts of a pool."""

    def server(self, server_id: str) -> CloudServer | None:
        """A server, or None when there is none (any more)."""

    def sleeping(self) -> Sequence[CloudServer]:
        """All servers that are RESERVED."""

    def wake(self, server_id: str, token: int) -> None:
        """Spawn a RESERVED server; nothing to do when it is ACTIVE.  Refused when there is none."""

    def suspend(self, server_id: str, token: int) -> None:
        """Suspend an ACTIVE server."""

    def snapshot(self, server_id: str, image: str, token: int, occasion: str = "") -> None:
        """Make an image of that name from an IMAGEABLE server; nothing to do when it was made for this occasion.

        NotYet until it is there: to be asked again, which is also how one that failed is made anew.
        """

    def delete_server(self, server_id: str, token: int) -> None:
        """Delete a server; nothing to do when there is none.  It may still be seen for a while."""


FREEPOOL = "freepool"
"""The pool of hosts kept for leases."""
