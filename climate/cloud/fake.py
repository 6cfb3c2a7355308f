"""A cloud in memory, that can be broken in the ways a real one breaks.  Ships with the engine, for tests of plugins."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import RLock
from uuid import uuid4

from climate.cloud import (
    ACTIVE,
    FREEPOOL,
    IMAGEABLE,
    RESERVED,
    SUSPENDED,
    CloudError,
    CloudHost,
    CloudServer,
    Fenced,
    NotYet,
    Refused,
)


def host(name: str, *, vcpus: int = 8, memory_mb: int = 32768, local_gb: int = 200) -> CloudHost:
    """An ordinary host, for tests that do not care what it is like."""
    return CloudHost(name, f"service-of-{name}", vcpus, memory_mb, local_gb, "", "fake", 1, "nova", 0)


@dataclass
class _Pending:
    """What a server will become after so many looks; None: it will be gone."""

    looks: int
    becomes: str | None


@dataclass
class FakeCloud:
    """Implements the port.  Safe to use from several threads; what a test sets is read at each verb."""

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
    watch: Callable[[str], None] | None = None
    """Called with each verb's name before anything else, outside of the lock."""
    effects: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    """(verb, host or pool or server, token) -> how often that changed something."""
    calls: list[tuple[str, str]] = field(default_factory=list)
    """(verb, target) of everything that was asked, in order."""
    images: list[tuple[str, str]] = field(default_factory=list)
    """(server id, name) of the images made."""

    def __post_init__(self) -> None:
        self._lock = RLock()
        self._pool_of: dict[str, str] = {}
        self._owners: dict[str, str] = {}
        self._closed: set[str] = set()
        self._imaged: set[tuple[str, str, str]] = set()
        self._fences: dict[str, int] = {}
        self._servers: dict[str, CloudServer] = {}
        self._pending: dict[str, _Pending] = {}

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

    # The port.

    def find_hosts(self, name: str) -> Sequence[CloudHost]:
        with self._verb("find_hosts", name):
            found = self.hosts.get(name)
            return [replace(found, servers=len(self._on({name})))] if found else []

    def enrol(self, host: str) -> None:
        with self._verb("enrol", host):
            if host not in self.hosts:
                raise Refused(f"there is no host {host}")
            pool = self._pool_of.get(host)
            if pool == FREEPOOL:
                return
            if pool is not None or self._on({host}):
                raise Refused(f"host {host} is lent to {pool}" if pool else f"host {host} has servers")
            self._pool_of[host] = FREEPOOL
            self.effects["enrol", host, 0] += 1

    def withdraw(self, host: str) -> None:
        with self._verb("withdraw", host):
            if self._pool_of.get(host, FREEPOOL) != FREEPOOL:
                raise Refused(f"host {host} is lent")
            if self._pool_of.pop(host, None):
                self.effects["withdraw", host, 0] += 1

    def lend(self, pool: str, project_id: str, hosts: Sequence[str], token: int) -> None:
        with self._verb("lend", pool):
            self._check_fences([pool, *hosts], token)
            for name in hosts:
                if self._pool_of.get(name) not in (FREEPOOL, pool):
                    raise (NotYet if name in self.hosts else Refused)(f"host {name} is not in the reservation pool")
            moved = [name for name in hosts if self._pool_of[name] != pool]
            if moved or pool not in self._owners:
                self.effects["lend", pool, token] += 1
            self._owners[pool] = project_id
            self._pool_of.update(dict.fromkeys(moved, pool))
            self._fence([pool, *hosts], token)

    def close(self, pool: str, token: int) -> None:
        with self._verb("close", pool):
            names = self._lent(pool)
            self._check_fences([pool, *names], token)
            if pool not in self._owners:
                return
            if pool not in self._closed:
                self.effects["close", pool, token] += 1
            self._closed.add(pool)
            self._fence([pool, *names], token)

    def take_back(self, pool: str, hosts: Sequence[str], token: int) -> None:
        with self._verb("take_back", pool):
            names = self._lent(pool)
            free = [name for name in hosts if self._pool_of.get(name) == FREEPOOL]
            self._check_fences([pool, *names, *free], token)
            if pool not in self._owners:
                self._fence(free, token)
                return
            left = self._on(set(names))
            if left:
                raise NotYet(f"{len(left)} servers are still on the hosts of {pool}")
            self._pool_of.update(dict.fromkeys(names, FREEPOOL))
            self._fence([*names, *free], token)
            self._owners.pop(pool)
            self._closed.discard(pool)
            self._fences.pop(pool, None)
            self.effects["take_back", pool, token] += 1

    def pools(self) -> Mapping[str, frozenset[str]]:
        with self._verb("pools", ""):
            names = {FREEPOOL, *self._owners}
            return {pool: frozenset(name for name, its in self._pool_of.items() if its == pool) for pool in names}

    def servers_in(self, pool: str) -> Sequence[CloudServer]:
        with self._verb("servers_in", pool):
            for seen in self._on(set(self._lent(pool))):
                self._look(seen.id)
            return self._on(set(self._lent(pool)))

    def server(self, server_id: str) -> CloudServer | None:
        with self._verb("server", server_id):
            self._look(server_id)
            return self._servers.get(server_id)

    def sleeping(self) -> Sequence[CloudServer]:
        with self._verb("sleeping", ""):
            return [server for server in self._servers.values() if server.status == RESERVED]

    def wake(self, server_id: str, token: int) -> None:
        with self._verb("wake", server_id):
            server = self._fit(server_id, token)
            if server.status == ACTIVE or server_id in self._pending:
                return
            if server.status != RESERVED:
                raise Refused(f"server {server_id} is {server.status}")
            self.effects["wake", server_id, token] += 1
            self._become(server_id, ACTIVE, self.looks_until_awake)

    def suspend(self, server_id: str, token: int) -> None:
        with self._verb("suspend", server_id):
            server = self._fit(server_id, token)
            if server.status == SUSPENDED:
                return
            if server.status != ACTIVE:
                raise Refused(f"server {server_id} is {server.status}")
            self.effects["suspend", server_id, token] += 1
            self._become(server_id, SUSPENDED, 0)

    def snapshot(self, server_id: str, image: str, token: int, occasion: str = "") -> None:
        with self._verb("snapshot", server_id):
            server = self._fit(server_id, token)
            if (server_id, image, occasion) in self._imaged:
                return
            if server.status not in IMAGEABLE:
                raise Refused(f"server {server_id} is {server.status}")
            self.effects["snapshot", server_id, token] += 1
            self._imaged.add((server_id, image, occasion))
            self.images.append((server_id, image))

    def delete_server(self, server_id: str, token: int) -> None:
        with self._verb("delete_server", server_id):
            if server_id not in self._servers:
                return
            self._check_fences([server_id], token)
            self._fence([server_id], token)
            pending = self._pending.get(server_id)
            if pending is None or pending.becomes is not None:
                self.effects["delete_server", server_id, token] += 1
                self._become(server_id, None, self.looks_until_gone)

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

    def _become(self, server_id: str, status: str | None, looks: int) -> None:
        self._pending[server_id] = _Pending(looks, status)
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
            self._servers[server_id] = replace(self._servers[server_id], status=pending.becomes, busy=False)

    def _fit(self, server_id: str, token: int) -> CloudServer:
        """A server that something can be asked of."""
        server, pending = self._servers.get(server_id), self._pending.get(server_id)
        if server is None or (pending is not None and pending.becomes is None):
            raise Refused(f"there is no server {server_id}")
        self._check_fences([server_id], token)
        self._fence([server_id], token)
        return server

    def _lent(self, pool: str) -> list[str]:
        return sorted(name for name, its in self._pool_of.items() if its == pool)

    def _on(self, names: set[str]) -> list[CloudServer]:
        return [server for server in self._servers.values() if server.host in names]

    def _check_fences(self, targets: Iterable[str], token: int) -> None:
        if any(self._fences.get(target, 0) > token for target in targets):
            raise Fenced

    def _fence(self, targets: Iterable[str], token: int) -> None:
        self._fences.update(dict.fromkeys(targets, token))
