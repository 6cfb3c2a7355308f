"""Aggregates of either kind, and the nodes in them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text

from climate.compute.models.aggregate import NAMED, ORDINARY, POOL, ZONE, Aggregate

_INSERT = text("""
    INSERT INTO compute_aggregates (name, kind, metadata) VALUES (:name, :kind, CAST(:metadata AS jsonb))
    ON CONFLICT (name) DO NOTHING RETURNING id
""")

_LIST = text("""
    SELECT a.id, a.uuid::text, a.name, a.kind, a.metadata, a.fence, a.created_at, a.updated_at,
           coalesce(p.nodes, m.nodes, '{}') AS nodes
    FROM compute_aggregates a
    LEFT JOIN (SELECT pool, array_agg(name ORDER BY name, id) AS nodes FROM compute_nodes GROUP BY pool) p
           ON p.pool = a.name
    LEFT JOIN (SELECT m.aggregate_id, array_agg(n.name ORDER BY n.name, n.id) AS nodes
               FROM compute_aggregate_nodes m JOIN compute_nodes n ON n.id = m.node_id GROUP BY m.aggregate_id) m
           ON m.aggregate_id = a.id
    WHERE CAST(:id AS int) IS NULL OR a.id = :id
    ORDER BY a.id
""")

_LOCK = text("SELECT id FROM compute_aggregates WHERE id = :id FOR NO KEY UPDATE")

# A transaction that keeps the aggregate may be about to put a node into it: it ends before the nodes are counted.
_LOCK_TO_DROP = text("SELECT id FROM compute_aggregates WHERE id = :id FOR UPDATE")

_NODE = f"""
    SELECT n.id, n.name, n.service_host, n.pool, n.outside, n.present,
           ARRAY(SELECT m.aggregate_id FROM compute_aggregate_nodes m WHERE m.node_id = n.id) AS aggregates,
           ARRAY(SELECT DISTINCT s.project_id FROM compute_servers s WHERE s.node_id = n.id) AS projects,
           EXISTS (SELECT FROM compute_servers s WHERE s.node_id = n.id AND NOT EXISTS (
               SELECT FROM compute_aggregate_nodes m JOIN compute_aggregates a ON a.id = m.aggregate_id
               WHERE m.node_id = n.id AND a.metadata ->> '{NAMED}' = s.granted)) AS strangers
    FROM compute_nodes n
"""

_LOCK_NAMED = text("""
    SELECT id FROM compute_nodes WHERE name = :host OR service_host = :host ORDER BY name, id FOR NO KEY UPDATE
""")

_LOCK_MEMBERS = text("""
    SELECT id FROM compute_nodes
    WHERE pool = :name OR id IN (SELECT node_id FROM compute_aggregate_nodes WHERE aggregate_id = :id)
    ORDER BY name, id FOR NO KEY UPDATE
""")

# A statement of its own after the lock, so that it reads the commit of the former holder.
_READ = text(f"{_NODE} WHERE n.id = ANY(CAST(:ids AS int[])) ORDER BY n.name, n.id")

_ZONED = text(f"""
    SELECT n.name AS node, a.name AS aggregate, a.metadata ->> '{ZONE}' AS zone
    FROM compute_aggregate_nodes m
    JOIN compute_aggregates a ON a.id = m.aggregate_id
    JOIN compute_nodes n ON n.id = m.node_id
    WHERE m.node_id = ANY(CAST(:ids AS int[])) AND a.id <> :id AND a.metadata ->> '{ZONE}' <> :zone
    ORDER BY n.name, a.id LIMIT 1
""")

_CHANGE = text("""
    UPDATE compute_aggregates
    SET name = :name, kind = :kind, metadata = CAST(:metadata AS jsonb), updated_at = clock_timestamp()
    WHERE id = :id
""")

_TAKEN = text("SELECT id FROM compute_aggregates WHERE name = :name AND id <> :id")

_TOUCH = text("UPDATE compute_aggregates SET updated_at = clock_timestamp() WHERE id = :id")

_LENT_FROM_OUTSIDE = text("SELECT name FROM compute_aggregates WHERE name = ANY(CAST(:names AS text[])) AND fence = 0")

_DELETE = text("DELETE FROM compute_aggregates WHERE id = :id")

_JOIN = text("""
    INSERT INTO compute_aggregate_nodes (aggregate_id, node_id) SELECT :id, unnest(CAST(:ids AS int[]))
""")

_LEAVE = text("""
    DELETE FROM compute_aggregate_nodes WHERE aggregate_id = :id AND node_id = ANY(CAST(:ids AS int[]))
""")

_PUT = text("""
    UPDATE compute_nodes SET pool = CAST(:pool AS text), outside = CAST(:pool AS text) IS NOT NULL
    WHERE id = ANY(CAST(:ids AS int[]))
