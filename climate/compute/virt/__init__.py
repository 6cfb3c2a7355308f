"""What a compute service asks of a virtualization driver."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol

from climate.compute.host import NodeSpec


class State(Enum):
    """What a driver finds a guest to be."""

    HELD = "held"
    """Built and waiting to be woken."""
    RUNNING = "running"
    PAUSED = "paused"
    DEAD = "dead"
    """Built once, and not running."""


@dataclass(frozen=True, slots=True)
class Guest:
    """A server as a driver needs to know it.  `id` is a UUID; `name` is a user's text, for show only."""

    id: str
    name: str
    node: str
    addresses: tuple[str, ...] = ()


class VirtDriver(Protocol):
    """Every verb is "make it so": asked twice, it ends in the same place.  They raise VirtError."""

    def nodes(self) -> Sequence[NodeSpec]:
        """The nodes there are now; they may come and go."""

    def remembers(self, node: str) -> bool:
        """Whether `states` can tell what became of the guests of this node."""

    def hold(self, guest: Guest) -> None:
        """Build a guest that waits to be woken."""

    def run(self, guest: Guest) -> None:
        """See to it that a guest runs: wake it, start it or build it anew."""

    def stop(self, guest: Guest) -> None:
        """Shut a guest down, kindly at first."""

    def suspend(self, guest: Guest) -> None:
        """Pause a running guest."""

    def resume(self, guest: Guest) -> None:
        """Let a paused guest go on."""

    def snapshot(self, guest: Guest, target: Path) -> None:
        """Put what the guest consists of into the file `target`."""

    def delete(self, server_id: str) -> None:
        """Leave nothing of a guest."""

    def states(self) -> Mapping[str, State]:
        """All guests that there is anything of, on nodes which are remembered."""

    def console(self, guest: Guest, lines: int | None) -> str:
        """The last lines of what the guest printed; None: all of it, up to 100 KiB."""
