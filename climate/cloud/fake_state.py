"""State of the in-memory cloud, its controls for tests, and helpers of its methods."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import RLock
from uuid import uuid4

from climate.cloud import (
    ACTIVE,
    FREEPOOL,
    Capacity,
    CloudError,
    CloudFlavor,
    CloudHost,
    CloudServer,
    ExternalNetwork,
    Fenced,
    Refused,
)
from climate.cloud.volumes import CloudStorage, CloudVolume


@dataclass
class _Pending:
    """Pending status of a server after a number of reads; None means that it will be deleted."""

    looks: int
    becomes: str | None
    host: str | None = None
    """Host that the server moves to; None if it stays."""


@dataclass(frozen=True)
class FakeAddress:
    """A floating IP with its project and the pool of its tags; None if it has no tags."""

    project_id: str
    network_id: str
    pool: str | None


@dataclass
class InMemoryCloud:
    """In-memory hosts, pools and servers. Thread-safe; controls set by a test apply at the next call."""

    hosts: dict[str, CloudHost] = field(default_factory=dict)
    broken: bool = False
    """Every method raises CloudError, without any effect."""
    failures: dict[str, Exception] = field(default_factory=dict)
    """Maps a method to the error that it raises, without any effect, until it is removed."""
    unheard: dict[str, int] = field(default_factory=dict)
    """Maps a method to the number of calls that take effect and then raise CloudError, as if the answer was lost."""
    looks_until_gone: int = 0
    """Number of reads that still show a server after its deletion was requested."""
    looks_until_awake: int = 0
    """Number of reads that still show a server RESERVED, and busy, after its wake-up was requested."""
    looks_until_moved: int = 0
    """Number of reads that still show a server on its host, and busy, after its move was requested."""
    watch: Callable[[str], None] | None = None
    """Called with each method's name before anything else, outside of the lock."""
    effects: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    """Maps (method, host or pool or server, token) to the number of changes."""
    calls: list[tuple[str, str]] = field(default_factory=list)
    """(method, target) of all calls, in order."""
    images: list[tuple[str, str]] = field(default_factory=list)
    """(server id, name) of the images created."""
    unwell: dict[str, str] = field(default_factory=dict)
    """Maps a host to its fault."""
    flavors: dict[str, CloudFlavor] = field(default_factory=dict)
    """Flavors by id, which every project may use."""
    granted: dict[str, Capacity] = field(default_factory=dict)
    """Shared capacity, by pool."""
    external: dict[str, ExternalNetwork] = field(default_factory=dict)
    """External networks, by id."""
    addresses: dict[str, FakeAddress] = field(default_factory=dict)
    """Existing floating IPs."""
    storage: dict[str, CloudStorage] = field(default_factory=dict)
    """Storage backends, by name."""
    made_volumes: dict[tuple[str, int], CloudVolume] = field(default_factory=dict)
    """Existing volumes, by pool and number."""

    def __post_init__(self) -> None:
        self._lock = RLock()
        self._pool_of: dict[str, str] = {}
        self._owners: dict[str, str] = {}
        self._shared: dict[str, tuple[str, ...]] = {}
        self._closed: set[str] = set()
        self._promised: dict[str, dict[str, str]] = {}
        self._numbers: dict[str, int] = {}
        self._imaged: set[tuple[str, str, str]] = set()
        self._fences: dict[str, int] = {}
        self._servers: dict[str, CloudServer] = {}
        self._pending: dict[str, _Pending] = {}
        self._uses: dict[str, str] = {}

    # Controls for tests.

    def set_hosts(self, hosts: Iterable[CloudHost]) -> None:
        """Replace the set of hosts; remove others from the pools."""
        with self._lock:
            self.hosts = {host.name: host for host in hosts}
            self._pool_of = {name: pool for name, pool in self._pool_of.items() if name in self.hosts}

    def boot(self, project_id: str, host: str | None = None, *, status: str = ACTIVE, server_id: str = "") -> str:
        """Boot a server on a host as a user would; return its id. Raise Refused in a closed or foreign pool."""
        with self._lock:
            pool = self._pool_of.get(host or "")
            if pool is not None and (pool in self._closed or project_id not in self.projects(pool)):
                raise Refused(f"host {host} is in the pool {pool}")
            made = CloudServer(server_id or str(uuid4()), "server", project_id, status, host)
            self._servers[made.id] = made
            return made.id

    def boot_granted(self, pool: str, host: str) -> str:
        """Boot a server on shared capacity as its owner would; return its id. Raise Refused if no slot is free."""
        with self._lock:
            capacity = self.granted.get(pool)
            used = sum(server.host == host for server in self._in(pool)) if capacity else 0
            astray = self._pool_of.get(host) != FREEPOOL
            if capacity is None or astray or pool in self._closed or used >= capacity.slots.get(host, 0):
                raise Refused(f"there is no free slot of {pool} on {host}")
            made = CloudServer(str(uuid4()), "server", capacity.project_id, ACTIVE, host)
            self._servers[made.id] = made
            self._uses[made.id] = pool
            return made.id

    def migrate(self, server_id: str, host: str) -> None:
        """Move a server to another host, as if by hand."""
        with self._lock:
            self._servers[server_id] = replace(self._servers[server_id], host=host)

    def change(self, server_id: str, status: str, fault: str | None = None) -> None:
        """Change the status of a server, as if it had failed or been used."""
        with self._lock:
            self._servers[server_id] = replace(self._servers[server_id], status=status, fault=fault)

    def owner(self, pool: str) -> str | None:
        """Return the project of a pool."""
        return self._owners.get(pool)

    def projects(self, pool: str) -> tuple[str | None, ...]:
        """Return the projects that may boot in a pool, its owner first."""
        return (self._owners.get(pool), *self._shared.get(pool, ()))

    def is_closed(self, pool: str) -> bool:
        """Return whether boots in a pool are refused."""
        return pool in self._closed

    def doubled(self) -> list[tuple[str, str]]:
        """Return (method, target) that took effect more than once under one token."""
        return [(verb, target) for (verb, target, _), times in self.effects.items() if times > 1]

    # Helpers of the methods.

    @contextmanager
    def _verb(self, name: str, target: str) -> Iterator[None]:
        if self.watch is not None:
            self.watch(name)
        with self._lock:
            self.calls.append((name, target))
            if self.broken:
                raise CloudError("the cloud cannot be reached")
            if name in self.failures:
                raise self.failures[name]
            yield
            if self.unheard.get(name, 0) > 0:
                self.unheard[name] -= 1
                raise CloudError("the answer of the cloud was lost")

    def _become(self, server_id: str, status: str | None, looks: int, host: str | None = None) -> None:
        self._pending[server_id] = _Pending(looks, status, host)
        self._servers[server_id] = replace(self._servers[server_id], busy=True)
        if looks == 0:
            self._advance_pending(server_id)

    def _advance_pending(self, server_id: str) -> None:
        """Count one more read of a server, and complete its pending change after enough reads."""
        pending = self._pending.get(server_id)
        if pending is None:
            return
        if pending.looks > 0:
            pending.looks -= 1
            return
        del self._pending[server_id]
        if pending.becomes is None:
            del self._servers[server_id]
        else:
            was = self._servers[server_id]
            self._servers[server_id] = replace(was, status=pending.becomes, busy=False, host=pending.host or was.host)

    def _takes(self, server: CloudServer, host: str) -> bool:
        """Return whether a host accepts migrated servers: ordinary boots use it, and it has no fault."""
        return host not in self._pool_of and host not in self.unwell

    def _fit(self, server_id: str, token: int) -> CloudServer:
        """Return a server that accepts actions."""
        server, pending = self._servers.get(server_id), self._pending.get(server_id)
        if server is None or (pending is not None and pending.becomes is None):
            raise Refused(f"there is no server {server_id}")
        self._check_fences([server_id], token)
        self._fence([server_id], token)
        return server

    def _number(self, pool: str) -> int:
        """Return the id of a pool's aggregate, a new one for each aggregate created."""
        return self._numbers.setdefault(pool, max(self._numbers.values(), default=0) + 1)

    def _move(self, host: str, pool: str | None) -> None:
        self._pool_of.pop(host, None)
        if pool is not None:
            self._pool_of[host] = pool

    def _in(self, pool: str) -> list[CloudServer]:
        if pool in self.granted:
            return [server for server in self._servers.values() if self._uses.get(server.id) == pool]
        return self._on(set(self._lent(pool)))

    def _has_slot(self, server: CloudServer) -> bool:
        capacity = self.granted.get(self._uses.get(server.id, ""))
        return capacity is not None and server.host in capacity.slots

    def _lent(self, pool: str) -> list[str]:
        return sorted(name for name, its in self._pool_of.items() if its == pool)

    def _on(self, names: set[str]) -> list[CloudServer]:
        return [server for server in self._servers.values() if server.host in names]

    def _check_fences(self, targets: Iterable[str], token: int) -> None:
        if any(self._fences.get(target, 0) > token for target in targets):
            raise Fenced

    def _fence(self, targets: Iterable[str], token: int) -> None:
        self._fences.update(dict.fromkeys(targets, token))
