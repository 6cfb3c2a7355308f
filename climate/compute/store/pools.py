"""Pools: the aggregates that nodes are kept in for leases, or lent to one."""

import json
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, text

from climate.compute.aggregate import Aggregate
from climate.compute.host import CLOSED, FREEPOOL, OWNER
from climate.compute.store.nodes import Held

_LOCK_NAMED = text("""
    SELECT id, name, pool, fence FROM compute_nodes WHERE name = ANY(CAST(:names AS text[]))
    ORDER BY name, id FOR NO KEY UPDATE
""")

_LOCK_POOL = text("""
    SELECT id, name, pool, fence FROM compute_nodes
    WHERE pool = :pool OR (pool = :freepool AND name = ANY(CAST(:free AS text[])))
    ORDER BY name, id FOR NO KEY UPDATE
""")

_PUT = text("UPDATE compute_nodes SET pool = CAST(:pool AS text) WHERE id = :id")

# The pool and its nodes in one statement; no row of the pool comes back when a later claim has been at it.
_LEND = text("""
    WITH pool AS (
        INSERT INTO compute_aggregates AS a (name, metadata, fence) VALUES (:pool, CAST(:metadata AS jsonb), :token)
        ON CONFLICT (name) DO UPDATE
        SET metadata = a.metadata || excluded.metadata, fence = excluded.fence, updated_at = clock_timestamp()
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

_FENCE = text("SELECT fence FROM compute_aggregates WHERE name = :pool")

_SERVERS_ON = text("SELECT count(*) FROM compute_servers WHERE node_id = ANY(CAST(:ids AS int[]))")

_TAKE_BACK = text("""
    WITH moved AS (UPDATE compute_nodes SET pool = :freepool, fence = :token WHERE id = ANY(CAST(:ids AS int[])))
    DELETE FROM compute_aggregates WHERE name = :pool AND name <> :freepool
""")

_LIST = text("""
    SELECT a.id, a.uuid::text, a.name, a.metadata, a.created_at, a.updated_at,
           ARRAY(SELECT n.name FROM compute_nodes n WHERE n.pool = a.name ORDER BY n.name) AS nodes
    FROM compute_aggregates a
    WHERE CAST(:id AS int) IS NULL OR a.id = :id
    ORDER BY a.id
""")


def lock_named(conn: Connection, names: Sequence[str]) -> list[Held]:
    """Lock the nodes of these names, in name order."""
    return [Held(*row) for row in conn.execute(_LOCK_NAMED, {"names": list(names)})]


def lock_pool(conn: Connection, pool: str, free: Sequence[str] = ()) -> list[Held]:
    """Lock the nodes of a pool, and those of the reservation pool with a name in `free`, in name order."""
    given = {"pool": pool, "freepool": FREEPOOL, "free": list(free)}
    return [Held(*row) for row in conn.execute(_LOCK_POOL, given)]


def put(conn: Connection, node_id: int, pool: str | None) -> None:
    """Put a node, locked before, into a pool or into none."""
    conn.execute(_PUT, {"id": node_id, "pool": pool})


def lend(conn: Connection, pool: str, project_id: str, ids: Sequence[int], token: int) -> bool:
    """Make the pool and move nodes into it; False when a later claim has been at the pool."""
    metadata = json.dumps({OWNER: project_id})
    given = {"pool": pool, "metadata": metadata, "ids": list(ids), "token": token}
    return bool(conn.execute(_LEND, given).scalar_one())


def close(conn: Connection, pool: str, ids: Sequence[int], token: int) -> None:
    """Mark the pool as closed."""
    conn.execute(_CLOSE, {"pool": pool, "metadata": json.dumps({CLOSED: "true"}), "ids": list(ids), "token": token})


def fence(conn: Connection, pool: str) -> int | None:
    """The highest token that has worked on the pool; None when there is no such pool."""
    found: int | None = conn.execute(_FENCE, {"pool": pool}).scalar()
    return found


def servers_on(conn: Connection, ids: Sequence[int]) -> int:
    """How many servers are on these nodes."""
    count: int = conn.execute(_SERVERS_ON, {"ids": list(ids)}).scalar_one()
    return count


def take_back(conn: Connection, pool: str, ids: Sequence[int], token: int) -> None:
    """Move the nodes to the reservation pool and drop theirs."""
    conn.execute(_TAKE_BACK, {"pool": pool, "ids": list(ids), "token": token, "freepool": FREEPOOL})


def listed(conn: Connection, aggregate_id: int | None = None) -> list[Aggregate]:
    """All pools with the names of their nodes, or the one of that id."""
    rows = conn.execute(_LIST, {"id": aggregate_id}).mappings()
    return [Aggregate(**{**row, "nodes": tuple(row["nodes"])}) for row in rows]


def members(conn: Connection) -> Mapping[str, frozenset[str]]:
    """Pool -> names of its nodes."""
    return {pool.name: frozenset(pool.nodes) for pool in listed(conn)}
