"""A server, its statuses, and its tasks with their transitions as a table."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from climate.compute.errors import Busy, Conflict
from climate.compute.models.flavor import Flavor

BUILD, RESERVED, ACTIVE, SHUTOFF = "BUILD", "RESERVED", "ACTIVE", "SHUTOFF"
PAUSED, SUSPENDED, SHELVED_OFFLOADED = "PAUSED", "SUSPENDED", "SHELVED_OFFLOADED"
VERIFY_RESIZE, RESCUED, ERROR = "VERIFY_RESIZE", "RESCUE", "ERROR"
"""RESCUED: its guest boots from another image, with its own disk beside it; `RESCUE` is Nova's word for the status."""
STATUSES = (BUILD, RESERVED, ACTIVE, SHUTOFF, PAUSED, SUSPENDED, SHELVED_OFFLOADED, VERIFY_RESIZE, RESCUED, ERROR)
RUNNING = (ACTIVE, VERIFY_RESIZE, RESCUED)
"""Statuses of servers whose guests run."""


VM_STATES = {
    BUILD: "building",
    RESERVED: "reserved",
    ACTIVE: "active",
    SHUTOFF: "stopped",
    PAUSED: "paused",
    SUSPENDED: "suspended",
    SHELVED_OFFLOADED: "shelved_offloaded",
    VERIFY_RESIZE: "resized",
    RESCUED: "rescued",
    ERROR: "error",
}
"""Status -> Nova's vm_state."""


@dataclass(frozen=True, slots=True)
class TaskKind:
    """A task of a server: its name while in progress, the statuses it may start from, and its result."""

    task: str
    action: str
    """The name of the action for users."""
    begins: frozenset[str]
    becomes: str | None
    """The status afterwards; None: see `after`."""
    overtakes: frozenset[str] = frozenset()
    """Tasks in progress that this one replaces; every other one must be finished first."""


SPAWN, RESERVE, WAKE, STOP, START = "spawning", "reserving", "waking", "powering-off", "powering-on"
PAUSE, UNPAUSE, SUSPEND, RESUME = "pausing", "unpausing", "suspending", "resuming"
REBOOT, REBOOT_HARD, SNAPSHOT, REBUILD = "rebooting", "rebooting_hard", "image_snapshot", "rebuilding"
SHELVE, UNSHELVE, DELETE = "shelving", "unshelving", "deleting"
RESIZE, REVERT, REWIRE = "resize_migrating", "resize_reverting", "rewiring"
MIGRATE, EVACUATE, LIVE_MIGRATE = "resize_prep", "rebuild_spawning", "migrating"
RESCUE, UNRESCUE = "rescuing", "unrescuing"

_SETTLED = frozenset({ACTIVE, SHUTOFF, PAUSED, SUSPENDED})
"""Statuses of a server that has a guest and no fault."""

WISHES = {
    wish.task: wish
    for wish in (
        TaskKind(SPAWN, "create", frozenset({BUILD}), ACTIVE),
        TaskKind(RESERVE, "create", frozenset({RESERVED}), RESERVED),
        TaskKind(WAKE, "wake", frozenset({RESERVED}), ACTIVE, overtakes=frozenset({RESERVE, REWIRE})),
        TaskKind(STOP, "stop", frozenset({ACTIVE, ERROR}), SHUTOFF),
        TaskKind(START, "start", frozenset({SHUTOFF}), ACTIVE),
        TaskKind(PAUSE, "pause", frozenset({ACTIVE}), PAUSED),
        TaskKind(UNPAUSE, "unpause", frozenset({PAUSED}), ACTIVE),
        TaskKind(SUSPEND, "suspend", frozenset({ACTIVE}), SUSPENDED),
        TaskKind(RESUME, "resume", frozenset({SUSPENDED}), ACTIVE),
        TaskKind(REBOOT, "reboot", frozenset({ACTIVE}), ACTIVE),
        TaskKind(REBOOT_HARD, "reboot", _SETTLED | {ERROR}, ACTIVE, overtakes=frozenset({REBOOT})),
        TaskKind(SNAPSHOT, "createImage", _SETTLED, None),
        TaskKind(SHELVE, "shelve", _SETTLED, SHELVED_OFFLOADED),
        TaskKind(UNSHELVE, "unshelve", frozenset({SHELVED_OFFLOADED}), ACTIVE),
        TaskKind(REBUILD, "rebuild", frozenset({ACTIVE, SHUTOFF, ERROR}), None),
        TaskKind(RESIZE, "resize", frozenset({ACTIVE, SHUTOFF}), VERIFY_RESIZE),
        TaskKind(MIGRATE, "migrate", frozenset({ACTIVE, SHUTOFF}), VERIFY_RESIZE),
        TaskKind(LIVE_MIGRATE, "os-migrateLive", frozenset({ACTIVE, PAUSED}), None),
        TaskKind(EVACUATE, "evacuate", frozenset({ACTIVE, SHUTOFF, ERROR}), None),
        TaskKind(REVERT, "revertResize", frozenset({VERIFY_RESIZE}), None),
        TaskKind(RESCUE, "rescue", frozenset({ACTIVE, SHUTOFF, ERROR}), RESCUED),
        TaskKind(UNRESCUE, "unrescue", frozenset({RESCUED}), ACTIVE),
        TaskKind(REWIRE, "changeAddresses", _SETTLED | {RESERVED, VERIFY_RESIZE}, None),
    )
} | {DELETE: TaskKind(DELETE, "delete", frozenset(STATUSES), None)}
"""Task -> its definition. Deletion replaces any task in progress; see `may`."""

