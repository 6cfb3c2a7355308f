"""Server groups: their members, and the nodes of the members."""

import json
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, RowMapping, text

_COLUMNS = """
    g.id::text, g.name, g.project_id, g.user_id, g.policy, g.rules, g.created_at,
    ARRAY(SELECT s.id::text FROM compute_servers s WHERE s.group_id = g.id ORDER BY s.created_at, s.id) AS members
"""

_INSERT = text("""
    INSERT INTO compute_server_groups (name, project_id, user_id, policy, rules)
    VALUES (:name, :project_id, :user_id, :policy, CAST(:rules AS jsonb)) RETURNING id::text
""")

_MAKE = text("""
    INSERT INTO compute_server_groups AS g (id, name, project_id, user_id, policy, rules)
    VALUES (CAST(:id AS uuid), :name, :project_id, :user_id, :policy, CAST(:rules AS jsonb))
    ON CONFLICT (id) DO NOTHING
""")

_GET = text(f"SELECT {_COLUMNS} FROM compute_server_groups g WHERE g.id = CAST(:id AS uuid)")

_LIST = text(f"""
    SELECT {_COLUMNS} FROM compute_server_groups g
    WHERE (CAST(:project_id AS text) IS NULL OR g.project_id = :project_id)
      AND (CAST(:marker AS uuid) IS NULL
           OR (g.created_at, g.id) >
              (SELECT m.created_at, m.id FROM compute_server_groups m WHERE m.id = CAST(:marker AS uuid)))
    ORDER BY g.created_at, g.id LIMIT :limit OFFSET :offset
""")

_NAMED = text("""
    SELECT id::text FROM compute_server_groups WHERE project_id = :project_id AND name = :name
    ORDER BY created_at, id LIMIT :most
""")

# Groups of reservations belong to no user, and are not counted.
_COUNT = text("""
    SELECT count(*) FROM compute_server_groups g
    WHERE project_id = :project_id AND NOT EXISTS (SELECT FROM compute_grants r WHERE r.group_id = g.id)
""")

_DELETE = text("DELETE FROM compute_server_groups WHERE id = CAST(:id AS uuid)")

# Not FOR UPDATE: a server whose row is written twice by one transaction is checked against its group again, under a
# share of its key. A transaction that holds one also holds a member, and ends once all members are locked.
_LOCK_TO_DROP = text("SELECT FROM compute_server_groups WHERE id = CAST(:id AS uuid) FOR NO KEY UPDATE")

_LOCK_MEMBERS = text("""
    SELECT FROM compute_servers WHERE group_id = CAST(:id AS uuid) ORDER BY id FOR NO KEY UPDATE
""")

_LOCK = text("""
    SELECT id::text, project_id, policy, rules, EXISTS (SELECT FROM compute_grants r WHERE r.group_id = g.id) AS granted
    FROM compute_server_groups g WHERE id = CAST(:id AS uuid) FOR NO KEY UPDATE
""")

# A statement of its own after the lock, so that it reads the commit of the former holder.
_NODES = text("""
    SELECT id::text, node_id FROM compute_servers WHERE group_id = CAST(:id AS uuid)
""")


def insert(conn: Connection, name: str, owner: Mapping[str, str], policy: str, rules: Mapping[str, int]) -> str:
    """Insert a group; return its id. `owner`: project_id and user_id."""
    given = {"name": name, "policy": policy, "rules": json.dumps(rules), **owner}
    made: str = conn.execute(_INSERT, given).scalar_one()
    return made


def make(conn: Connection, group_id: str, name: str, owner: Mapping[str, str], policy: str) -> None:
    """Insert a group of that id unless it exists. `owner`: project_id and user_id."""
    conn.execute(_MAKE, {"id": group_id, "name": name, "policy": policy, "rules": json.dumps({}), **owner})


def get(conn: Connection, group_id: str) -> RowMapping | None:
    """Return the group with its members; None if it does not exist."""
    return conn.execute(_GET, {"id": group_id}).mappings().one_or_none()


def listed(
    conn: Connection, project_id: str | None, limit: int, offset: int, marker: str | None
) -> Sequence[RowMapping]:
    """Return the groups of a project, or of all, oldest first; those after the one with the id `marker`."""
    given = {"project_id": project_id, "limit": limit, "offset": offset, "marker": marker}
    return conn.execute(_LIST, given).mappings().all()


def named(conn: Connection, name: str, project_id: str, most: int) -> list[str]:
    """Return the ids of a project's groups of this name, oldest first, up to `most`."""
    return list(conn.execute(_NAMED, {"name": name, "project_id": project_id, "most": most}).scalars())


def count(conn: Connection, project_id: str) -> int:
    """Return the number of groups that a project has of its own."""
    value: int = conn.execute(_COUNT, {"project_id": project_id}).scalar_one()
    return value


def lock_to_drop(conn: Connection, group_id: str) -> None:
    """Lock a group, then its members, whose rows change with it; nobody joins it meanwhile."""
    conn.execute(_LOCK_TO_DROP, {"id": group_id})
    conn.execute(_LOCK_MEMBERS, {"id": group_id})


def delete(conn: Connection, group_id: str) -> None:
    """Delete a group; its members stay without one."""
    lock_to_drop(conn, group_id)
    conn.execute(_DELETE, {"id": group_id})


def lock(conn: Connection, group_id: str) -> RowMapping | None:
    """Return the group (id, project_id, policy, rules, granted), locked against concurrent placement of its servers.

    None: it does not exist.
    """
    return conn.execute(_LOCK, {"id": group_id}).mappings().one_or_none()


def whereabouts(conn: Connection, group_id: str) -> dict[str, int | None]:
    """Return member -> its node; None if it is on none."""
    return {row.id: row.node_id for row in conn.execute(_NODES, {"id": group_id})}
