"""Servers of a cloud: the protocol Servers and its values."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

RESERVED, ACTIVE, SHUTOFF, SUSPENDED, BUILD, ERROR = "RESERVED", "ACTIVE", "SHUTOFF", "SUSPENDED", "BUILD", "ERROR"
PAUSED, SHELVED, RESIZED = "PAUSED", "SHELVED_OFFLOADED", "VERIFY_RESIZE"
IMAGEABLE = frozenset({ACTIVE, SHUTOFF, SUSPENDED, PAUSED, SHELVED, RESIZED})
"""Statuses of servers of which images can be created. Servers in other statuses never ran, or are broken."""
RUNNING = (ACTIVE, RESIZED)
"""Statuses of servers whose guests run."""


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


class Servers(Protocol):
    """Find servers, wake them, and act on them at the end of a lease."""

    def servers_on(self, host: str) -> Sequence[CloudServer]:
        """Return the servers on a host."""

    def servers_in(self, pool: str) -> Sequence[CloudServer]:
        """Return the servers on the hosts of a pool; of shared capacity, the servers that use it."""

    def server(self, server_id: str) -> CloudServer | None:
        """Return a server, or None if it does not exist."""

    def sleeping(self) -> Sequence[CloudServer]:
        """Return all servers that are RESERVED."""

    def busy_hosts(self, hosts: Collection[str]) -> frozenset[str]:
        """Return those of the hosts on which at least one server is RUNNING."""

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