IO_TASKS = frozenset({SPAWN, RESERVE, WAKE, SNAPSHOT, UNSHELVE, REBUILD, RESIZE, MIGRATE, EVACUATE, RESCUE})
"""Tasks that keep a node's disk busy, counted as Nova's `io_workload`."""

MAKING = frozenset({SPAWN, RESERVE, WAKE})
"""Tasks that create a guest that has never run: after a failure, another node may still succeed."""


MANUAL = "MANUAL"
"""Disk configuration of a server unless it is AUTO."""


@dataclass(frozen=True, slots=True)
class Address:
    """A fixed address of a server and its network."""

    address: str
    mac: str
    network_id: str
    label: str
    floating: str | None = None
    """The associated floating address."""


@dataclass(frozen=True, slots=True)
class Room:
    """Usage of a node. Sizes: MB."""

    vcpus: int = 0
    ram_mb: int = 0
    disk_mb: int = 0


@dataclass(frozen=True, slots=True)
class Server:
    """A virtual machine. Sizes as in its flavor, times UTC."""

    id: str
    name: str
    project_id: str
    user_id: str
    status: str
    task: str | None
    flavor: Flavor
    image_id: str | None
    metadata: Mapping[str, str]
    hints: Mapping[str, object]
    zone: str | None
    """The availability zone as requested: see request.read_zone."""
    build_id: str
    """The id of its request: r-…, shared by servers of one request."""
    launch_index: int
    created_at: datetime
    updated_at: datetime
    launched_at: datetime | None = None
    destination: str | None = None
    """The requested destination, checked by all filters: see request.read_destination."""
    access: tuple[str | None, str | None] = (None, None)
    """The access addresses that its owner declares: one of IPv4, one of IPv6."""
    service_host: str | None = None
    node_id: int | None = None
    node: str | None = None
    node_zone: str | None = None
    key_name: str | None = None
    fault: Mapping[str, object] | None = None
    task_image: str | None = None
    """The image that a snapshot in progress fills."""
    tried: tuple[int, ...] = ()
    """Nodes on which its creation has failed."""
    addresses: tuple[Address, ...] = field(default=())
    description: str | None = None
    group_id: str | None = None
    """The server group it is a member of."""
    locked_by: str | None = None
    """`owner` or `admin`; None: not locked."""
    locked_reason: str | None = None
    held: Room = Room()
    """Its usage of the node: during a resize the larger of both flavors."""
    old_flavor: Flavor | None = None
    """The flavor before an unconfirmed resize."""
    before: str | None = None
    """The status before a resize."""
    shelved_image: str | None = None
    migration_id: int | None = None
    """The migration in progress, until it is confirmed or reverted."""
    task_details: Mapping[str, Any] = field(default_factory=dict)
    """Further data of the task in progress."""
    config_drive: bool = False
    """The server gets its metadata and user data by a drive."""
    disk_config: str = MANUAL
    """Disk configuration that its owner declares; drivers make the disk as large as the flavor says in either case."""
    tags: tuple[str, ...] = ()
    security_groups: tuple[str, ...] | None = None
    """Ids of its security groups; None: the group `default` of its project."""

    @property
    def busy(self) -> bool:
        return self.task is not None


def after(server: Server) -> str:
    """Return the status of a server after the task in progress."""
    becomes = WISHES[server.task or ""].becomes
    if becomes is not None:
        return becomes
    if server.task == REVERT:
        return server.before or ACTIVE
    return ACTIVE if server.task in (REBUILD, EVACUATE) and server.status == ERROR else server.status


def may(server: Server, task: str) -> None:
    """Check that `task` may begin on this server now, else raise Conflict, or Busy if it may later."""
    wish = WISHES[task]
    if task == DELETE:
        return
    refusal = f"Cannot '{wish.action}' instance {server.id}"
    if server.task == DELETE:
        raise Conflict(f"{refusal}: it is being deleted")
    if server.status not in wish.begins:
        raise Conflict(f"{refusal} while it is in vm_state {VM_STATES[server.status]}{_why(server)}")
    if server.status == ERROR and (server.node_id is None or server.launched_at is None):
        raise Conflict(f"{refusal} while it is in vm_state error: it has never run; delete it")
    if server.task is not None and server.task != task and server.task not in wish.overtakes:
        raise Busy(f"{refusal} while it is in task_state {server.task}")


def _why(server: Server) -> str:
    return ": it sleeps until its lease begins" if server.status == RESERVED else ""


def is_id(text: str) -> bool:
    """Return whether a text, such as the name of a folder, can be the id of a server: a UUID in canonical form."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
