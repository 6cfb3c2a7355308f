"""Rows of a project in all tables of the bundled cloud."""

from collections.abc import Mapping

from sqlalchemy import ColumnElement, Connection, ScalarSelect, Table, any_, delete, exists, func, select, update

from climate.compute.store.tables.cell_servers import cell_servers
from climate.compute.store.tables.networks import floating_addresses, networks, vifs
from climate.compute.store.tables.servers import (
    actions,
    flavors,
    image_members,
    images,
    metadefs,
    server_groups,
    server_usage,
    servers,
)
from climate.compute.store.tables.shared_capacity import grants
from climate.compute.store.tables.volumes import volumes
from climate.compute.store.tables.vpn import authorities
from climate.compute.store.tables.zone_builds import zone_builds
from climate.compute.store.tables.zones import zone_servers


def count(conn: Connection, project_id: str) -> Mapping[str, int]:
    """Return the number of a project's resources by kind."""

    def number(table: Table, *conditions: ColumnElement[bool]) -> ScalarSelect[int]:
        return select(func.count()).where(table.c.project_id == project_id, *conditions).scalar_subquery()

    in_cells, in_zones = number(cell_servers, cell_servers.c.deleted_at.is_(None)), number(zone_servers)
    query = select(
        (number(servers) + in_cells + in_zones).label("servers"),
        number(zone_builds, zone_builds.c.pending > 0).label("builds"),
        number(images, images.c.status != "killed").label("images"),
        number(volumes).label("volumes"),
        number(networks).label("networks"),
        number(vifs).label("ports"),
        number(floating_addresses).label("floating_ips"),
    )
    return dict(conn.execute(query).mappings().one())


def delete_settings(conn: Connection, project_id: str) -> None:
    """Delete the settings of a project: server groups, metadata definitions, VPN, access to flavors and images.

    Its usage and the actions on its deleted servers are deleted too.
    """
    # Groups of reservations belong to leases.
    is_granted = exists().where(grants.c.group_id == server_groups.c.id)
    conn.execute(delete(server_groups).where(server_groups.c.project_id == project_id, ~is_granted))
    others = func.array_remove(flavors.c.projects, project_id)
    conn.execute(update(flavors).where(any_(flavors.c.projects) == project_id).values(projects=others))
    conn.execute(delete(image_members).where(image_members.c.project_id == project_id))
    conn.execute(delete(metadefs).where(metadefs.c.owner == project_id))
    conn.execute(delete(authorities).where(authorities.c.project_id == project_id))
    is_there = exists().where(servers.c.id == actions.c.server_id)
    conn.execute(delete(actions).where(actions.c.project_id == project_id, ~is_there))
    conn.execute(delete(server_usage).where(server_usage.c.project_id == project_id))
