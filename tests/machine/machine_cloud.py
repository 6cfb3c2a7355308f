"""A cloud whose hosts are machines: they break, die with their servers, and are up only while they have power."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from climate.cloud import ACTIVE, CloudServer, Refused
from climate.cloud.fake import FakeCloud


@dataclass
class Ground(FakeCloud):
    """`is_up` says which hosts have power; `on_deletion` is called before the engine's deletion of a server."""

    is_up: Callable[[str], bool] = field(default=lambda host: True)
    on_deletion: Callable[[CloudServer], None] = field(default=lambda server: None)

    def boot(self, project_id: str, host: str | None = None, *, status: str = ACTIVE, server_id: str = "") -> str:
        self._need(host)
        return super().boot(project_id, host, status=status, server_id=server_id)

    def boot_granted(self, pool: str, host: str) -> str:
        self._need(host)
        return super().boot_granted(pool, host)

    def _need(self, host: str | None) -> None:
        if host and (host in self.unwell or not self.is_up(host)):
            raise Refused(f"host {host} is down")

    def _takes(self, server: CloudServer, host: str) -> bool:
        return super()._takes(server, host) and self.is_up(host)

    def health(self) -> Mapping[str, str | None]:
        said = super().health()
        return {name: trouble or (None if self.is_up(name) else "it is off") for name, trouble in said.items()}

    def delete_server(self, server_id: str, token: int) -> None:
        there = self._servers.get(server_id)
        if there is not None and not there.busy:
            self.on_deletion(there)
        super().delete_server(server_id, token)

    # What happens by itself, or is done by users.

    def lose(self, server_id: str) -> None:
        """The server is gone: its user has deleted it, or it died with its host."""
        with self._lock:
            self._servers.pop(server_id, None)
            self._pending.pop(server_id, None)

    def die(self, host: str) -> None:
        """The host breaks, and its servers with it."""
        self.unwell[host] = "it is dead"
        for server in self._on({host}):
            self.lose(server.id)

    def servers(self) -> list[CloudServer]:
        """All servers there are, seen past all faults, without looking at what becomes of them."""
        return list(self._servers.values())

    def pool_of(self, host: str) -> str | None:
        """The pool that the host is in, seen past all faults."""
        return self._pool_of.get(host)
