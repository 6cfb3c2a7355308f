"""Live migration to and from a member behind another service: each step is an order to it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from climate.compute.clusters.migration_orders import CLEAR, KEEP, OFFER, RECEIVE, SEND, SENT
from climate.compute.virt import Guest
from climate.compute.virt.hypervisor_cluster.live_moves import RoundOver
from climate.compute.virt.live_migrator import Limits, MigrationCommand, Progress, Watch, opened, opened_result, sealed
from climate.sealed_secrets import Vault


@dataclass(frozen=True)
class RemoteMigrator:
    """Live migration methods of a member behind another service."""

    ask: Callable[..., Any]
    """Sends an order with a verb, a guest and further values, and returns the answer."""
    forget: Callable[[str], None]
    """Orders that what waits for a server is deleted."""
    vault: Vault

    def offer(self, guest: Guest) -> Mapping[str, object]:
        offer: Mapping[str, object] = self.ask(OFFER, guest)
        return offer

    def receive(self, guest: Guest, offer: Mapping[str, object]) -> Mapping[str, object]:
        return opened(self.vault, self.ask(RECEIVE, guest, offer=offer))

    def send(
        self, guest: Guest, arrangement: Mapping[str, object], limits: Limits, watch: Watch
    ) -> Mapping[str, object]:
        """Order the guest to be sent; raise RoundOver while it is under way. The service has limits of its own."""
        ends = watch(Progress()) is MigrationCommand.ABORT
        answer = self.ask(SEND, guest, arrangement=sealed(self.vault, arrangement), abort=ends)
        if SENT not in answer:
            raise RoundOver
        return opened_result(self.vault, answer[SENT])

    def keep(self, guest: Guest, sent: Mapping[str, object]) -> None:
        self.ask(KEEP, guest, sent=sealed(self.vault, sent))

    def drop(self, server_id: str, *, spare_disk: bool = False) -> None:
        """Delete a waiting guest; the disk of the source is another one, or is known to the driver as shared."""
        self.forget(server_id)

    def clear(self, guest: Guest, arrangement: Mapping[str, object]) -> None:
        self.ask(CLEAR, guest, arrangement=sealed(self.vault, arrangement))

    def waiting(self) -> Collection[str]:
        """Return nothing: the service of the member knows."""
        return ()
