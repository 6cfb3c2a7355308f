"""Rows of a project in all tables of the bundled cloud."""

from collections.abc import Mapping

from sqlalchemy import Connection, text

_COUNT = text("""
    SELECT (SELECT count(*) FROM compute_servers WHERE project_id = :project)
         + (SELECT count(*) FROM compute_cell_servers WHERE project_id = :project AND deleted_at IS NULL)
         + (SELECT count(*) FROM compute_zone_servers WHERE project_id = :project) AS servers,
           (SELECT count(*) FROM compute_zone_builds WHERE project_id = :project AND pending > 0) AS builds,
           (SELECT count(*) FROM compute_images WHERE project_id = :project AND status <> 'killed') AS images,
           (SELECT count(*) FROM compute_volumes WHERE project_id = :project) AS volumes,
           (SELECT count(*) FROM compute_networks WHERE project_id = :project) AS networks,
           (SELECT count(*) FROM compute_floating_addresses WHERE project_id = :project) AS floating_ips
""")

# Groups of reservations belong to leases.
_DELETE_GROUPS = text("""
    DELETE FROM compute_server_groups g
    WHERE project_id = :project AND NOT EXISTS (SELECT FROM compute_grants r WHERE r.group_id = g.id)
""")

_LEAVE_FLAVORS = text("""
    UPDATE compute_flavors SET projects = array_remove(projects, CAST(:project AS text)) WHERE :project = ANY(projects)
""")

_DELETE_AUTHORITY = text("DELETE FROM compute_vpn_authorities WHERE project_id = :project")

_DELETE_METADEFS = text("DELETE FROM compute_metadefs WHERE owner = :project")

_DELETE_USAGE = text("DELETE FROM compute_server_usage WHERE project_id = :project")

_LEAVE_IMAGES = text("DELETE FROM compute_image_members WHERE project_id = :project")


def count(conn: Connection, project_id: str) -> Mapping[str, int]:
    """Return the number of a project's resources by kind."""
    return dict(conn.execute(_COUNT, {"project": project_id}).mappings().one())


def delete_settings(conn: Connection, project_id: str) -> None:
    """Delete the server groups, metadata definitions, usage, VPN and access to flavors and images of a project."""
    groups = (_DELETE_GROUPS, _DELETE_METADEFS, _DELETE_AUTHORITY, _DELETE_USAGE)
    for statement in (*groups, _LEAVE_FLAVORS, _LEAVE_IMAGES):
        conn.execute(statement, {"project": project_id})
