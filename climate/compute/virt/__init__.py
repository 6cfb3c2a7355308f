"""What a compute service asks of a virtualization driver."""

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
    """What a driver finds a guest to be."""

    PREPARED = "prepared"
    """It has all that its first start needs, and neither a process nor memory."""
    RUNNING = "running"
    PAUSED = "paused"
    """Stopped in its tracks, in memory."""
    SUSPENDED = "suspended"
    """Its memory is kept on disk."""
    DEAD = "dead"
    """Built once, and not running."""


class Wiring(Enum):
    """How the guests of a node are connected to networks."""

    NONE = "none"
    """Not at all: they have addresses on paper."""
    NETNS = "netns"
    """Each has a network namespace of its own, with its interfaces in it."""
    TAP = "tap"
    """Each holds the files of tap devices."""


@dataclass(frozen=True, slots=True)
class Interface:
    """A network interface of a guest."""

    mac: str
    addresses: tuple[str, ...] = ()
    device: str = "eth0"
    host_netns: str | None = None
    """The network namespace of the node; None: this one."""
    netns: str | None = None
    """The guest's own network namespace, in which the interface is; None: it has no such."""
    tap: str | None = None
    """The tap device, in `host_netns`, that the guest holds; None: it has no such."""
    dhcp: bool = False
    """Whether the guest asks DHCP for its address; otherwise it has it, or need not know it."""
    interfaces_file: str | None = None
    """The text of /etc/network/interfaces that is to be injected into the guest; it is at its first interface."""


@dataclass(frozen=True, slots=True)
class Guest:
    """A server as a driver needs to know it.  `id` is a UUID; `name` is a user's text, for show only."""

    id: str
    name: str
    node: str
    vcpus: int = 1
    ram_mb: int = 128
    disk_gb: int = 1
    image: Path | None = None
    """The content to begin with; None: there is none."""
    carried: bool = False
    """`image` holds the guest's own disk, and is deleted once the guest is made."""
    again: Path | None = None
    """Of one that is carried: the image to make it of where its disk is lost; None: there is none."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Of the image."""
    interfaces: tuple[Interface, ...] = ()
    """In the order of eth0, eth1, …"""
    volumes: tuple[Attached, ...] = ()
    """In the order of their devices."""
    config: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """The files of its config drive, by their paths; empty: it has none."""

    @property
    def netns(self) -> str | None:
        """The network namespace that it is in; None: it has none of its own."""
        return next((one.netns for one in self.interfaces if one.netns is not None), None)


class VirtDriver(Protocol):
    """Every verb is "make it so": asked twice, it ends in the same place.  They raise VirtError."""

    def nodes(self) -> Sequence[NodeSpec]:
        """The nodes there are now; they may come and go."""

    def trouble(self) -> str | None:
        """Why no guest can be made on this machine; None: they can."""

    def kinds(self) -> tuple[Kind, ...]:
        """What servers it runs on this machine: images may ask for one of them."""

    def wiring(self, node: str) -> Wiring:
        """How guests of this node are connected to networks."""

    def host_netns(self, node: str) -> str | None:
        """The network namespace of a node; None: this one."""

    def remembers(self, node: str) -> bool:
        """Whether `states` can tell what became of the guests of this node."""

    def prepare(self, guest: Guest) -> None:
        """Make all that the first start of a guest needs, so that `run` needs its image no more.

        The guest is PREPARED afterwards: its disk is safe from a crash of the host, and no process is left.
        """

    def run(self, guest: Guest) -> None:
        """See to it that a guest runs: start it, with the sizes it has now, or build it anew."""

    def stop(self, guest: Guest, *, kindly: bool = True) -> None:
        """Shut a guest down; kindly: it is asked first."""

    def pause(self, guest: Guest) -> None:
        """Stop a running guest in its tracks, in memory."""

    def unpause(self, guest: Guest) -> None:
        """Let a paused guest go on."""

    def suspend(self, guest: Guest) -> None:
        """Put a running guest to sleep, its memory to disk where the driver can."""

    def resume(self, guest: Guest) -> None:
        """Let a suspended guest go on."""

    def rewire(self, guest: Guest) -> None:
        """Let a guest know that its interfaces or volumes have changed, as far as it can be told without a new start.

        What is left beside one that has ended goes.
        """

    def snapshot(self, guest: Guest, target: Path) -> None:
        """Put what the guest consists of into the file `target`."""

    def delete(self, server_id: str) -> None:
        """Leave nothing of a guest."""

    def states(self) -> Mapping[str, State]:
        """All guests that there is anything of, on nodes which are remembered."""

    def live(self, node: str) -> "LiveMigrator | None":
        """The driver's part in live migrations from and to this node; None: it cannot move running guests."""

    def tidy(self) -> None:
        """Keep house: what guests print stays within bounds, and a cluster looks after its members.

        It is asked for now and then, and before `states`.
        """

    def console(self, guest: Guest, lines: int | None) -> str:
        """The last lines of what the guest printed; None: all of it, up to 100 KiB."""
