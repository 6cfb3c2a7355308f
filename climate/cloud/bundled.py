"""Cloud interface over the bundled cloud: direct calls, and wake-ups for asynchronous work."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass

from sqlalchemy import Connection

from climate.cloud import (
    FREEPOOL,
    Capacity,
    CloudError,
    CloudFlavor,
    CloudHost,
    CloudServer,
    ExternalNetwork,
    ExternalSubnet,
    Fenced,
    InUse,
    LeasePool,
    Loan,
    NotYet,
    Refused,
    Return,
    Trouble,
    provided,
)
from climate.cloud.volumes import CloudStorage, CloudVolume, VolumeOrder
from climate.compute import errors, volumes
from climate.compute.context import Compute
from climate.compute.migrations import host_drain
from climate.compute.models.flavor import Flavor
from climate.compute.models.node import Node
from climate.compute.models.server import DELETE, SUSPEND, VERIFY_RESIZE, WAKE, Server
from climate.compute.network import reserved_floating_ips
from climate.compute.nodes import health
from climate.compute.placement.server_groups import AFFINITY, ANTI_AFFINITY
from climate.compute.projects import flavors
from climate.compute.reservations import batch_lend, batch_take_back, shared_capacity
from climate.compute.reservations import pools as lending
from climate.compute.reservations.shared_capacity import Grant
from climate.compute.servers import actions, resize, volume_attachments
from climate.compute.store.db_errors import DATABASE_ERRORS
from climate.database.connections import Insert, Query

_OUTCOMES: tuple[tuple[type[errors.ComputeError], type[Trouble]], ...] = (
    (errors.Waits, InUse),
    (errors.StaleToken, Fenced),
    (errors.Busy, NotYet),
    (errors.NotFound, Refused),
    (errors.Conflict, Refused),
    (errors.BadRequest, Refused),
)


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Translate errors of the bundled cloud into those of the cloud interface."""
    try:
        yield
    except errors.ComputeError as error:
        raise _translated(error) from error
    except DATABASE_ERRORS as error:
        raise CloudError(f"the cloud's database: {type(error).__name__}") from error


def _translated(error: errors.ComputeError) -> Trouble:
    made = next((theirs for ours, theirs in _OUTCOMES if isinstance(error, ours)), CloudError)
    return made(str(error))


