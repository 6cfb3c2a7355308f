"""Shared capacity: slots for servers of one flavor on nodes of the reservation pool, granted to a project."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text

from climate.compute.store.nodes.nodes import Held

# The nodes with present or future slots: a claim of a slot holds the lock of its node.
_LOCK = text("""
    SELECT id, name, pool, fence, outside FROM compute_nodes
    WHERE name = ANY(CAST(:names AS text[])) OR id IN (SELECT node_id FROM compute_grant_slots WHERE pool = :pool)
    ORDER BY name, id FOR NO KEY UPDATE
""")

# No row is returned if the token is outdated.
_WRITE = text("""
    INSERT INTO compute_grants AS g (pool, project_id, group_id, fence)
    VALUES (:pool, :project_id, CAST(:group_id AS uuid), :token)
    ON CONFLICT (pool) DO UPDATE
    SET project_id = excluded.project_id, group_id = excluded.group_id, fence = excluded.fence, closed = false,
        revoked = false, updated_at = clock_timestamp()
    WHERE g.fence <= excluded.fence
    RETURNING pool
""")

_SLOTS = text("""
    WITH wanted AS (SELECT * FROM unnest(CAST(:ids AS int[]), CAST(:slots AS int[])) AS w(node_id, slots)),
    gone AS (
        DELETE FROM compute_grant_slots WHERE pool = :pool AND NOT node_id = ANY(CAST(:ids AS int[])))
    INSERT INTO compute_grant_slots (pool, node_id, slots) SELECT :pool, node_id, slots FROM wanted
    ON CONFLICT (pool, node_id) DO UPDATE SET slots = excluded.slots
""")

_CLOSE = text("""
    UPDATE compute_grants SET closed = true, fence = :token, updated_at = clock_timestamp()
    WHERE pool = :pool AND fence <= :token RETURNING pool
""")

# The row is kept for good, so that a late worker is refused by its token.
_REVOKE = text("""
    WITH gone AS (DELETE FROM compute_grant_slots WHERE pool = :pool)
    INSERT INTO compute_grants AS g (pool, project_id, fence, closed, revoked) VALUES (:pool, '', :token, true, true)
    ON CONFLICT (pool) DO UPDATE
    SET fence = excluded.fence, closed = true, revoked = true, group_id = NULL, updated_at = clock_timestamp()
    WHERE g.fence <= excluded.fence
    RETURNING pool
""")

_SERVERS = text("SELECT count(*) FROM compute_servers WHERE granted = :pool")

_GET = text("""
    SELECT pool, project_id, group_id::text, closed, revoked, fence FROM compute_grants
    WHERE pool = ANY(CAST(:pools AS text[]))
""")

_WITH_GROUP = text("SELECT pool FROM compute_grants WHERE group_id = CAST(:group_id AS uuid) AND NOT revoked")

_USE = text("""
    SELECT g.project_id, g.closed, s.node_id, s.slots,
           (SELECT count(*) FROM compute_servers v WHERE v.granted = g.pool AND v.node_id = s.node_id) AS used
    FROM compute_grants g LEFT JOIN compute_grant_slots s ON s.pool = g.pool
    WHERE g.pool = :pool
""")


@dataclass(frozen=True, slots=True)
class Grant:
    """A grant of capacity, current or former."""

    pool: str
    project_id: str
    group_id: str | None
    closed: bool
    revoked: bool
    fence: int


@dataclass(frozen=True, slots=True)
class Use:
    """The slots of a grant, and their usage."""

    project_id: str
    closed: bool
    slots: Mapping[int, tuple[int, int]]
    """Node -> (number of slots, number of servers)"""


def lock(conn: Connection, pool: str, names: Sequence[str] = ()) -> list[Held]:
    """Lock the nodes with slots of a grant, and those of these names, in name order."""
    return [Held(*row) for row in conn.execute(_LOCK, {"pool": pool, "names": list(names)})]


def write(conn: Connection, pool: str, project_id: str, group_id: str | None, token: int) -> bool:
    """Create a grant, or open it again; False if the token is outdated."""
    given = {"pool": pool, "project_id": project_id, "group_id": group_id, "token": token}
    return conn.execute(_WRITE, given).first() is not None


def put(conn: Connection, pool: str, slots: Mapping[int, int]) -> None:
    """Replace the slots of a grant, by node; all nodes that gain or lose slots must be locked."""
    conn.execute(_SLOTS, {"pool": pool, "ids": list(slots), "slots": list(slots.values())})


def close(conn: Connection, pool: str, token: int) -> bool:
    """Close a grant whose nodes are locked; False if it does not exist, or the token is outdated."""
    return conn.execute(_CLOSE, {"pool": pool, "token": token}).first() is not None


def revoke(conn: Connection, pool: str, token: int) -> bool:
    """Delete a grant and record its token, even if it never existed; False if the token is outdated."""
    return conn.execute(_REVOKE, {"pool": pool, "token": token}).first() is not None


def servers(conn: Connection, pool: str) -> int:
    """Return the number of servers that use a grant, on a node or not."""
    count: int = conn.execute(_SERVERS, {"pool": pool}).scalar_one()
    return count


def get(conn: Connection, pools: Sequence[str]) -> list[Grant]:
    """Return the current and former grants of these pools."""
    return [Grant(**row) for row in conn.execute(_GET, {"pools": list(pools)}).mappings()]


def with_group(conn: Connection, group_id: str) -> str | None:
    """Return the grant that a server group was created for, or None."""
    value: str | None = conn.execute(_WITH_GROUP, {"group_id": group_id}).scalar()
    return value


def use(conn: Connection, pool: str) -> Use | None:
    """Return the usage of a grant; None if there never was one."""
    rows = conn.execute(_USE, {"pool": pool}).all()
    if not rows:
        return None
    slots = {row.node_id: (row.slots, row.used) for row in rows if row.node_id is not None}
    return Use(rows[0].project_id, rows[0].closed, slots)