""")

# A write without changes: the scheduler reads a pool's metadata with the rows of its nodes that were written.
_REWRITE = text("UPDATE compute_nodes SET pool = pool WHERE id = ANY(CAST(:ids AS int[]))")


@dataclass(frozen=True, slots=True)
class Member:
    """A node whose row is locked by this transaction, with its aggregates and the owners of its servers."""

    id: int
    name: str
    service_host: str
    pool: str | None
    outside: bool
    """It was added to its pool by the compute API, not by a lease of this deployment."""
    present: bool
    aggregates: Sequence[int]
    """The ordinary ones."""
    projects: Sequence[str]
    strangers: bool
    """It has servers that are not there by a reservation which one of its aggregates names."""


def insert(conn: Connection, name: str, kind: str, metadata: Mapping[str, str]) -> int | None:
    """Insert an aggregate; return its id, or None if the name is taken."""
    given = {"name": name, "kind": kind, "metadata": json.dumps(dict(metadata))}
    made: int | None = conn.execute(_INSERT, given).scalar()
    return made


def listed(conn: Connection, aggregate_id: int | None = None) -> list[Aggregate]:
    """Return all aggregates with the names of their nodes, or the one of that id."""
    rows = conn.execute(_LIST, {"id": aggregate_id}).mappings()
    return [Aggregate(**{**row, "nodes": tuple(row["nodes"])}) for row in rows]


def lock(conn: Connection, aggregate_id: int, *, drop: bool = False) -> Aggregate | None:
    """Return the aggregate, locked, or locked to be dropped; None if it does not exist.

    The row of an aggregate is always locked before those of nodes.
    """
    if conn.execute(_LOCK_TO_DROP if drop else _LOCK, {"id": aggregate_id}).first() is None:
        return None
    return listed(conn, aggregate_id)[0]


def lock_named(conn: Connection, host: str) -> list[Member]:
    """Lock the nodes of that name, or of the service host of that name, in name order."""
    return _members(conn, list(conn.execute(_LOCK_NAMED, {"host": host}).scalars()))


def lock_members(conn: Connection, aggregate: Aggregate) -> list[Member]:
    """Lock the nodes that are in an aggregate of either kind, in name order."""
    given = {"id": aggregate.id, "name": aggregate.name if aggregate.kind == POOL else None}
    return _members(conn, list(conn.execute(_LOCK_MEMBERS, given).scalars()))


def zoned_otherwise(conn: Connection, aggregate_id: int, ids: Sequence[int], zone: str) -> tuple[str, str, str] | None:
    """Return one of these nodes that another aggregate puts into another zone: (node, that aggregate, that zone)."""
    found = conn.execute(_ZONED, {"id": aggregate_id, "ids": list(ids), "zone": zone}).one_or_none()
    return tuple(found) if found else None


def lent_from_outside(conn: Connection, pools: Sequence[str]) -> frozenset[str]:
    """Return those of these pools that are not lent under a token of this deployment."""
    return frozenset(conn.execute(_LENT_FROM_OUTSIDE, {"names": list(pools)}).scalars())


def is_taken(conn: Connection, name: str, aggregate_id: int) -> bool:
    """Return whether another aggregate has that name."""
    return conn.execute(_TAKEN, {"name": name, "id": aggregate_id}).first() is not None


def change(conn: Connection, aggregate_id: int, name: str, kind: str, metadata: Mapping[str, str]) -> None:
    """Update the name, kind and metadata of a locked aggregate."""
    given = {"id": aggregate_id, "name": name, "kind": kind, "metadata": json.dumps(dict(metadata))}
    conn.execute(_CHANGE, given)


def delete(conn: Connection, aggregate_id: int) -> None:
    """Delete a locked aggregate without nodes."""
    conn.execute(_DELETE, {"id": aggregate_id})


def join(conn: Connection, aggregate: Aggregate, kind: str, ids: Sequence[int]) -> None:
    """Add locked nodes to an aggregate of this kind."""
    if kind == ORDINARY:
        conn.execute(_JOIN, {"id": aggregate.id, "ids": list(ids)})
    else:
        conn.execute(_PUT, {"pool": aggregate.name, "ids": list(ids)})
    conn.execute(_TOUCH, {"id": aggregate.id})


def leave(conn: Connection, aggregate: Aggregate, ids: Sequence[int]) -> None:
    """Remove locked nodes from an aggregate."""
    if aggregate.kind == ORDINARY:
        conn.execute(_LEAVE, {"id": aggregate.id, "ids": list(ids)})
    else:
        conn.execute(_PUT, {"pool": None, "ids": list(ids)})
    conn.execute(_TOUCH, {"id": aggregate.id})


def rewrite(conn: Connection, ids: Sequence[int]) -> None:
    """Write the rows of a pool's nodes, so that cached snapshots read the pool's metadata again."""
    conn.execute(_REWRITE, {"ids": list(ids)})


def _members(conn: Connection, ids: Sequence[int]) -> list[Member]:
    return [Member(**row) for row in conn.execute(_READ, {"ids": list(ids)}).mappings()]
