"""Interface of drivers that can migrate a running guest: the LiveMigrator protocol.

A live migration has five steps, each at the compute service of the source or the destination node. `offer` (source)
describes the guest. `receive` (destination) prepares a guest that waits for its memory. `send` (source) copies memory
and disk and hands over. `keep` (destination) makes the guest an ordinary one. `clear` (source) deletes what was sent.
`drop` (destination) reverts `receive`; a failed `send` reverts the rest.

Offers, arrangements and results of `send` are JSON, stored between the steps. Values under SECRETS are stored
encrypted and never shown.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from climate.compute.errors import VirtError
from climate.compute.virt import Guest
from climate.sealed_secrets import Unreadable, Vault

SECRETS = "secrets"
APART = "apart"
"""Key of an arrangement, True if the two machines share no interface."""


class MigrationCommand(Enum):
    """Order to the sender during a migration."""

    GO_ON = "go on"
    COMPLETE = "complete"
    """Pause the guest, so that the rest of its memory is copied at once."""
    ABORT = "abort"


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a live migration, in bytes."""

    memory_total: int = 0
    memory_processed: int = 0
    memory_remaining: int = 0
    disk_total: int = 0
    disk_processed: int = 0
    disk_remaining: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a live migration."""

    downtime_ms: int = 500
    """Maximum downtime in seconds, while the last memory is copied."""
    seconds: float = 800.0
    """Seconds after which the migration is aborted."""
    stall_seconds: float = 60.0
    """Seconds without progress after which the migration is aborted."""


Watch = Callable[[Progress], MigrationCommand]
"""Function called repeatedly with the progress; it returns the next order. If it raises, the sender stops in place."""


def sealed(vault: Vault, details: Mapping[str, Any]) -> Mapping[str, object]:
    """Return data for the other side, or for a file, with its secrets encrypted."""
    return {**details, SECRETS: vault.seal(details[SECRETS])} if SECRETS in details else details


def opened(vault: Vault, details: Mapping[str, Any]) -> Mapping[str, object]:
    """Return data of the other side with its secrets decrypted. Raise VirtError if they cannot be."""
    if not isinstance(details.get(SECRETS), str):  # files of older releases have them open
        return details
    try:
        return {**details, SECRETS: vault.open(details[SECRETS])}
    except Unreadable as error:
        raise VirtError(
            "the key of the live migration cannot be opened: both compute services need the same CLIMATE_HOME/keys"
        ) from error


def opened_result(vault: Vault, sent: Mapping[str, object]) -> Mapping[str, object]:
    """Return a result of `send` with its secrets decrypted, or without them: the guest has left its source already."""
    try:
        return opened(vault, sent)
    except VirtError:
        return {name: value for name, value in sent.items() if name != SECRETS}


class LiveMigrator(Protocol):
    """Live migration methods of a driver. All are idempotent and raise VirtError."""

    def offer(self, guest: Guest) -> Mapping[str, object]:
        """Return a description of the running or paused guest for the destination."""

    def receive(self, guest: Guest, offer: Mapping[str, object]) -> Mapping[str, object]:
        """Prepare a guest that waits for its memory; return the arrangement for `send`.

        `guest` is the guest as it will be on the destination. An earlier waiting guest is dropped.
        """

    def send(
        self, guest: Guest, arrangement: Mapping[str, object], limits: Limits, watch: Watch
    ) -> Mapping[str, object]:
        """Migrate the guest, and return the argument for `keep` once it has ended here.

        By then the guest runs at the destination, or waits there for `keep`. The next call takes over from a crashed
        sender. After VirtError the guest continues here, unless it ended by itself, and never starts at the
        destination.
        """

    def keep(self, guest: Guest, sent: Mapping[str, object]) -> None:
        """Make the guest that arrived an ordinary one of this node, and let it run.

        After VirtError there is no guest here, or it has ended; its disk stays.
        """

    def drop(self, server_id: str, *, spare_disk: bool = False) -> None:
        """Delete a guest that waits for its memory; `spare_disk`: keep its disk, which is the only copy."""

    def clear(self, guest: Guest, arrangement: Mapping[str, object]) -> None:
        """Delete the rest of a migrated guest, except what both nodes share."""

    def waiting(self) -> Collection[str]:
        """Return the servers whose guests wait for their memory here."""
