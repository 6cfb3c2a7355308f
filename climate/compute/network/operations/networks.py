"""Operations on networks: list, create, delete, associate with projects."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import Conflict, Forbidden
from climate.compute.network import floating_ips, networks, networks_without_subnet, project_networks
from climate.compute.network.creation_request import CreationRequest
from climate.compute.network.models import Network
from climate.compute.network.networks_without_subnet import NetworkFields
from climate.compute.store.networks import floating_pools, ports
from climate.compute.store.networks import networks as rows
from climate.compute.store.networks import networks_without_subnet as outline_rows
from climate.compute.store.networks.floating_pools import PoolRow
from climate.compute.store.networks.networks_without_subnet import Outline
from climate.database.connections import reading

OF_ADMINISTRATORS = "Only administrators change and delete networks that the project did not create."


@dataclass(frozen=True, slots=True)
class Networks:
    """Networks of servers, pools of floating addresses, and networks without a range yet."""

    inside: Sequence[Network]
    pools: Sequence[PoolRow]
    outlines: Sequence[Outline]


def of_servers(compute: Compute, project_id: str | None) -> list[Network]:
    """Return the networks of servers that a project may use; None: all."""
    with reading(compute.engine) as conn:
        return rows.listed(conn, project_id)


def listed(compute: Compute, project_id: str | None) -> Networks:
    """Return all networks that a project sees; None: all."""
    with reading(compute.engine) as conn:
        inside, pools = rows.listed(conn, project_id), floating_pools.pools(conn)
        outlines = outline_rows.listed(conn)
        return Networks(inside, pools, [outline for outline in outlines if outline.is_seen_by(project_id)])


def create(compute: Compute, request: CreationRequest, manager: str | None) -> list[Network]:
    """Create networks of servers, all or none. Raises as `networks.create` does."""
    with compute.engine.begin() as conn:
        return networks.create(conn, compute.network, request, manager)


def create_outlines(compute: Compute, fields: Sequence[NetworkFields]) -> list[Outline]:
    """Create networks without a range, all or none. Raises as `networks_without_subnet.draw` does."""
    with compute.engine.begin() as conn:
        return [networks_without_subnet.draw(conn, field) for field in fields]


def create_for_project(compute: Compute, labels: Sequence[str], project_id: str) -> list[Outline]:
    """Create networks of a project without a subnet, all or none. Raises as `project_networks.create` does."""
    with compute.engine.begin() as conn:
        return [project_networks.create(conn, compute.network, label, project_id) for label in labels]


def rename(compute: Compute, network_id: str, project_id: str | None, label: str) -> None:
    """Change the name of a network that a project created; `project_id` None: of any project.

    Raise NotFound, Forbidden for another project; Conflict for other networks, whose properties are fixed.
    """
    with compute.engine.begin() as conn:
        network = _by_project(conn, network_id, project_id)
        if network is None:
            raise Conflict(f"Network {network_id} cannot be changed: delete it, and create another")
        if isinstance(network, Outline):
            outline_rows.change(conn, network_id, {"label": label})
        else:
            rows.set_columns(conn, network_id, {"label": label})


def set_external(compute: Compute, network_id: str) -> None:
    """Make a network without a subnet external. Raise Conflict for another, or one with ports."""
    with compute.engine.begin() as conn:
        outline = outline_rows.get(conn, network_id)
        if outline is None or outline.by_project or ports.in_network(conn, network_id):
            raise Conflict(f"Network {network_id} cannot be made external: delete it, and create another")
        outline_rows.change(conn, network_id, {"manager": None, "vlan": None, "project_id": None})


def delete_of_project(compute: Compute, network_id: str, project_id: str) -> None:
    """Delete a network that a project created. Raise NotFound, Forbidden for another, Conflict while it has ports."""
    with compute.engine.begin() as conn:
        network = _by_project(conn, network_id, project_id)
        if isinstance(network, Outline):
            networks_without_subnet.drop(conn, network.id)
        elif network is not None:
            project_networks.delete(conn, network)


def _by_project(conn: Connection, network_id: str, project_id: str | None) -> Outline | Network | None:
    """Return a network that a project created, locked; None if no project did.

    Raise Forbidden if `project_id` is given and did not create it.
    """
    found: Outline | Network | None = outline_rows.get(conn, network_id)
    if found is None:
        rows.lock(conn, network_id)
        found = rows.by_ids(conn, [network_id]).get(network_id)
    result = found if found is not None and found.by_project else None
    if project_id is not None and (result is None or result.project_id != project_id):
        raise Forbidden(OF_ADMINISTRATORS)
    return result


def delete(compute: Compute, network_id: str) -> None:
    """Delete a network of servers. Raises as `networks.delete` does."""
    with compute.engine.begin() as conn:
        networks.delete(conn, network_id)


def delete_any(compute: Compute, network_id: str) -> None:
    """Delete a network of servers, a pool of floating addresses, or a network without a range.

    Raise NotFound, Conflict while its addresses are in use.
    """
    with compute.engine.begin() as conn:
        if outline_rows.get(conn, network_id) is not None:
            networks_without_subnet.drop(conn, network_id)
        elif any(pool.id == network_id for pool in floating_pools.pools(conn)):
            floating_ips.drop_pool(conn, network_id)
        elif (network := networks.get(conn, network_id, lock=True)).by_project:
            project_networks.delete(conn, network)
        else:
            networks.delete(conn, network_id)


def associate(compute: Compute, network_id: str, project_id: str) -> None:
    """Associate a network with a project. Raises as `networks.associate` does."""
    with compute.engine.begin() as conn:
        networks.associate(conn, network_id, project_id)


def disassociate(compute: Compute, network_id: str) -> None:
    """Disassociate a network from its project. Raises as `networks.disassociate` does."""
    with compute.engine.begin() as conn:
        networks.disassociate(conn, network_id)


def add_to_project(compute: Compute, project_id: str) -> None:
    """Associate the lowest unowned network with a project. Raise NoMoreNetworks."""
    with compute.engine.begin() as conn:
        networks.add_to_project(conn, project_id)
