"""Operations on ports: those that projects create, and the interfaces of servers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import Conflict, NotFound
from climate.compute.models.security_group import default_id
from climate.compute.models.server import Server
from climate.compute.network import ports
from climate.compute.network.operations import security_groups
from climate.compute.network.ports import FixedIp, NewPort
from climate.compute.servers.actions import By
from climate.compute.servers.interfaces import interfaces
from climate.compute.servers.interfaces.interfaces import Requester
from climate.compute.store.networks import ports as rows
from climate.compute.store.networks.ports import Port
from climate.database.connections import reading

QUEUED = "Ports cannot be created while network hosts allocate the addresses (CLIMATE_NETWORK_ALLOCATION)"


@dataclass(frozen=True, slots=True)
class ChangedPort:
    """Changes of a port."""

    fixed_ips: Sequence[FixedIp] | None = None
    """None: no change."""
    security_groups: Sequence[str] | None = None
    properties: Mapping[str, object] = field(default_factory=dict)
    """Other columns to change, by name."""

    @property
    def is_filtering(self) -> bool:
        """Return whether the rules of the interface change."""
        return self.security_groups is not None or "admin_up" in self.properties


def listed(
    compute: Compute, project_id: str | None, *, port_id: str | None = None, server_id: str | None = None
) -> list[Port]:
    """Return the ports of a project, or of all if None, filtered by port or server."""
    with reading(compute.engine) as conn:
        return rows.listed(conn, {"port_id": port_id, "server_id": server_id, "project_id": project_id})


def get(compute: Compute, port_id: str, project_id: str | None) -> Port:
    """Return a port. Raise NotFound if it is unknown or another project's; project None: any project's."""
    return _one(listed(compute, project_id, port_id=port_id), port_id)


def create(compute: Compute, wanted: Sequence[NewPort], seen_by: str | None) -> list[Port]:
    """Create ports, all or none. Raise NotFound for a security group, and the errors of `ports.create`."""
    if compute.network_queue is not None:
        raise Conflict(QUEUED)
    with compute.engine.begin() as conn:
        for port in wanted:
            _check_groups(conn, port.project_id, port.security_groups)
        made = [ports.create(conn, port, seen_by, compute.now(conn)) for port in wanted]
        return [_one(rows.listed(conn, {"port_id": port_id}), port_id) for port_id in made]


def change(compute: Compute, port_id: str, who: tuple[str | None, By], port: ChangedPort) -> Port:
    """Change a port; `who`: the project (None: any) and the requester. Return the port.

    A change of the addresses of a server is a task of it. Raise NotFound, Conflict, Busy, and the errors of
    `ports.readdress`.
    """
    project_id, by = who
    there = get(compute, port_id, project_id)
    if port.fixed_ips is not None and compute.network_queue is not None:
        raise Conflict(QUEUED)

    def apply(conn: Connection, server: Server | None) -> None:
        _apply(compute, conn, _still(conn, there, server), port)

    if there.server_id is not None and port.fixed_ips is not None:
        interfaces.change(compute, Requester(there.server_id, project_id, by), apply, counted=there.project_id)
    else:
        with compute.engine.begin() as conn:
            apply(conn, None)
    if port.is_filtering and there.server_id is not None:
        compute.cast(there.host, there.server_id)
        groups = {*(there.security_groups or ()), *(port.security_groups or ())}
        security_groups.wake_peers(compute, groups)
    return get(compute, port_id, project_id)


def _apply(compute: Compute, conn: Connection, port: Port, wanted: ChangedPort) -> None:
    changes = dict(wanted.properties)
    is_moved = {key: changes[key] for key in ("device_id", "device_owner") if key in changes}
    if port.server_id is not None and is_moved:
        raise Conflict(f"Port {port.port_id} is an interface of server {port.server_id}, which is its device")
    if wanted.security_groups is not None:
        _check_groups(conn, port.project_id, wanted.security_groups)
        changes["security_groups"] = list(wanted.security_groups)
    now = compute.now(conn)
    rows.change(conn, port.port_id, changes, now)
    if wanted.fixed_ips is not None:
        ports.readdress(conn, port, wanted.fixed_ips, now)


def delete(compute: Compute, port_id: str, who: tuple[str | None, By]) -> None:
    """Delete a port; its server loses the interface. Raise NotFound, Conflict, Busy."""
    project_id, by = who
    there = get(compute, port_id, project_id)
    if there.server_id is not None and not there.kept:
        interfaces.unplug(compute, Requester(there.server_id, project_id, by), port_id)
        return

    def drop(conn: Connection, server: Server | None) -> None:
        ports.delete(conn, _still(conn, there, server), compute.now(conn))

    if there.server_id is not None:
        interfaces.change(compute, Requester(there.server_id, project_id, by), drop)
    else:
        with compute.engine.begin() as conn:
            drop(conn, None)


def _still(conn: Connection, there: Port, server: Server | None) -> Port:
    """Return the port, locked, if it is as it was read. Raise NotFound, Conflict."""
    port = rows.lock(conn, there.port_id)
    if port is None:
        raise NotFound(f"Port {there.port_id} could not be found.")
    if port.server_id != there.server_id:
        raise Conflict(f"Port {port.port_id} was attached or detached meanwhile: try again")
    return port


def _one(found: Sequence[Port], port_id: str) -> Port:
    if not found:
        raise NotFound(f"Port {port_id} could not be found.")
    return found[0]


def _check_groups(conn: Connection, project_id: str, groups: Sequence[str]) -> None:
    """Raise NotFound for a security group that the project does not have; the groups are kept until the end."""
    known = {default_id(project_id), *security_groups.lock_shared(conn, project_id, groups)}
    unknown = next((group for group in groups if group not in known), None)
    if unknown is not None:
        raise NotFound(f"Security group {unknown} does not exist")
