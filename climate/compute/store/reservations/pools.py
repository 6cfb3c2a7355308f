"""Pools: the aggregates in which nodes are kept for leases, or lent to one."""

import json
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, text

from climate.advisory_locks import Subject
from climate.compute.models.aggregate import POOL
from climate.compute.models.node import CLOSED, FREEPOOL, KEPT, OWNER, PROMISED
from climate.compute.store.nodes.nodes import Held

_LOCK_NAMED = text("""
    SELECT id, name, pool, fence, outside FROM compute_nodes
    WHERE name = ANY(CAST(:names AS text[])) OR pool = :pool
    ORDER BY name, id FOR NO KEY UPDATE
""")

_LOCK_POOL = text("""
    SELECT id, name, pool, fence, outside FROM compute_nodes
    WHERE pool = :pool OR (pool = :freepool AND name = ANY(CAST(:free AS text[])))
    ORDER BY name, id FOR NO KEY UPDATE
""")

_PUT = text("""
    UPDATE compute_nodes SET pool = CAST(:pool AS text), outside = false, fence = greatest(fence, :token) WHERE id = :id
""")

_ALIVE = text("SELECT name FROM compute_aggregates WHERE name = ANY(CAST(:names AS text[])) ORDER BY name")

_MAKE = text("INSERT INTO compute_aggregates (name) VALUES (:name) ON CONFLICT (name) DO NOTHING")

_KEEP = text("SELECT kind FROM compute_aggregates WHERE name = :name FOR KEY SHARE")

_KEEP_LENT = text(f"""
    SELECT kind FROM compute_aggregates WHERE name = :name AND metadata ? '{OWNER}' AND fence > 0 FOR NO KEY UPDATE
""")

# The pool and its nodes in one statement; no row of the pool is returned if the token is outdated. Nodes that are in
# it already are written too, so that the scheduler reads that the pool is open again.
_LEND = text(f"""
    WITH pool AS (
        INSERT INTO compute_aggregates AS a (name, metadata, fence) VALUES (:pool, CAST(:metadata AS jsonb), :token)
        ON CONFLICT (name) DO UPDATE
        SET kind = 'pool', metadata = (a.metadata - '{CLOSED}' - '{PROMISED}') || excluded.metadata,
            fence = excluded.fence, updated_at = clock_timestamp()
        WHERE a.fence <= excluded.fence
        RETURNING name),
    moved AS (
        UPDATE compute_nodes SET pool = (SELECT name FROM pool), fence = :token
        WHERE id = ANY(CAST(:ids AS int[])) AND EXISTS (SELECT FROM pool))
    SELECT count(*) FROM pool
""")

_CLOSE = text("""
    WITH fenced AS (UPDATE compute_nodes SET fence = :token WHERE id = ANY(CAST(:ids AS int[])))
    UPDATE compute_aggregates
    SET metadata = metadata || CAST(:metadata AS jsonb), fence = :token, updated_at = clock_timestamp()
    WHERE name = :pool AND fence <= :token
""")

# A lock by name while there is no row: two transactions may create the same pool.
_QUEUE = text(Subject.POOL.lock("pool"))

# Not FOR UPDATE: a node whose row is written twice by one transaction is checked against its pool again, under a
# share of its key. A transaction that holds one also holds a node of the pool, and ends once all of them are locked.
_LOCK = text("SELECT fence FROM compute_aggregates WHERE name = :pool FOR NO KEY UPDATE")

_LENT_FROM_OUTSIDE = text(f"""
    SELECT EXISTS (
        SELECT FROM compute_aggregates
        WHERE name = :pool AND kind = 'pool' AND fence = 0 AND metadata ->> '{OWNER}' = :project_id)
""")

# A server that may return counts too: its migration is not confirmed yet.
_SERVERS_ON = text("""
    SELECT count(*) FROM compute_servers s LEFT JOIN compute_migrations m ON m.id = s.migration_id
    WHERE (s.node_id = ANY(CAST(:ids AS int[])) OR m.held_node_id = ANY(CAST(:ids AS int[])))
      AND NOT (CAST(:granted AS boolean) AND s.granted IS NOT NULL AND EXISTS (
          SELECT FROM compute_grant_slots g WHERE g.node_id = s.node_id AND g.pool = s.granted))
""")

_TAKE_BACK = text("""
    WITH moved AS (
        UPDATE compute_nodes
        SET pool = CASE WHEN pool = :pool THEN CAST(:to AS text) ELSE pool END, fence = :token
        WHERE id = ANY(CAST(:ids AS int[])))
    DELETE FROM compute_aggregates WHERE name = :pool
""")