@dataclass(frozen=True)
class BundledCloud:
    """Cloud interface in which hosts are nodes of the bundled cloud, and pools are its aggregates."""

    compute: Compute

    def find_hosts(self, name: str) -> Sequence[CloudHost]:
        with _translated_errors():
            zone = self.compute.rules.options.default_zone
            return [_host(node, zone) for node in lending.called(self.compute, name)]

    def ordinary_hosts(self) -> Sequence[CloudHost]:
        with _translated_errors():
            zone = self.compute.rules.options.default_zone
            return [_host(node, zone) for node in lending.ordinary_nodes(self.compute)]

    def host_query(self, conn: Connection) -> Query | None:
        if conn.engine.url != self.compute.engine.url:
            return None
        return health.query(self.compute, conn)

    def enrol(self, host: str, token: int) -> None:
        with _translated_errors():
            lending.enrol(self.compute, host, token)

    def withdraw(self, host: str, token: int) -> None:
        with _translated_errors():
            lending.withdraw(self.compute, host, token)

    def promise_pool(self, pool: str, wanted: Mapping[str, str]) -> int:
        with _translated_errors():
            return lending.promise(self.compute, pool, wanted)

    def pool_insert(self, conn: Connection, wanted: Mapping[str, Mapping[str, str]]) -> Insert | None:
        if conn.engine.url != self.compute.engine.url:
            return None
        return Insert(*lending.promising(wanted))

    def forget_pool(self, pool: str) -> None:
        with _translated_errors():
            lending.forget(self.compute, pool)

    def lease_pools(self) -> Mapping[str, LeasePool]:
        with _translated_errors():
            return {name: LeasePool(*pool) for name, pool in lending.of_leases(self.compute).items()}

    def lend(
        self, pool: str, project_id: str, hosts: Sequence[str], token: int, shared_with: Sequence[str] = ()
    ) -> None:
        with _translated_errors():
            lending.lend(self.compute, pool, project_id, hosts, token, shared_with)

    def lend_together(self, loans: Sequence[Loan]) -> Sequence[Trouble | None]:
        with _translated_errors():
            wanted = [
                batch_lend.Loan(loan.pool, loan.project_id, loan.hosts, loan.token, loan.shared_with) for loan in loans
            ]
            return [_translated(e) if e else None for e in batch_lend.lend(self.compute, wanted)]

    def close(self, pool: str, token: int) -> None:
        with _translated_errors():
            lending.close(self.compute, pool, token)
            shared_capacity.close(self.compute, pool, token)

    def take_back(self, pool: str, hosts: Sequence[str], token: int, to: str | None = FREEPOOL) -> None:
        with _translated_errors():
            lending.take_back(self.compute, pool, hosts, token, to)

    def take_back_together(self, returns: Sequence[Return]) -> Sequence[Trouble | None]:
        with _translated_errors():
            wanted = [batch_take_back.Return(one.pool, one.hosts, one.token, one.to) for one in returns]
            return [_translated(e) if e else None for e in batch_take_back.take_back(self.compute, wanted)]

    def place(self, host: str, to: str | None, token: int) -> None:
        with _translated_errors():
            lending.place(self.compute, host, to, token)

    def health(self) -> Mapping[str, str | None]:
        with _translated_errors():
            return health.of_nodes(self.compute)

    def silent_hosts(self) -> frozenset[str]:
        with _translated_errors():
            return health.silent(self.compute)

    def servers_on(self, host: str) -> Sequence[CloudServer]:
        with _translated_errors():
            return [_server(server) for server in lending.servers_on(self.compute, host)]

    def find_flavor(self, flavor_id: str, project_id: str) -> CloudFlavor | None:
        with _translated_errors():
            flavor = flavors.find(self.compute, flavor_id, project_id)
            return _flavor(flavor) if flavor else None

    def grant(self, capacity: Capacity, token: int) -> None:
        with _translated_errors():
            shared_capacity.grant(self.compute, _grant(capacity), token)

    def revoke(self, pool: str, hosts: Sequence[str], token: int) -> None:
        with _translated_errors():
            shared_capacity.revoke(self.compute, pool, token)

    def find_external(self, network: str) -> ExternalNetwork | None:
        with _translated_errors():
            pool = reserved_floating_ips.find(self.compute, network)
            if pool is None:
                return None
            there, ranges = pool
            subnet = ExternalSubnet(there.subnet_id, there.cidr, there.gateway, tuple(ranges))
            return ExternalNetwork(there.id, there.name, (subnet,))

    def lend_address(self, pool: str, project_id: str, network_id: str, address: str, token: int) -> None:
        with _translated_errors():
            reserved_floating_ips.lend(self.compute, pool, project_id, (network_id, address), token)

    def take_back_addresses(self, pool: str, addresses: Sequence[str], token: int) -> None:
        with _translated_errors():
            reserved_floating_ips.take_back(self.compute, pool, token)

    def find_storage(self, backend: str) -> CloudStorage | None:
        with _translated_errors():
            capacity = volumes.reservable_gb(self.compute, backend)
            return None if capacity is None else CloudStorage(backend, capacity)

    def ensure_volume(self, order: VolumeOrder, token: int) -> None:
        with _translated_errors():
            volumes.ensure(self.compute, volumes.ReservedVolume(**asdict(order)), token)

    def drop_volumes(self, pool: str, token: int, *, keep: bool) -> None:
        with _translated_errors():
            volume_attachments.drop(self.compute, pool, token, keep=keep)

    def volumes(self, pools: Sequence[str]) -> Sequence[CloudVolume]:
        with _translated_errors():
            rows = volumes.of_pools(self.compute, pools)
        return [
            CloudVolume(row.id, row.pool, row.number, row.project_id, row.backend, row.size_gb, row.kept)
            for row in rows
            if row.pool is not None and row.number is not None
        ]

    def pools(self) -> Mapping[str, frozenset[str]]:
        with _translated_errors():
            return lending.pools(self.compute, own=True)

    def servers_in(self, pool: str) -> Sequence[CloudServer]:
        with _translated_errors():
            return [_server(server) for server in lending.servers_in(self.compute, pool)]

    def server(self, server_id: str) -> CloudServer | None:
        with _translated_errors():
            server = self._find(server_id)
            return _server(server) if server else None

    def sleeping(self) -> Sequence[CloudServer]:
        with _translated_errors():
            return [_server(server) for server in lending.sleeping(self.compute)]

    def busy_hosts(self, hosts: Collection[str]) -> frozenset[str]:
        with _translated_errors():
            return lending.busy_nodes(self.compute, hosts)

    def wake(self, server_id: str, token: int) -> None:
        with _translated_errors():
            self._request_task(server_id, WAKE, token)

    def suspend(self, server_id: str, token: int) -> None:
        with _translated_errors():
            server = self._find(server_id)
            if server is not None and server.status == VERIFY_RESIZE and not server.busy:
                actions.fence(self.compute, server_id, token)
                resize.confirm(self.compute, server_id)
                raise NotYet(f"server {server_id} keeps its new size")
            self._request_task(server_id, SUSPEND, token)

    def snapshot(self, server_id: str, image: str, token: int, occasion: str = "") -> None:
        with _translated_errors():
            made = actions.snapshot(self.compute, server_id, image, once=actions.IdempotentAction(token, occasion))
            if not actions.is_made(self.compute, made):
                raise NotYet(f"server {server_id} is still being saved as an image")

    def move_server(self, server_id: str, host: str, token: int, *, alone: bool = False) -> None:
        with _translated_errors(), suppress(errors.NotFound):
            host_drain.move(self.compute, server_id, host, token, alone=alone)

    def evacuate_server(self, server_id: str, host: str, token: int) -> None:
        with _translated_errors(), suppress(errors.NotFound):
            host_drain.evacuate(self.compute, server_id, host, token)

    def delete_server(self, server_id: str, token: int) -> None:
        # A server that is deleted meanwhile counts as deleted.
        with _translated_errors(), suppress(errors.NotFound):
            self._request_task(server_id, DELETE, token)

    def _request_task(self, server_id: str, task: str, token: int) -> None:
        actions.request_task(self.compute, server_id, task, token=token)

    def _find(self, server_id: str) -> Server | None:
        try:
            return actions.get(self.compute, server_id)
        except errors.NotFound:
            return None


