"""Operations on networks: list, create, delete, associate with projects."""

from collections.abc import Sequence
from dataclasses import dataclass

from climate.compute.context import Compute
from climate.compute.network import floating_ips, networks, pending_networks
from climate.compute.network.models import Network
from climate.compute.network.network_request import NetworkRequest
from climate.compute.network.pending_networks import Drawn
from climate.compute.store.networks import floating_pools
from climate.compute.store.networks import networks as rows
from climate.compute.store.networks import pending_networks as outline_rows
from climate.compute.store.networks.floating_pools import PoolRow
from climate.compute.store.networks.pending_networks import Outline
from climate.connections import reading


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
    """Return all networks that a project may use; None: all, including those without a range."""
    with reading(compute.engine) as conn:
        inside, pools = rows.listed(conn, project_id), floating_pools.pools(conn)
        return Networks(inside, pools, outline_rows.listed(conn) if project_id is None else ())


def create(compute: Compute, wanted: NetworkRequest, manager: str | None) -> list[Network]:
    """Create networks of servers, all or none. Raises as `networks.create` does."""
    with compute.engine.begin() as conn:
        return networks.create(conn, compute.network, wanted, manager)


def create_outline(compute: Compute, drawn: Drawn) -> Outline:
    """Create a network without a range. Raises as `outlines.draw` does."""
    with compute.engine.begin() as conn:
        return pending_networks.draw(conn, drawn)


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
            pending_networks.drop(conn, network_id)
        elif any(pool.id == network_id for pool in floating_pools.pools(conn)):
            floating_ips.drop_pool(conn, network_id)
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