_MEMBERS = text(f"""
    SELECT a.name, array_agg(n.name) FILTER (WHERE n.id IS NOT NULL) AS nodes
    FROM compute_aggregates a LEFT JOIN compute_nodes n ON n.pool = a.name AND NOT (n.outside AND :own)
    WHERE a.kind = 'pool' AND NOT a.metadata ? '{PROMISED}' GROUP BY a.name
    HAVING a.name <> ALL(CAST(:unseen AS text[])) OR count(n.id) > 0
""")


def lock_named(conn: Connection, names: Sequence[str], pool: str | None = None) -> list[Held]:
    """Lock the nodes of these names, and all of a pool, in name order."""
    return [Held(*row) for row in conn.execute(_LOCK_NAMED, {"names": list(names), "pool": pool})]


def lock_pool(conn: Connection, pool: str, free: Sequence[str] = ()) -> list[Held]:
    """Lock the nodes of a pool, and those of the reservation pool with a name in `free`, in name order."""
    given = {"pool": pool, "freepool": FREEPOOL, "free": list(free)}
    return [Held(*row) for row in conn.execute(_LOCK_POOL, given)]


def put(conn: Connection, node_id: int, pool: str | None, token: int = 0) -> None:
    """Move a locked node into a pool or into none; its token never decreases."""
    conn.execute(_PUT, {"id": node_id, "pool": pool, "token": token})


def make(conn: Connection, pool: str) -> bool:
    """Create a pool without owner unless it exists, and keep it; False if an ordinary aggregate has its name."""
    conn.execute(_MAKE, {"name": pool})
    return conn.execute(_KEEP, {"name": pool}).scalar() == POOL


def keep_lent(conn: Connection, pool: str) -> bool:
    """Keep a lent pool until the transaction ends; False if it does not exist."""
    return conn.execute(_KEEP_LENT, {"name": pool}).first() is not None


def lend(conn: Connection, pool: str, project_id: str, ids: Sequence[int], token: int) -> bool:
    """Create the pool and move nodes into it; False if the token is outdated."""
    metadata = json.dumps({OWNER: project_id})
    given = {"pool": pool, "metadata": metadata, "ids": list(ids), "token": token}
    return bool(conn.execute(_LEND, given).scalar_one())


def close(conn: Connection, pool: str, ids: Sequence[int], token: int) -> None:
    """Mark the pool as closed."""
    conn.execute(_CLOSE, {"pool": pool, "metadata": json.dumps({CLOSED: "true"}), "ids": list(ids), "token": token})


def lock(conn: Connection, pool: str) -> int | None:
    """Lock a pool before its nodes; return the highest token used on it, None if it does not exist."""
    value: int | None = conn.execute(_LOCK, {"pool": pool}).scalar()
    if value is None:
        conn.execute(_QUEUE, {"pool": pool})
        value = conn.execute(_LOCK, {"pool": pool}).scalar()
    return value


def is_lent_from_outside(conn: Connection, pool: str, project_id: str) -> bool:
    """Return whether a pool is lent to a project, and not under a token of this deployment."""
    value: bool = conn.execute(_LENT_FROM_OUTSIDE, {"pool": pool, "project_id": project_id}).scalar_one()
    return value


def servers_on(conn: Connection, ids: Sequence[int], *, but_granted: bool = False) -> int:
    """Return the number of servers on these nodes; `but_granted`: without those that have a slot there."""
    count: int = conn.execute(_SERVERS_ON, {"ids": list(ids), "granted": but_granted}).scalar_one()
    return count


def take_back(conn: Connection, pool: str, ids: Sequence[int], token: int, to: str | None) -> None:
    """Move those of the nodes that are in the pool to another one, or to none, and delete it; fence them all."""
    conn.execute(_TAKE_BACK, {"pool": pool, "ids": list(ids), "token": token, "to": to})


def alive(conn: Connection, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names that pools have."""
    return tuple(conn.execute(_ALIVE, {"names": list(names)}).scalars()) if names else ()


def members(conn: Connection, *, own: bool) -> Mapping[str, frozenset[str]]:
    """Return pool -> names of its nodes; own: without nodes that were added from outside.

    Pools without owner are included if they have nodes, and the reservation pool always.
    """
    given = {"own": own, "unseen": sorted(KEPT - {FREEPOOL})}
    return {row.name: frozenset(row.nodes or ()) for row in conn.execute(_MEMBERS, given)}
