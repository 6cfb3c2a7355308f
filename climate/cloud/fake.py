"""In-memory cloud that can simulate the failures of a real one. Ships with the engine, for tests of plugins."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

from sqlalchemy import Connection

from climate.cloud import (
    ACTIVE,
    FREEPOOL,
    IMAGEABLE,
    KEPT,
    RESERVED,
    RESIZED,
    RUNNING,
    SHUTOFF,
    SUSPENDED,
    Capacity,
    CloudFlavor,
    CloudHost,
    CloudServer,
    ExternalNetwork,
    LeasePool,
    NotYet,
    Refused,
)
from climate.cloud.fake_state import FakeAddress, InMemoryCloud
from climate.cloud.volumes import CloudStorage, CloudVolume, VolumeOrder
from climate.database.connections import Insert, Query


def host(name: str, *, vcpus: int = 8, memory_mb: int = 32768, local_gb: int = 200) -> CloudHost:
    """Return an ordinary host, for tests that do not depend on its properties."""
    return CloudHost(name, f"service-of-{name}", vcpus, memory_mb, local_gb, "", "fake", 1, "nova", 0)


@dataclass
class FakeCloud(InMemoryCloud):
    """In-memory implementation of the cloud interface."""

    def find_hosts(self, name: str) -> Sequence[CloudHost]:
        with self._verb("find_hosts", name):
            known = self.hosts.get(name)
            result = known or next((host for host in self.hosts.values() if name in host.ids), None)
            return [replace(result, servers=len(self._on({result.name})))] if result else []

    def ordinary_hosts(self) -> Sequence[CloudHost]:
        with self._verb("ordinary_hosts", ""):
            names = sorted(set(self.hosts) - set(self._pool_of))
            return [replace(self.hosts[name], servers=len(self._on({name}))) for name in names]

    def host_query(self, conn: Connection) -> Query | None:
        return None

    def enrol(self, host: str, token: int) -> None:
        with self._verb("enrol", host):
            if host not in self.hosts:
                raise Refused(f"there is no host {host}")
            self._check_fences([host], token)
            pool = self._pool_of.get(host)
            if pool not in (None, FREEPOOL):
                raise Refused(f"host {host} is lent to {pool}")
            if pool is None:
                if self._on({host}):
                    raise Refused(f"host {host} has servers")
                self._pool_of[host] = FREEPOOL
                self.effects["enrol", host, token] += 1
            self._fence([host], token)

    def withdraw(self, host: str, token: int) -> None:
        with self._verb("withdraw", host):
            self._check_fences([host], token)
            if self._pool_of.get(host, FREEPOOL) != FREEPOOL:
                raise Refused(f"host {host} is lent")
            if self._pool_of.pop(host, None):
                self.effects["withdraw", host, token] += 1
            self._fence([host], token)

    def promise_pool(self, pool: str, wanted: Mapping[str, str]) -> int:
        with self._verb("promise_pool", pool):
            if pool not in self._owners:
                self._promised[pool] = dict(wanted)
            return self._number(pool)

    def pool_insert(self, conn: Connection, wanted: Mapping[str, Mapping[str, str]]) -> Insert | None:
        return None

    def forget_pool(self, pool: str) -> None:
        with self._verb("forget_pool", pool):
            if self._promised.pop(pool, None) is not None:
                self._numbers.pop(pool)

    def lease_pools(self) -> Mapping[str, LeasePool]:
        with self._verb("lease_pools", ""):
            names = [*self._promised, *self._owners]
            return {name: LeasePool(self._number(name), self._promised.get(name)) for name in names}

    def lend(
        self, pool: str, project_id: str, hosts: Sequence[str], token: int, shared_with: Sequence[str] = ()
    ) -> None:
        with self._verb("lend", pool):
            self._check_fences([pool, *hosts], token)
            for name in hosts:
                if self._pool_of.get(name) not in (FREEPOOL, pool):
                    raise (NotYet if name in self.hosts else Refused)(f"host {name} is not in the reservation pool")
            moved = [name for name in hosts if self._pool_of[name] != pool]
            if self._on(set(moved)):
                raise NotYet("servers of what is granted are still on the hosts")
            if moved or pool not in self._owners:
                self.effects["lend", pool, token] += 1
            self._owners[pool] = project_id
            self._shared[pool] = tuple(shared_with)
            self._promised.pop(pool, None)
            self._closed.discard(pool)
            self._pool_of.update(dict.fromkeys(moved, pool))
            self._fence([pool, *hosts], token)

    def close(self, pool: str, token: int) -> None:
        with self._verb("close", pool):
            names = self._lent(pool)
            self._check_fences([pool, *names], token)
            if pool not in self._owners and pool not in self.granted:
                return
            if pool not in self._closed:
                self.effects["close", pool, token] += 1
            self._closed.add(pool)
            self._fence([pool, *names], token)

    def take_back(self, pool: str, hosts: Sequence[str], token: int, to: str | None = FREEPOOL) -> None:
        with self._verb("take_back", pool):
            names = self._lent(pool)
            free = [name for name in hosts if self._pool_of.get(name) == FREEPOOL]
            self._check_fences([pool, *names, *free], token)
            if pool not in self._owners:
                self._promised.pop(pool, None)
                self._numbers.pop(pool, None)
                self._fence(free, token)
                return
            left = self._on(set(names)) if to == FREEPOOL else []
            if left:
                raise NotYet(f"{len(left)} servers are still on the hosts of {pool}")
            for name in names:
                self._move(name, to)
            self._fence([*names, *free], token)
            self._owners.pop(pool)
            self._shared.pop(pool, None)
            self._numbers.pop(pool, None)
            self._closed.discard(pool)
            self._fences.pop(pool, None)
            self.effects["take_back", pool, token] += 1

    def place(self, host: str, to: str | None, token: int) -> None:
        with self._verb("place", host):
            if host not in self.hosts:
                raise Refused(f"there is no host {host}")
            if to is not None and to not in KEPT and to not in self._owners:
                raise Refused(f"there is no pool {to}")
            self._check_fences([host], token)
            left = [server for server in self._on({host}) if not self._has_slot(server)]
            if to == FREEPOOL and self._pool_of.get(host) != FREEPOOL and left:
                raise NotYet(f"servers are still on {host}")
            if self._pool_of.get(host) != to:
                self.effects["place", host, token] += 1
            self._move(host, to)
            self._fence([host], token)

    def health(self) -> Mapping[str, str | None]:
        with self._verb("health", ""):
            return {name: self.unwell.get(name) for name in self.hosts}

    def silent_hosts(self) -> frozenset[str]:
        with self._verb("silent_hosts", ""):
            return frozenset(self.unwell)

    def servers_on(self, host: str) -> Sequence[CloudServer]:
        with self._verb("servers_on", host):
            for seen in self._on({host}):
                self._advance_pending(seen.id)
            return self._on({host})

    def find_flavor(self, flavor_id: str, project_id: str) -> CloudFlavor | None:
        with self._verb("find_flavor", flavor_id):
            return self.flavors.get(flavor_id)

    def grant(self, capacity: Capacity, token: int) -> None:
        with self._verb("grant", capacity.pool):
            self._check_fences([capacity.pool, *capacity.slots], token)
            misplaced = [name for name in capacity.slots if self._pool_of.get(name) != FREEPOOL]
            if misplaced:
                raise (NotYet if misplaced[0] in self.hosts else Refused)(
                    f"{misplaced[0]} is not in the reservation pool"
                )
            if self.granted.get(capacity.pool) != capacity:
                self.effects["grant", capacity.pool, token] += 1
            self.granted[capacity.pool] = capacity
            self._closed.discard(capacity.pool)
            self._fence([capacity.pool], token)

    def revoke(self, pool: str, hosts: Sequence[str], token: int) -> None:
        with self._verb("revoke", pool):
            self._check_fences([pool], token)
            left = [server for server in self._servers.values() if self._uses.get(server.id) == pool]
            if left:
                raise NotYet(f"{len(left)} servers still use {pool}")
            if self.granted.pop(pool, None):
                self.effects["revoke", pool, token] += 1
            self._closed.discard(pool)
            self._fence([pool], token)

    def find_external(self, network: str) -> ExternalNetwork | None:
        with self._verb("find_external", network):
            result = (known for known in self.external.values() if network in (known.id, known.name))
            return next(result, None)

    def lend_address(self, pool: str, project_id: str, network_id: str, address: str, token: int) -> None:
        with self._verb("lend_address", address):
            self._check_fences([f"addresses of {pool}"], token)
            if network_id not in self.external:
                raise Refused(f"there is no network {network_id}")
            there = self.addresses.get(address)
            if there and there.pool is None:
                raise Refused(f"the address {address} is in use")
            if there and there.pool != pool:
                raise NotYet(f"the address {address} belongs to the reservation {there.pool}")
            if there is None:
                self.effects["lend_address", f"{address} to {pool}", token] += 1
                self.addresses[address] = FakeAddress(project_id, network_id, pool)
            self._fence([f"addresses of {pool}"], token)

    def take_back_addresses(self, pool: str, addresses: Sequence[str], token: int) -> None:
        with self._verb("take_back_addresses", pool):
            self._check_fences([f"addresses of {pool}"], token)
            marked = {address for address, known in self.addresses.items() if known.pool == pool}
            bare = {address for address in addresses if address in self.addresses and not self.addresses[address].pool}
            lent = marked | bare
            if lent:
                self.effects["take_back_addresses", pool, token] += 1
            for address in lent:
                del self.addresses[address]
            self._fence([f"addresses of {pool}"], token)

    def pools(self) -> Mapping[str, frozenset[str]]:
        with self._verb("pools", ""):
            names = {FREEPOOL, *self._owners, *self._pool_of.values()}
            return {pool: frozenset(name for name, its in self._pool_of.items() if its == pool) for pool in names}

    def servers_in(self, pool: str) -> Sequence[CloudServer]:
        with self._verb("servers_in", pool):
            for seen in self._in(pool):
                self._advance_pending(seen.id)
            return self._in(pool)

    def server(self, server_id: str) -> CloudServer | None:
        with self._verb("server", server_id):
            self._advance_pending(server_id)
            return self._servers.get(server_id)

    def sleeping(self) -> Sequence[CloudServer]:
        with self._verb("sleeping", ""):
            return [server for server in self._servers.values() if server.status == RESERVED]

    def busy_hosts(self, hosts: Collection[str]) -> frozenset[str]:
        with self._verb("busy_hosts", ""):
            running = [server.host for server in self._servers.values() if server.status in RUNNING]
            return frozenset(host for host in hosts if host in running)

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
            if server.status == RESIZED:
                self._become(server_id, ACTIVE, 0)
                raise NotYet(f"server {server_id} keeps its new size")
            if server.status != ACTIVE:
                raise Refused(f"server {server_id} is {server.status}")
            self.effects["suspend", server_id, token] += 1
            self._become(server_id, SUSPENDED, 0)

    def find_storage(self, backend: str) -> CloudStorage | None:
        with self._verb("find_storage", backend):
            return self.storage.get(backend)

    def ensure_volume(self, order: VolumeOrder, token: int) -> None:
        name = f"{order.pool} {order.number}"
        with self._verb("ensure_volume", name):
            self._check_fences([f"volumes of {order.pool}"], token)
            if order.backend not in self.storage:
                raise Refused(f"there is no backend {order.backend}")
            self._fence([f"volumes of {order.pool}"], token)
            there = self.made_volumes.get((order.pool, order.number))
            if there is None or there.size_gb < order.size_gb:
                self.effects["ensure_volume", f"{name} {order.size_gb}", token] += 1
                made = CloudVolume(
                    there.id if there else str(uuid4()),
                    order.pool,
                    order.number,
                    order.project_id,
                    order.backend,
                    order.size_gb,
                )
                self.made_volumes[order.pool, order.number] = made

    def drop_volumes(self, pool: str, token: int, *, keep: bool) -> None:
        with self._verb("drop_volumes", pool):
            self._check_fences([f"volumes of {pool}"], token)
            self._fence([f"volumes of {pool}"], token)
            of_pool = [key for key, volume in self.made_volumes.items() if volume.pool == pool and not volume.kept]
            if of_pool:
                self.effects["drop_volumes", pool, token] += 1
            for key in of_pool:
                volume = self.made_volumes.pop(key)
                if keep:
                    self.made_volumes[key] = replace(volume, kept=True)

    def volumes(self, pools: Sequence[str]) -> Sequence[CloudVolume]:
        with self._verb("volumes", ""):
            return [volume for volume in self.made_volumes.values() if volume.pool in pools]

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

    def move_server(self, server_id: str, host: str, token: int, *, alone: bool = False) -> None:
        with self._verb("move_server", server_id):
            others = [one for one in self._on({host}) if one.id != server_id and self._is_moving(one.id)]
            if alone and others:
                raise NotYet(f"server {others[0].id} is still migrating from {host}")
            self._remove_server(server_id, host, token, "move_server")

    def evacuate_server(self, server_id: str, host: str, token: int) -> None:
        with self._verb("evacuate_server", server_id):
            if host not in self.unwell:
                raise Refused(f"host {host} answers")
            self._remove_server(server_id, host, token, "evacuate_server")

    def _is_moving(self, server_id: str) -> bool:
        pending = self._pending.get(server_id)
        return pending is not None and pending.host is not None

    def _remove_server(self, server_id: str, host: str, token: int, verb: str) -> None:
        server, pending = self._servers.get(server_id), self._pending.get(server_id)
        if server is None or server.host != host:
            return
        self._check_fences([server_id], token)
        self._fence([server_id], token)
        if pending is not None and pending.host is not None:
            return
        if pending is not None:
            raise NotYet(f"server {server_id} is busy")
        free = [name for name in sorted(self.hosts) if name != host and self._takes(server, name)]
        if server.status not in (ACTIVE, SHUTOFF) or not free:
            raise Refused(f"server {server_id} is {server.status}" if free else "No valid host was found")
        self.effects[verb, server_id, token] += 1
        self._become(server_id, server.status, self.looks_until_moved, free[0])

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
