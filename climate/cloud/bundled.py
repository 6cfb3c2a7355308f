"""The port over the bundled cloud: direct calls, work rung for."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from climate.cloud import CloudError, CloudHost, CloudServer, Fenced, NotYet, Refused
from climate.compute import asking, errors, lending
from climate.compute.context import Compute
from climate.compute.host import DEFAULT_ZONE, Node
from climate.compute.server import DELETE, SUSPEND, WAKE, Server
from climate.compute.store.failures import DATABASE_ERRORS

_OUTCOMES: tuple[tuple[type[errors.ComputeError], type[Exception]], ...] = (
    (errors.StaleToken, Fenced),
    (errors.Busy, NotYet),
    (errors.NotFound, Refused),
    (errors.Conflict, Refused),
    (errors.BadRequest, Refused),
)


@contextmanager
def _port() -> Iterator[None]:
    """Errors of the bundled cloud in the words of the port."""
    try:
        yield
    except errors.ComputeError as error:
        raised = next((theirs for ours, theirs in _OUTCOMES if isinstance(error, ours)), CloudError)
        raise raised(str(error)) from error
    except DATABASE_ERRORS as error:
        raise CloudError(f"the cloud's database: {type(error).__name__}") from error


@dataclass(frozen=True)
class BundledCloud:
    """Hosts are the nodes of the bundled cloud, pools its aggregates."""

    compute: Compute

    def find_hosts(self, name: str) -> Sequence[CloudHost]:
        with _port():
            return [_host(node) for node in lending.nodes(self.compute, name)]

    def enrol(self, host: str) -> None:
        with _port():
            lending.enrol(self.compute, host)

    def withdraw(self, host: str) -> None:
        with _port():
            lending.withdraw(self.compute, host)

    def lend(self, pool: str, project_id: str, hosts: Sequence[str], token: int) -> None:
        with _port():
            lending.lend(self.compute, pool, project_id, hosts, token)

    def close(self, pool: str, token: int) -> None:
        with _port():
            lending.close(self.compute, pool, token)

    def take_back(self, pool: str, hosts: Sequence[str], token: int) -> None:
        with _port():
            lending.take_back(self.compute, pool, hosts, token)

    def pools(self) -> Mapping[str, frozenset[str]]:
        with _port():
            return lending.pools(self.compute)

    def servers_in(self, pool: str) -> Sequence[CloudServer]:
        with _port():
            return [_server(server) for server in lending.servers_in(self.compute, pool)]

    def server(self, server_id: str) -> CloudServer | None:
        with _port():
            found = self._find(server_id)
            return _server(found) if found else None

    def sleeping(self) -> Sequence[CloudServer]:
        with _port():
            return [_server(server) for server in lending.sleeping(self.compute)]

    def wake(self, server_id: str, token: int) -> None:
        with _port():
            self._ask(server_id, WAKE, token)

    def suspend(self, server_id: str, token: int) -> None:
        with _port():
            self._ask(server_id, SUSPEND, token)

    def snapshot(self, server_id: str, image: str, token: int, occasion: str = "") -> None:
        with _port():
            made = asking.snapshot(self.compute, server_id, image, once=asking.Once(token, occasion))
            if not asking.is_made(self.compute, made):
                raise NotYet(f"server {server_id} is still being imaged")

    def delete_server(self, server_id: str, token: int) -> None:
        with _port():
            if self._find(server_id) is not None:
                self._ask(server_id, DELETE, token)

    def _ask(self, server_id: str, task: str, token: int) -> None:
        asking.ask(self.compute, server_id, task, token=token)

    def _find(self, server_id: str) -> Server | None:
        try:
            return asking.get(self.compute, server_id)
        except errors.NotFound:
            return None


def _host(node: Node) -> CloudHost:
    return CloudHost(
        name=node.name,
        service_name=node.service_host,
        vcpus=node.vcpus,
        memory_mb=node.memory_mb,
        local_gb=node.local_gb,
        cpu_info=node.cpu_info,
        hypervisor_type=node.hypervisor_type,
        hypervisor_version=node.hypervisor_version,
        availability_zone=node.zone or DEFAULT_ZONE,
        servers=node.servers,
    )


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
