"""Operations on subnets of the Network API: each network has exactly one, its range."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import Conflict, Forbidden, InvalidInput, NotFound
from climate.compute.network import floating_pool_ranges as pools
from climate.compute.network import networks, networks_without_subnet, project_networks
from climate.compute.network.managers import MANAGERS
from climate.compute.network.models import Network
from climate.compute.network.networks_without_subnet import Range, Stretch
from climate.compute.store.networks import floating_pools
from climate.compute.store.networks import networks as rows
from climate.compute.store.networks import networks_without_subnet as outline_rows
from climate.compute.store.networks.floating_pools import PoolRow
from climate.database.connections import reading

OF_ADMINISTRATORS = "Only administrators create and change subnets of networks that the project did not create."


@dataclass(frozen=True, slots=True)
class Subnets:
    """Networks of servers and pools of floating addresses, each of which has a subnet."""

    inside: Sequence[Network]
    pools: Sequence[PoolRow]
    ranges: Mapping[str, Sequence[tuple[str, str]]]
    """Pool -> first and last address of each of its ranges."""

    def has_network(self, network_id: str) -> bool:
        """Return whether one of the subnets belongs to a network."""
        return network_id in {*(network.id for network in self.inside), *(pool.id for pool in self.pools)}


def listed(compute: Compute, project_id: str | None) -> Subnets:
    """Return the subnets that a project may use; None: all."""
    with reading(compute.engine) as conn:
        return _listed(conn, project_id)


def create(compute: Compute, network_id: str, given: Range, *, dhcp: bool | None = None) -> Subnets:
    """Add the range to a network that has none; return all subnets. `dhcp`: DHCP is requested.

    Raise NotFound, Conflict if the network has a range, InvalidInput for a range that its manager does not support, and
    the errors of `outlines.complete`.
    """
    with compute.engine.begin() as conn:
        outline = outline_rows.get(conn, network_id)
        if outline is None:
            raise _refusal(conn, network_id)
        if outline.manager is not None:
            _check_inside(outline.manager, given, dhcp=dhcp)
        networks_without_subnet.complete(conn, compute.network, outline, given)
        return _listed(conn, None)


def create_for_project(
    compute: Compute, subnets: Sequence[tuple[str, project_networks.Subnet]], project_id: str | None
) -> list[Network]:
    """Give networks of projects their subnets, all or none; `project_id` None: networks of any project.

    Raise NotFound, Forbidden for a network that the project did not create, Conflict if it has a subnet, BadRequest.
    """
    with compute.engine.begin() as conn:
        for network_id, subnet in subnets:
            outline = outline_rows.get(conn, network_id)
            if outline is None or project_id not in (None, outline.project_id):
                raise _refusal_to(conn, network_id, project_id)
            if not outline.by_project:
                raise Forbidden(OF_ADMINISTRATORS)
            project_networks.complete(conn, compute.network, outline, subnet)
        made = rows.by_ids(conn, [network_id for network_id, _ in subnets])
        return [made[network_id] for network_id, _ in subnets]


def is_by_project(compute: Compute, network_ids: Sequence[str]) -> bool:
    """Return whether a project created the first of these networks, which has no subnet."""
    with reading(compute.engine) as conn:
        return any(one.id in network_ids[:1] and one.by_project for one in outline_rows.listed(conn))


def change_of_project(
    compute: Compute, subnet_id: str, project_id: str | None, changes: Mapping[str, object]
) -> Network | None:
    """Change fields of the subnet of a network that a project created; None if it is another network's.

    `project_id` None: of any project. Raise Forbidden for another project, and the errors of `project_networks.change`.
    """
    with compute.engine.begin() as conn:
        network = _of_project(conn, subnet_id, project_id)
        if network is not None:
            wanted = replace(project_networks.subnet_of(network), **changes)  # type: ignore[arg-type]
            project_networks.change(conn, compute.network, network, wanted)
            return rows.by_ids(conn, [network.id])[network.id]
    return None


def delete_of_project(compute: Compute, subnet_id: str, project_id: str | None) -> bool:
    """Delete the subnet of a network that a project created; False if it is another network's.

    `project_id` None: of any project. Raise Forbidden for another project, Conflict while ports have addresses.
    """
    with compute.engine.begin() as conn:
        network = _of_project(conn, subnet_id, project_id)
        if network is not None:
            project_networks.drop_subnet(conn, network)
    return network is not None


def _of_project(conn: Connection, subnet_id: str, project_id: str | None) -> Network | None:
    found = next((one for one in rows.listed(conn, project_id) if one.subnet_id == subnet_id and one.by_project), None)
    if found is None:
        if project_id is not None:
            raise Forbidden(OF_ADMINISTRATORS)
        return None
    return networks.get(conn, found.id, lock=True)


def _refusal_to(conn: Connection, network_id: str, project_id: str | None) -> Exception:
    """Return why a network cannot get a subnet: of networks of others it says nothing."""
    there = rows.by_ids(conn, [network_id], project_id).get(network_id)
    if there is not None and there.by_project:
        return Conflict(f"Network {network_id} has a subnet already; only one is supported")
    is_pool = any(pool.id == network_id for pool in floating_pools.pools(conn))
    return Forbidden(OF_ADMINISTRATORS) if there is not None or is_pool else NotFound("The network could not be found.")


def reshape(compute: Compute, subnet_id: str, stretches: Sequence[Stretch] | None) -> Subnets:
    """Change the allocation ranges of a pool, None: no change; return all subnets.

    Subnets of networks of servers cannot be changed. Raises as `pools.reshape` does.
    """
    with compute.engine.begin() as conn:
        pool = next((row for row in floating_pools.pools(conn) if row.subnet_id == subnet_id), None)
        if pool is not None and stretches is not None:
            pools.reshape(conn, pool.id, stretches, compute.network.own)
        return _listed(conn, None)


def _listed(conn: Connection, project_id: str | None) -> Subnets:
    ranges = floating_pools.ranges(conn)
    outside = floating_pools.pools(conn)
    return Subnets(rows.listed(conn, project_id), outside, ranges)


def _refusal(conn: Connection, network_id: str) -> Exception:
    if _listed(conn, None).has_network(network_id):
        return Conflict(f"Network {network_id} has a subnet already; only one is supported")
    return NotFound(f"Network {network_id} could not be found.")


def _check_inside(manager: str, given: Range, *, dhcp: bool | None) -> None:
    """Check that a network of servers can have the range. Raise InvalidInput."""
    first = given.cidr[1]
    if given.gateway != first:
        raise InvalidInput(f"gateway_ip must be the first address of the range, {first}, or be omitted")
    if given.stretches:
        raise InvalidInput("allocation_pools is only supported for external networks")
    if dhcp is False and MANAGERS[manager].DHCP:
        raise InvalidInput(f"enable_dhcp cannot be false: networks of the manager {manager} are served by DHCP")
