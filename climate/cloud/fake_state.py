"""What the cloud in memory consists of, what tests do with it, and how its verbs look at it."""

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
    """What a server will become after so many looks; None: it will be gone."""

    looks: int
    becomes: str | None
    host: str | None = None
    """Where it will be; None: where it is."""


@dataclass(frozen=True)
class FakeAddress:
    """A floating address: whose it is, and the pool by whose name it is marked; None: it bears no mark."""

    project_id: str
    network_id: str
    pool: str | None


@dataclass
class Pretence:
    """Hosts, pools and servers in memory.  Safe to use from several threads; what a test sets is read at each verb."""

    hosts: dict[str, CloudHost] = field(default_factory=dict)
    broken: bool = False
    """Every verb raises CloudError, without any effect."""
    failures: dict[str, Exception] = field(default_factory=dict)
    """Verb -> what it raises, without any effect, until it is taken out again."""
    unheard: dict[str, int] = field(default_factory=dict)
    """Verb -> how many more times it takes effect and then raises CloudError: the answer gets lost."""
    looks_until_gone: int = 0
    """How often a server is still seen after its deletion was asked for."""
    looks_until_awake: int = 0
    """How often a server is still seen RESERVED, and busy, after its wake-up was asked for."""
    looks_until_moved: int = 0
    """How often a server is still seen on its host, and busy, after its move was asked for."""
    watch: Callable[[str], None] | None = None
    """Called with each verb's name before anything else, outside of the lock."""
    effects: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    """(verb, host or pool or server, token) -> how often that changed something."""
    calls: list[tuple[str, str]] = field(default_factory=list)
    """(verb, target) of everything that was asked, in order."""
    images: list[tuple[str, str]] = field(default_factory=list)
    """(server id, name) of the images made."""
    unwell: dict[str, str] = field(default_factory=dict)
    """Host -> what is wrong with it."""
    flavors: dict[str, CloudFlavor] = field(default_factory=dict)
    """Flavors by id, which every project may use."""
    granted: dict[str, Capacity] = field(default_factory=dict)
    """What is granted, by pool."""
    external: dict[str, ExternalNetwork] = field(default_factory=dict)
    """Networks outside, by id."""
    addresses: dict[str, FakeAddress] = field(default_factory=dict)
    """Floating addresses that there are."""
    storage: dict[str, CloudStorage] = field(default_factory=dict)
    """Places for volumes, by the name of the backend."""
    made_volumes: dict[tuple[str, int], CloudVolume] = field(default_factory=dict)
    """Volumes that there are, by pool and number."""

    def __post_init__(self) -> None:
        self._lock = RLock()
        self._pool_of: dict[str, str] = {}
        self._owners: dict[str, str] = {}
        self._closed: set[str] = set()
        self._promised: dict[str, dict[str, str]] = {}
        self._numbers: dict[str, int] = {}
        self._imaged: set[tuple[str, str, str]] = set()
        self._fences: dict[str, int] = {}
        self._servers: dict[str, CloudServer] = {}
        self._pending: dict[str, _Pending] = {}
        self._uses: dict[str, str] = {}

    # What tests do with it.

    def set_hosts(self, hosts: Iterable[CloudHost]) -> None:
        """These are the hosts from now on; pools forget the others."""
        with self._lock:
            self.hosts = {host.name: host for host in hosts}
            self._pool_of = {name: pool for name, pool in self._pool_of.items() if name in self.hosts}

    def boot(self, project_id: str, host: str | None = None, *, status: str = ACTIVE, server_id: str = "") -> str:
        """Put a server on a host, as if somebody had booted it; its id.  Refused in a closed or foreign pool."""
        with self._lock:
            pool = self._pool_of.get(host or "")
            if pool is not None and (pool in self._closed or self._owners.get(pool) != project_id):
                raise Refused(f"host {host} is in the pool {pool}")
            made = CloudServer(server_id or str(uuid4()), "server", project_id, status, host)
            self._servers[made.id] = made
            return made.id

    def boot_granted(self, pool: str, host: str) -> str:
        """Put a server of a grant on a host, as if its owner had booted it; its id.  Refused where no slot is free."""
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
        """Let a server be on another host, as if somebody had moved it there by hand."""
        with self._lock:
            self._servers[server_id] = replace(self._servers[server_id], host=host)

    def change(self, server_id: str, status: str, fault: str | None = None) -> None:
        """Let a server have another status, as if it had broken or been used."""
        with self._lock:
            self._servers[server_id] = replace(self._servers[server_id], status=status, fault=fault)

    def owner(self, pool: str) -> str | None:
        """The project that a pool is lent to."""
        return self._owners.get(pool)

    def is_closed(self, pool: str) -> bool:
        """Whether nobody may boot in a pool any more."""
        return pool in self._closed

    def doubled(self) -> list[tuple[str, str]]:
        """(verb, target) that took effect more than once under one token."""
        return [(verb, target) for (verb, target, _), times in self.effects.items() if times > 1]

    # What the verbs are made of.

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
            self._look(server_id)

    def _look(self, server_id: str) -> None:
        """One more look at a server: what was asked of it comes to pass after enough of them."""
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
        """Whether a server that moves can go to a host: one that ordinary boots use, and that is well."""
        return host not in self._pool_of and host not in self.unwell

    def _fit(self, server_id: str, token: int) -> CloudServer:
        """A server that something can be asked of."""
        server, pending = self._servers.get(server_id), self._pending.get(server_id)
        if server is None or (pending is not None and pending.becomes is None):
            raise Refused(f"there is no server {server_id}")
        self._check_fences([server_id], token)
        self._fence([server_id], token)
        return server

    def _number(self, pool: str) -> int:
        """The id of a pool's aggregate: another one for each that is made."""
        return self._numbers.setdefault(pool, max(self._numbers.values(), default=0) + 1)

    def _put(self, host: str, pool: str | None) -> None:
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
