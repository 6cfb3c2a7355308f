"""What the engine asks of a driver that can move a running guest to another node: the LiveMigrator protocol.

A live migration has five steps, each at the compute service of the source node or of
the destination node.  `offer` (source) says what is to be received, `receive`
(destination) prepares a guest that waits for its memory, `send` (source) moves memory
and disk and hands over, `keep` (destination) makes the guest that arrived an ordinary
one, and `clear` (source) leaves nothing of what was sent.  `drop` (destination) takes back
what `receive` did; a `send` that fails takes back the rest.

Offers, arrangements and what `send` tells are JSON: they are stored between the steps.  What
stands under SECRETS in them is stored sealed, and never shown.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from climate.compute.virt import Guest

SECRETS = "secrets"
APART = "apart"
"""True in an arrangement between two machines: they share no interface."""


class Order(Enum):
    """What the sender is told while it is at work."""

    GO_ON = "go on"
    COMPLETE = "complete"
    """Stop the guest, so that the rest of its memory is moved at once."""
    ABORT = "abort"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a live migration is.  In bytes."""

    memory_total: int = 0
    memory_processed: int = 0
    memory_remaining: int = 0
    disk_total: int = 0
    disk_processed: int = 0
    disk_remaining: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of a live migration."""

    downtime_ms: int = 500
    """Longest time for which the guest stands still while the last of its memory is moved."""
    seconds: float = 800.0
    """It is given up after so long."""
    stall_seconds: float = 60.0
    """It is given up when nothing has arrived for so long."""


Watch = Callable[[Progress], Order]
"""Told of the progress again and again; its answer is obeyed.  It may raise, then the sender stops where it is."""


class LiveMigrator(Protocol):
    """All verbs are "make it so", and raise VirtError."""

    def offer(self, guest: Guest) -> Mapping[str, Any]:
        """Describe the running or paused guest to the destination."""

    def receive(self, guest: Guest, offer: Mapping[str, Any]) -> Mapping[str, Any]:
        """Prepare a guest that waits for its memory; the arrangement under which it can be sent.

        `guest` is the guest as it is on the destination.  One that waited before is dropped.
        """

    def send(self, guest: Guest, arrangement: Mapping[str, Any], limits: Limits, watch: Watch) -> Mapping[str, Any]:
        """Move the guest, and return once it has ended here; what `keep` is to be told.

        By then it goes on at the destination, or waits there for `keep`.  A sender that died is
        succeeded by the next call.  After a VirtError the guest goes on here, unless it had
        ended by itself, and it never begins at the destination.
        """

    def keep(self, guest: Guest, sent: Mapping[str, Any]) -> None:
        """Make the guest that has arrived an ordinary one of this node, and have it go on.

        After a VirtError none has arrived, or it has ended; its disk stays.
        """

    def drop(self, server_id: str, *, spare_disk: bool = False) -> None:
        """Leave nothing of a guest that waits for its memory; `spare_disk`: but its disk, which is the only one."""

    def clear(self, guest: Guest, arrangement: Mapping[str, Any]) -> None:
        """Leave nothing of a guest that was handed over, but what both nodes share."""

    def waiting(self) -> Collection[str]:
        """The servers whose guests wait for their memory here."""
