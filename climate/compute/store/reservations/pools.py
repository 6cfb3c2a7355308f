"""Pools: the aggregates in which nodes are kept for leases, or lent to one."""

import json
from collections.abc import Mapping, Sequence

from sqlalchemy import ColumnElement, Connection, and_, exists, func, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert

from climate.compute.models.aggregate import POOL
from climate.compute.models.node import CLOSED, FREEPOOL, KEPT, OWNER, PROMISED, SHARED
from climate.compute.store.columns import in_array
from climate.compute.store.nodes.nodes import Held
from climate.compute.store.tables.nodes import aggregates, nodes
from climate.database.advisory_locks import Subject

# The pool and its nodes in one statement; no row of the pool is returned if the token is outdated. Nodes that are in
# it already are written too, so that the scheduler reads that the pool is open again.
_LEND = text(f"""
    WITH pool AS (
        INSERT INTO compute_aggregates AS a (name, metadata, fence) VALUES (:pool, CAST(:metadata AS jsonb), :token)
        ON CONFLICT (name) DO UPDATE
        SET kind = 'pool', metadata = (a.metadata - '{CLOSED}' - '{PROMISED}' - '{SHARED}') || excluded.metadata,
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
    is_named = in_array(nodes.c.name, names)
    return _lock_nodes(conn, is_named if pool is None else or_(is_named, nodes.c.pool == pool))


def lock_pool(conn: Connection, pool: str, free: Sequence[str] = ()) -> list[Held]:
    """Lock the nodes of a pool, and those of the reservation pool with a name in `free`, in name order."""
    is_free = and_(nodes.c.pool == FREEPOOL, in_array(nodes.c.name, free))
    return _lock_nodes(conn, or_(nodes.c.pool == pool, is_free))


def _lock_nodes(conn: Connection, condition: ColumnElement[bool]) -> list[Held]:
    """Lock the nodes that fulfil a condition, in name order."""
    own = nodes.c
    query = select(own.id, own.name, own.pool, own.fence, own.outside).where(condition).order_by(own.name, own.id)
    return [Held(*row) for row in conn.execute(query.with_for_update(key_share=True))]


def move(conn: Connection, node_id: int, pool: str | None, token: int = 0) -> None:
    """Move a locked node into a pool or into none; its token never decreases."""
    values = {"pool": pool, "outside": False, "fence": func.greatest(nodes.c.fence, token)}
    conn.execute(update(nodes).where(nodes.c.id == node_id).values(values))


def ensure(conn: Connection, pool: str) -> bool:
    """Create a pool without owner unless it exists, and keep it; False if an ordinary aggregate has its name."""
    conn.execute(insert(aggregates).values(name=pool).on_conflict_do_nothing(index_elements=["name"]))
    kind = select(aggregates.c.kind).where(aggregates.c.name == pool)
    return conn.scalar(kind.with_for_update(read=True, key_share=True)) == POOL


def lock_lent(conn: Connection, pool: str) -> bool:
    """Keep a lent pool until the transaction ends; False if it does not exist."""
    this = (aggregates.c.name == pool, aggregates.c.metadata.has_key(OWNER), aggregates.c.fence > 0)
    return conn.execute(select(aggregates.c.kind).where(*this).with_for_update(key_share=True)).first() is not None


def lend(
    conn: Connection, pool: str, project_id: str, ids: Sequence[int], token: int, shared_with: Sequence[str] = ()
) -> bool:
    """Create the pool and move nodes into it; False if the token is outdated."""
    shared = {SHARED: ",".join(shared_with)} if shared_with else {}
    metadata = json.dumps({OWNER: project_id, **shared})
    given = {"pool": pool, "metadata": metadata, "ids": list(ids), "token": token}
    return bool(conn.execute(_LEND, given).scalar_one())


def close(conn: Connection, pool: str, ids: Sequence[int], token: int) -> None:
    """Mark the pool as closed."""
    conn.execute(_CLOSE, {"pool": pool, "metadata": json.dumps({CLOSED: "true"}), "ids": list(ids), "token": token})


def lock(conn: Connection, pool: str) -> int | None:
    """Lock a pool before its nodes; return the highest token used on it, None if it does not exist."""
    # Not FOR UPDATE: a node whose row is written twice by one transaction is checked against its pool again, under a
    # share of its key. A transaction that holds one also holds a node of the pool, and ends once all are locked.
    fence = select(aggregates.c.fence).where(aggregates.c.name == pool).with_for_update(key_share=True)
    value: int | None = conn.scalar(fence)
    if value is None:
        conn.execute(_QUEUE, {"pool": pool})
        value = conn.scalar(fence)
    return value


def is_lent_from_outside(conn: Connection, pool: str, project_id: str) -> bool:
    """Return whether a pool is lent to a project, and not under a token of this deployment."""
    own = aggregates.c
    this = (own.name == pool, own.kind == POOL, own.fence == 0, own.metadata[OWNER].astext == project_id)
    return bool(conn.scalar(select(exists().where(*this))))


def servers_on(conn: Connection, ids: Sequence[int], *, but_granted: bool = False) -> int:
    """Return the number of servers on these nodes; `but_granted`: without those that have a slot there."""
    count: int = conn.execute(_SERVERS_ON, {"ids": list(ids), "granted": but_granted}).scalar_one()
    return count


def take_back(conn: Connection, pool: str, ids: Sequence[int], token: int, to: str | None) -> None:
    """Move those of the nodes that are in the pool to another one, or to none, and delete it; fence them all."""
    conn.execute(_TAKE_BACK, {"pool": pool, "ids": list(ids), "token": token, "to": to})


def alive(conn: Connection, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names that pools have."""
    query = select(aggregates.c.name).where(in_array(aggregates.c.name, names)).order_by(aggregates.c.name)
    return tuple(conn.scalars(query)) if names else ()


def members(conn: Connection, *, own: bool) -> Mapping[str, frozenset[str]]:
    """Return pool -> names of its nodes; own: without nodes that were added from outside.

    Pools without owner are included if they have nodes, and the reservation pool always.
    """
    given = {"own": own, "unseen": sorted(KEPT - {FREEPOOL})}
    return {row.name: frozenset(row.nodes or ()) for row in conn.execute(_MEMBERS, given)}
