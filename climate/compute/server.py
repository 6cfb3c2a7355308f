"""A server, its statuses, and the moves between them as a table."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from climate.compute.errors import Busy, Conflict
from climate.compute.flavor import Flavor

BUILD, RESERVED, ACTIVE, SHUTOFF = "BUILD", "RESERVED", "ACTIVE", "SHUTOFF"
SUSPENDED, ERROR = "SUSPENDED", "ERROR"
STATUSES = (BUILD, RESERVED, ACTIVE, SHUTOFF, SUSPENDED, ERROR)


@dataclass(frozen=True, slots=True)
class Wish:
    """Something asked of a server: what it is called while under way, where it may begin, where it leads."""

    task: str
    begins: frozenset[str]
    becomes: str | None
    """The status afterwards; None: the one it had."""
    overtakes: frozenset[str] = frozenset()
    """Tasks under way that this one replaces; every other one must be finished first."""


SPAWN, HOLD, WAKE, STOP, START = "spawning", "reserving", "waking", "powering-off", "powering-on"
SUSPEND, RESUME, REBOOT, SNAPSHOT, DELETE = "suspending", "resuming", "rebooting", "image_snapshot", "deleting"

WISHES = {
    wish.task: wish
    for wish in (
        Wish(SPAWN, frozenset({BUILD}), ACTIVE),
        Wish(HOLD, frozenset({RESERVED}), RESERVED),
        Wish(WAKE, frozenset({RESERVED}), ACTIVE, overtakes=frozenset({HOLD})),
        Wish(STOP, frozenset({ACTIVE}), SHUTOFF),
        Wish(START, frozenset({SHUTOFF}), ACTIVE),
        Wish(SUSPEND, frozenset({ACTIVE}), SUSPENDED),
        Wish(RESUME, frozenset({SUSPENDED}), ACTIVE),
        Wish(REBOOT, frozenset({ACTIVE, SHUTOFF}), ACTIVE),
        Wish(SNAPSHOT, frozenset({ACTIVE, SHUTOFF, SUSPENDED}), None),
    )
} | {DELETE: Wish(DELETE, frozenset(STATUSES), None)}
"""Task -> wish.  Deleting replaces whatever is under way; see `may`."""

MAKING = frozenset({SPAWN, HOLD, WAKE})
"""Tasks that make a process: when they fail, another node may still do it."""


@dataclass(frozen=True, slots=True)
class Address:
    """A fixed address of a server, and the network it is in."""

    address: str
    mac: str
    network_id: str
    label: str


@dataclass(frozen=True, slots=True)
class Server:
    """A virtual machine.  Sizes as in its flavor, times UTC."""

    id: str
    name: str
    project_id: str
    user_id: str
    status: str
    task: str | None
    flavor: Flavor
    image_id: str | None
    metadata: Mapping[str, str]
    hints: Mapping[str, Any]
    zone: str | None
    """Availability zone as it was asked for: see request.read_zone."""
    build_id: str
    """Of the request it was made by: r-…, shared by servers of one request."""
    launch_index: int
    created_at: datetime
    updated_at: datetime
    launched_at: datetime | None = None
    service_host: str | None = None
    node_id: int | None = None
    node: str | None = None
    node_zone: str | None = None
    key_name: str | None = None
    fault: Mapping[str, Any] | None = None
    task_image: str | None = None
    """The image that a snapshot under way is filling."""
    tried: tuple[int, ...] = ()
    """Nodes on which making it has failed."""
    addresses: tuple[Address, ...] = field(default=())

    @property
    def busy(self) -> bool:
        return self.task is not None


def may(server: Server, task: str) -> None:
    """Return when `task` may begin on this server now, else raise Conflict, or Busy when it may later."""
    wish = WISHES[task]
    if task == DELETE:
        return
    if server.task == DELETE:
        raise Conflict(f"Cannot do '{task}' instance {server.id}: it is being deleted")
    if server.status not in wish.begins:
        raise Conflict(f"Cannot do '{task}' instance {server.id} while it is in vm_state {server.status.lower()}")
    if server.task is not None and server.task != task and server.task not in wish.overtakes:
        raise Busy(f"Cannot do '{task}' instance {server.id} while it is in task_state {server.task}")