def _host(node: Node, default_zone: str) -> CloudHost:
    return CloudHost(
        name=node.name,
        service_name=node.service_host,
        vcpus=node.vcpus,
        memory_mb=node.memory_mb,
        local_gb=node.local_gb,
        cpu_info=node.cpu_info,
        hypervisor_type=node.hypervisor_type,
        hypervisor_version=node.hypervisor_version,
        availability_zone=node.zone or default_zone,
        servers=node.servers,
        ids=(str(node.id), node.uuid),
        capabilities=provided(_list(node.stats.get("traits")), _object(node.stats.get("resources"))),
    )


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _grant(capacity: Capacity) -> Grant:
    return Grant(
        pool=capacity.pool,
        project_id=capacity.project_id,
        vcpus=capacity.vcpus,
        memory_mb=capacity.memory_mb,
        disk_gb=capacity.disk_gb,
        slots=capacity.slots,
        group_id=capacity.group_id,
        policy={True: AFFINITY, False: ANTI_AFFINITY, None: None}[capacity.affinity],
        extra_specs=capacity.extra_specs,
        shared_with=capacity.shared_with,
    )


def _flavor(flavor: Flavor) -> CloudFlavor:
    gigabytes = flavor.disk_gb + flavor.ephemeral_gb
    return CloudFlavor(flavor.id, flavor.name, flavor.vcpus, flavor.ram_mb, gigabytes, flavor.extra_specs)


def _server(server: Server) -> CloudServer:
    return CloudServer(
        id=server.id,
        name=server.name,
        project_id=server.project_id,
        status=server.status,
        host=server.node,
        busy=server.busy,
        fault=str(server.fault["message"]) if server.fault else None,
        created_at=server.created_at,
    )
