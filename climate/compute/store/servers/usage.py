"""Time that servers ran, of those that exist and of deleted ones."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

# The pages are by id, whether a server exists or not.
_RAN = text("""
    SELECT s.* FROM (
        SELECT id::text AS server_id, project_id, name, flavor ->> 'name' AS flavor, vcpus, ram_mb, disk_mb,
               launched_at AS started_at, NULL::timestamptz AS ended_at, status
        FROM compute_servers
        WHERE launched_at < :stop AND (CAST(:project AS text) IS NULL OR project_id = :project)
        UNION ALL
        SELECT server_id::text, project_id, name, flavor, vcpus, ram_mb, disk_mb, started_at, ended_at, NULL
        FROM compute_server_usage
        WHERE started_at < :stop AND ended_at > :start AND (CAST(:project AS text) IS NULL OR project_id = :project)
    ) AS s
    WHERE CAST(:marker AS text) IS NULL OR server_id > :marker
    ORDER BY server_id LIMIT :limit
""")


def ran(
    conn: Connection, start: datetime, stop: datetime, project_id: str | None, page: tuple[str | None, int | None]
) -> Sequence[Mapping[str, Any]]:
    """Return the servers that ran in a period, of a project or of all, after a marker and at most so many."""
    given = {"start": start, "stop": stop, "project": project_id, "marker": page[0], "limit": page[1]}
    return [dict(row) for row in conn.execute(_RAN, given).mappings()]
