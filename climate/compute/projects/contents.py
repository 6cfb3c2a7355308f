"""Resources and settings of a project in the bundled cloud."""

from collections.abc import Mapping

from sqlalchemy import Connection

from climate.compute.store.projects import contents, quotas


def count(conn: Connection, project_id: str) -> Mapping[str, int]:
    """Return the number of resources of a project by kind; servers in child zones and cells count."""
    return contents.count(conn, project_id)


def delete_settings(conn: Connection, project_id: str) -> None:
    """Reset the quotas of a project, and delete its server groups, access to flavors and VPN certificates."""
    quotas.forget_limits(conn, project_id)
    contents.delete_settings(conn, project_id)
