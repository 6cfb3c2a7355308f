"""Aggregates of either kind, and the nodes in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, Integer, func, literal, or_, select, text, update
from sqlalchemy import delete as delete_from
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql import insert as insert_into

from climate.compute.models.aggregate import NAMED, ORDINARY, POOL, ZONE, Aggregate
from climate.compute.store.columns import in_array
from climate.compute.store.tables.nodes import aggregate_nodes, aggregates, nodes

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

_NODE = f"""
    SELECT n.id, n.name, n.service_host, n.pool, n.outside, n.present,
           ARRAY(SELECT m.aggregate_id FROM compute_aggregate_nodes m WHERE m.node_id = n.id) AS aggregates,
           ARRAY(SELECT DISTINCT s.project_id FROM compute_servers s WHERE s.node_id = n.id) AS projects,
           EXISTS (SELECT FROM compute_servers s WHERE s.node_id = n.id AND NOT EXISTS (
               SELECT FROM compute_aggregate_nodes m JOIN compute_aggregates a ON a.id = m.aggregate_id
               WHERE m.node_id = n.id AND a.metadata ->> '{NAMED}' = s.granted)) AS strangers
    FROM compute_nodes n
"""

# A statement of its own after the lock, so that it reads the commit of the former holder.
_READ = text(f"{_NODE} WHERE n.id = ANY(CAST(:ids AS int[])) ORDER BY n.name, n.id")


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
    row = insert_into(aggregates).values(name=name, kind=kind, metadata=dict(metadata))
    aggregate_id: int | None = conn.scalar(
        row.on_conflict_do_nothing(index_elements=["name"]).returning(aggregates.c.id)
    )
    return aggregate_id


def listed(conn: Connection, aggregate_id: int | None = None) -> list[Aggregate]:
    """Return all aggregates with the names of their nodes, or the one of that id."""
    rows = conn.execute(_LIST, {"id": aggregate_id}).mappings()
    return [Aggregate(**{**row, "nodes": tuple(row["nodes"])}) for row in rows]


def lock(conn: Connection, aggregate_id: int, *, drop: bool = False) -> Aggregate | None:
    """Return the aggregate, locked, or locked to be dropped; None if it does not exist.

    The row of an aggregate is always locked before those of nodes.
    """
    # A transaction that keeps the aggregate may be about to put a node into it. FOR UPDATE waits until it ends, so that
    # the nodes are counted afterwards.
    row = select(aggregates.c.id).where(aggregates.c.id == aggregate_id).with_for_update(key_share=not drop)
    if conn.execute(row).first() is None:
        return None
    return listed(conn, aggregate_id)[0]


def lock_named(conn: Connection, host: str) -> list[Member]:
    """Lock the nodes of that name, or of the service host of that name, in name order."""
    return _lock(conn, or_(nodes.c.name == host, nodes.c.service_host == host))


def lock_members(conn: Connection, aggregate: Aggregate) -> list[Member]:
    """Lock the nodes that are in an aggregate of either kind, in name order."""
    if aggregate.kind == POOL:
        is_member = nodes.c.pool == aggregate.name
    else:
        members = select(aggregate_nodes.c.node_id).where(aggregate_nodes.c.aggregate_id == aggregate.id)
        is_member = nodes.c.id.in_(members)
    return _lock(conn, is_member)


def zoned_otherwise(conn: Connection, aggregate_id: int, ids: Sequence[int], zone: str) -> tuple[str, str, str] | None:
    """Return one of these nodes that another aggregate puts into another zone: (node, that aggregate, that zone)."""
    other = aggregates.c.metadata[ZONE].astext
    query = (
        select(nodes.c.name, aggregates.c.name, other)
        .join_from(aggregate_nodes, aggregates)
        .join(nodes, nodes.c.id == aggregate_nodes.c.node_id)
        .where(in_array(aggregate_nodes.c.node_id, ids), aggregates.c.id != aggregate_id, other != zone)
        .order_by(nodes.c.name, aggregates.c.id)
    )
    row = conn.execute(query.limit(1)).one_or_none()
    return None if row is None else (row[0], row[1], row[2])


def foreign_pools(conn: Connection, pools: Sequence[str]) -> frozenset[str]:
    """Return those of these pools that are not lent under a token of this deployment."""
    query = select(aggregates.c.name).where(in_array(aggregates.c.name, pools), aggregates.c.fence == 0)
    return frozenset(conn.scalars(query))


def is_taken(conn: Connection, name: str, aggregate_id: int) -> bool:
    """Return whether another aggregate has that name."""
    query = select(aggregates.c.id).where(aggregates.c.name == name, aggregates.c.id != aggregate_id)
    return conn.execute(query).first() is not None


def change(conn: Connection, aggregate_id: int, name: str, kind: str, metadata: Mapping[str, str]) -> None:
    """Update the name, kind and metadata of a locked aggregate."""
    values = {"name": name, "kind": kind, "metadata": dict(metadata), "updated_at": func.clock_timestamp()}
    conn.execute(update(aggregates).where(aggregates.c.id == aggregate_id).values(values))


def delete(conn: Connection, aggregate_id: int) -> None:
    """Delete a locked aggregate without nodes."""
    conn.execute(delete_from(aggregates).where(aggregates.c.id == aggregate_id))


def join(conn: Connection, aggregate: Aggregate, kind: str, ids: Sequence[int]) -> None:
    """Add locked nodes to an aggregate of this kind."""
    if kind == ORDINARY:
        rows = select(literal(aggregate.id), func.unnest(literal(list(ids), ARRAY(Integer))))
        conn.execute(insert_into(aggregate_nodes).from_select(["aggregate_id", "node_id"], rows))
    else:
        _move(conn, aggregate.name, ids)
    _touch(conn, aggregate)


def remove_nodes(conn: Connection, aggregate: Aggregate, ids: Sequence[int]) -> None:
    """Remove locked nodes from an aggregate."""
    if aggregate.kind == ORDINARY:
        own = aggregate_nodes.c
        conn.execute(delete_from(aggregate_nodes).where(own.aggregate_id == aggregate.id, in_array(own.node_id, ids)))
    else:
        _move(conn, None, ids)
    _touch(conn, aggregate)


def rewrite(conn: Connection, ids: Sequence[int]) -> None:
    """Write the rows of a pool's nodes, so that cached snapshots read the pool's metadata again."""
    # A write without changes: the scheduler reads a pool's metadata with the rows of its nodes that were written.
    conn.execute(update(nodes).where(in_array(nodes.c.id, ids)).values(pool=nodes.c.pool))


def _move(conn: Connection, pool: str | None, ids: Sequence[int]) -> None:
    """Move nodes into a pool, or into none."""
    conn.execute(update(nodes).where(in_array(nodes.c.id, ids)).values(pool=pool, outside=pool is not None))


def _touch(conn: Connection, aggregate: Aggregate) -> None:
    """Record the time of a change."""
    this = update(aggregates).where(aggregates.c.id == aggregate.id)
    conn.execute(this.values(updated_at=func.clock_timestamp()))


def _lock(conn: Connection, condition: ColumnElement[bool]) -> list[Member]:
    """Lock the nodes that fulfil a condition, in name order."""
    query = select(nodes.c.id).where(condition).order_by(nodes.c.name, nodes.c.id)
    return _members(conn, list(conn.scalars(query.with_for_update(key_share=True))))


def _members(conn: Connection, ids: Sequence[int]) -> list[Member]:
    return [Member(**row) for row in conn.execute(_READ, {"ids": list(ids)}).mappings()]
