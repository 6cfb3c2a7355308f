"""Several pools that are lent in one transaction."""

import json
from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

from climate.compute.models.node import CLOSED, OWNER, PROMISED, SHARED


class NodeRow(NamedTuple):
    """A node as it is once it is locked; `is_locked` is false if another transaction holds it."""

    id: int
    name: str
    pool: str | None
    fence: int
    outside: bool
    is_locked: bool


class Locked(NamedTuple):
    """Locks that were taken on several pools and their nodes."""

    nodes: list[NodeRow]
    """All these nodes, by name and id."""
    busy: frozenset[str]
    """Pools whose rows another transaction holds."""


class PoolCreation(NamedTuple):
    """A pool to be created: its project, the token of the caller, and the ids of its nodes."""

    pool: str
    project_id: str
    token: int
    nodes: list[int]
    shared_with: tuple[str, ...] = ()


# Pools and nodes by statements that wait for nothing: whoever holds a pool may be about to wait for its nodes.
_LOCK = text("""
    WITH owned AS MATERIALIZED (
        SELECT name FROM compute_aggregates WHERE name = ANY(CAST(:pools AS text[]))
        ORDER BY name FOR NO KEY UPDATE SKIP LOCKED),
    held AS MATERIALIZED (
        SELECT id, name, pool, fence, outside FROM compute_nodes
        WHERE name = ANY(CAST(:names AS text[])) OR pool = ANY(CAST(:pools AS text[]))
        ORDER BY name, id FOR NO KEY UPDATE SKIP LOCKED)
    SELECT id, name, pool, fence, outside, true AS is_locked FROM held
    UNION ALL
    SELECT id, name, pool, fence, outside, false FROM compute_nodes n
    WHERE (name = ANY(CAST(:names AS text[])) OR pool = ANY(CAST(:pools AS text[])))
        AND NOT EXISTS (SELECT FROM held h WHERE h.id = n.id)
    UNION ALL
    SELECT NULL, name, name, 0, false, false FROM compute_aggregates a
    WHERE name = ANY(CAST(:pools AS text[])) AND NOT EXISTS (SELECT FROM owned o WHERE o.name = a.name)
""")

# A server that may return counts too: its migration is not confirmed yet.
_OCCUPIED = text("""
    SELECT s.node_id FROM compute_servers s WHERE s.node_id = ANY(CAST(:ids AS int[]))
    UNION
    SELECT m.held_node_id FROM compute_servers s JOIN compute_migrations m ON m.id = s.migration_id
    WHERE m.held_node_id = ANY(CAST(:ids AS int[]))
""")

# As `pools.lend`; the pools in name order, so that concurrent calls do not deadlock.
_LEND = text(f"""
    WITH wanted AS MATERIALIZED (
        SELECT * FROM jsonb_to_recordset(CAST(:pools AS jsonb))
            AS w (pool text, owner text, shared text, token bigint, nodes int[])),
    made AS (
        INSERT INTO compute_aggregates AS a (name, metadata, fence)
        SELECT pool, jsonb_strip_nulls(jsonb_build_object('{OWNER}', owner, '{SHARED}', shared)), token
        FROM wanted ORDER BY pool
        ON CONFLICT (name) DO UPDATE
        SET kind = 'pool', metadata = (a.metadata - '{CLOSED}' - '{PROMISED}' - '{SHARED}') || excluded.metadata,
            fence = excluded.fence, updated_at = clock_timestamp()
        WHERE a.fence <= excluded.fence
        RETURNING name),
    moved AS (
        UPDATE compute_nodes n SET pool = w.pool, fence = w.token
        FROM wanted w JOIN made ON made.name = w.pool WHERE n.id = ANY(w.nodes))
    SELECT name FROM made
""")


def lock(conn: Connection, pools: Sequence[str], names: Sequence[str]) -> Locked:
    """Lock the unlocked ones of the pools, and of the nodes with these names or in these pools."""
    rows = conn.execute(_LOCK, {"pools": list(pools), "names": list(names)}).all()
    nodes = [NodeRow(*row) for row in rows if row.id is not None]
    busy = frozenset(row.pool for row in rows if row.id is None)
    return Locked(sorted(nodes, key=lambda one: (one.name, one.id)), busy)


def occupied(conn: Connection, ids: Collection[int]) -> frozenset[int]:
    """Return those of the nodes that have servers."""
    return frozenset(conn.scalars(_OCCUPIED, {"ids": list(ids)})) if ids else frozenset()


def lend(conn: Connection, creations: Sequence[PoolCreation]) -> frozenset[str]:
    """Create the pools and move their nodes; return those whose token is not outdated. The nodes are locked."""
    if not creations:
        return frozenset()
    rows = [
        {
            "pool": creation.pool,
            "owner": creation.project_id,
            "shared": ",".join(creation.shared_with) or None,
            "token": creation.token,
            "nodes": creation.nodes,
        }
        for creation in creations
    ]
    return frozenset(conn.scalars(_LEND, {"pools": json.dumps(rows)}))
