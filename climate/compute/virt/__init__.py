"""Interface of virtualization drivers: the VirtDriver protocol and its values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from climate.compute.models.node import NodeSpec
from climate.compute.virt.guest_kinds import Kind
from climate.compute.virt.guest_volumes import Attached

if TYPE_CHECKING:
    from climate.compute.virt.live_migrator import LiveMigrator


class State(Enum):
    """State of a guest as a driver finds it."""

    PREPARED = "prepared"
    """Prepared for its first start, without process and memory."""
    RUNNING = "running"
    PAUSED = "paused"
    """Paused, in memory."""
    SUSPENDED = "suspended"
    """Suspended; its memory is saved on disk."""
    DEAD = "dead"
    """Built once, and not running."""


class Wiring(Enum):
    """Way in which a node's guests are connected to networks."""

    NONE = "none"
    """Not connected: addresses are only recorded."""
    NETNS = "netns"
    """Each guest has its own network namespace with its interfaces."""
    TAP = "tap"
    """Each guest holds file descriptors of tap devices."""
    BY_MEMBER = "by member"
    """The node is a cluster, and the driver of the guest's member connects it."""


@dataclass(frozen=True, slots=True)
class Interface:
    """Network interface of a guest."""

    mac: str
    addresses: tuple[str, ...] = ()
    device: str = "eth0"
    host_netns: str | None = None
    """Network namespace of the node; None: the machine's own."""
    netns: str | None = None
    """Network namespace of the guest that contains the interface; None: it has none."""
    tap: str | None = None
    """Tap device in `host_netns` that the guest holds; None: it has none."""
    dhcp: bool = False
    """True if the guest gets its address by DHCP."""
    interfaces_file: str | None = None
    """Content of /etc/network/interfaces to inject into the guest; set on its first interface."""


@dataclass(frozen=True, slots=True)
class Guest:
    """Server as a driver needs it. `id` is a UUID; `name` is user text, for display only."""

    id: str
    name: str
    node: str
    vcpus: int = 1
    ram_mb: int = 128
    disk_gb: int = 1
    image: Path | None = None
    """Initial content; None: empty."""
    carried: bool = False
    """True if `image` is the guest's own disk, which is deleted after the guest was built."""
    rescued: bool = False
    """True if it boots from a disk that is built from `image`, with its own disk as the second one."""
    again: Path | None = None
    """Image to rebuild a migrated guest from if its disk is lost; None: there is none."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Properties of the image."""
    interfaces: tuple[Interface, ...] = ()
    """In the order of eth0, eth1, …"""
    volumes: tuple[Attached, ...] = ()
    """In the order of their devices."""
    config: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Path -> content of the config drive's files; empty: no config drive."""

    @property
    def netns(self) -> str | None:
        """Return the guest's network namespace, or None if it has none of its own."""
        return next((interface.netns for interface in self.interfaces if interface.netns is not None), None)


class VirtDriver(Protocol):
    """Virtualization driver. Every method is idempotent and raises VirtError."""

    def nodes(self) -> Sequence[NodeSpec]:
        """Return the current nodes, which may change between calls."""

    def trouble(self) -> str | None:
        """Return why guests cannot be built on this machine, or None if they can."""

    def kinds(self) -> tuple[Kind, ...]:
        """Return the kinds of servers that it runs on this machine, which images may require."""

    def wiring(self, node: str) -> Wiring:
        """Return how guests of this node are connected to networks."""

    def host_netns(self, node: str) -> str | None:
        """Return the network namespace of a node; None: the machine's own."""

    def knows_guests(self, node: str) -> bool:
        """Return whether `states` covers the guests of this node."""

    def prepare(self, guest: Guest) -> None:
        """Build all that the first start of a guest needs, so that `run` does not need its image.

        The guest is PREPARED afterwards: its disk survives a crash of the host, and it has no process.
        """

    def run(self, guest: Guest) -> None:
        """Ensure that a guest runs, building it if needed, with its current sizes.

        A guest that runs rescued, or is to run rescued, is stopped before.
        """

    def stop(self, guest: Guest, *, kindly: bool = True) -> None:
        """Stop a guest; `kindly` asks it to shut down first. The disk that it was rescued with is deleted."""

    def pause(self, guest: Guest) -> None:
        """Pause a running guest in memory."""

    def unpause(self, guest: Guest) -> None:
        """Continue a paused guest."""

    def suspend(self, guest: Guest) -> None:
        """Suspend a running guest, with its memory on disk if the driver can do that."""

    def resume(self, guest: Guest) -> None:
        """Continue a suspended guest."""

    def rewire(self, guest: Guest) -> None:
        """Apply changed interfaces or volumes to a guest, as far as possible without a restart.

        Helper processes of a stopped guest are ended.
        """

    def snapshot(self, guest: Guest, target: Path) -> None:
        """Write the content of a guest to the file `target`."""

    def delete(self, server_id: str) -> None:
        """Delete a guest and all of its resources."""

    def states(self) -> Mapping[str, State]:
        """Return the states of all existing guests on nodes that `knows_guests` returns True for."""

    def live(self, node: str) -> "LiveMigrator | None":
        """Return the driver's live migration methods for this node, or None if it cannot migrate running guests."""

    def clean_up(self) -> None:
        """Trim console logs, and run the maintenance of clusters.

        It is called periodically, and before `states`.
        """

    def console(self, guest: Guest, lines: int | None) -> str:
        """Return the last lines of a guest's console; None: all, up to 100 KiB."""
