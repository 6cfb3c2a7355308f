"""`OpenStackCloud`: the methods of the cloud interface, over HTTP."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from climate.cloud import (
    FREEPOOL,
    Capacity,
    CloudFlavor,
    CloudHost,
    CloudServer,
    ExternalNetwork,
    LeasePool,
    Refused,
)
from climate.cloud.openstack import (
    blazar_filter,
    flavors,
    floating_ips,
    hosts,
    lease_servers,
    server_actions,
    servers,
    shared_capacity,
)
from climate.cloud.openstack.http import Remote
from climate.cloud.openstack.pools import aggregates, pool_moves, promised_pools
from climate.cloud.volumes import CloudStorage, CloudVolume, VolumeOrder
from climate.database.connections import Insert, Query


@dataclass(frozen=True)
class OpenStackCloud:
    """Cloud interface in which hosts are hypervisors of an OpenStack cloud, and pools are its aggregates."""

    remote: Remote

    def find_hosts(self, name: str) -> Sequence[CloudHost]:
        return hosts.find(self.remote, name)

    def ordinary_hosts(self) -> Sequence[CloudHost]:
        return hosts.others(self.remote, aggregates.read_state(self.remote).inside)

    def host_query(self, conn: Connection) -> Query | None:
        return None

    def enrol(self, host: str, token: int) -> None:
        pool_moves.enrol(self.remote, host, token)

    def withdraw(self, host: str, token: int) -> None:
        pool_moves.withdraw(self.remote, host, token)

    def promise_pool(self, pool: str, wanted: Mapping[str, str]) -> int:
        return promised_pools.promise(self.remote, pool, wanted)

    def pool_insert(self, conn: Connection, wanted: Mapping[str, Mapping[str, str]]) -> Insert | None:
        return None

    def forget_pool(self, pool: str) -> None:
        promised_pools.forget(self.remote, pool)

    def lease_pools(self) -> Mapping[str, LeasePool]:
        return promised_pools.listed(aggregates.read_state(self.remote))

    def lend(
        self, pool: str, project_id: str, hosts: Sequence[str], token: int, shared_with: Sequence[str] = ()
    ) -> None:
        projects = (project_id, *shared_with)
        marks = blazar_filter.pool_metadata(pool, projects) if self.remote.blazar_filter else {}
        pool_moves.lend(self.remote, pool, projects, hosts, token, marks)

    def close(self, pool: str, token: int) -> None:
        pool_moves.close(self.remote, pool, token)
        shared_capacity.close(self.remote, pool, token)

    def take_back(self, pool: str, hosts: Sequence[str], token: int, to: str | None = FREEPOOL) -> None:
        pool_moves.take_back(self.remote, pool, hosts, token, to)

    def place(self, host: str, to: str | None, token: int) -> None:
        pool_moves.place(self.remote, host, to, token)

    def health(self) -> Mapping[str, str | None]:
        return hosts.health(self.remote)

    def silent_hosts(self) -> frozenset[str]:
        return hosts.down_hypervisors(self.remote)

    def servers_on(self, host: str) -> Sequence[CloudServer]:
        return [servers.view(each) for each in servers.on(self.remote, [host])]

    def find_flavor(self, flavor_id: str, project_id: str) -> CloudFlavor | None:
        return flavors.find(self.remote, flavor_id, project_id)

    def grant(self, capacity: Capacity, token: int) -> None:
        shared_capacity.grant(self.remote, capacity, token)

    def revoke(self, pool: str, hosts: Sequence[str], token: int) -> None:
        shared_capacity.revoke(self.remote, pool, token)

    def find_external(self, network: str) -> ExternalNetwork | None:
        return floating_ips.find(self.remote, network)

    def lend_address(self, pool: str, project_id: str, network_id: str, address: str, token: int) -> None:
        floating_ips.lend(self.remote, pool, project_id, (network_id, address), token)

    def take_back_addresses(self, pool: str, addresses: Sequence[str], token: int) -> None:
        floating_ips.take_back(self.remote, pool, addresses, token)

    def find_storage(self, backend: str) -> CloudStorage | None:
        """Return None: volumes of Cinder cannot be reserved."""
        return None

    def ensure_volume(self, order: VolumeOrder, token: int) -> None:
        raise Refused("volumes cannot be created with CLIMATE_CLOUD=openstack: Cinder is not supported")

    def drop_volumes(self, pool: str, token: int, *, keep: bool) -> None:
        """Do nothing: there never are volumes."""

    def volumes(self, pools: Sequence[str]) -> Sequence[CloudVolume]:
        return ()

    def pools(self) -> Mapping[str, frozenset[str]]:
        return pool_moves.members(aggregates.read_state(self.remote))

    def servers_in(self, pool: str) -> Sequence[CloudServer]:
        seen = aggregates.read_state(self.remote)
        if pool in seen.grants:
            return [servers.view(each) for each in shared_capacity.used_by(self.remote, pool)]
        result = pool_moves.members(seen).get(pool, frozenset())
        there = servers.on(self.remote, sorted(result))
        return [servers.view(each) for each in there if lease_servers.is_of(seen.pools.get(pool), each)]

    def server(self, server_id: str) -> CloudServer | None:
        result = servers.find(self.remote, server_id)
        return servers.view(result) if result else None

    def sleeping(self) -> Sequence[CloudServer]:
        """Return servers that were shelved for a lease; other shelved servers belong to their users."""
        return [servers.view(each) for each in servers.asleep(self.remote)]

    def busy_hosts(self, hosts: Collection[str]) -> frozenset[str]:
        return servers.running_on(self.remote).intersection(hosts)

    def wake(self, server_id: str, token: int) -> None:
        server_actions.wake(self.remote, server_id, token)

    def suspend(self, server_id: str, token: int) -> None:
        server_actions.suspend(self.remote, server_id, token)

    def snapshot(self, server_id: str, image: str, token: int, occasion: str = "") -> None:
        server_actions.snapshot(self.remote, server_id, image, token, occasion)

    def move_server(self, server_id: str, host: str, token: int, *, alone: bool = False) -> None:
        server_actions.move(self.remote, server_id, host, token, alone=alone)

    def evacuate_server(self, server_id: str, host: str, token: int) -> None:
        server_actions.evacuate(self.remote, server_id, host, token)

    def delete_server(self, server_id: str, token: int) -> None:
        server_actions.delete(self.remote, server_id, token)
