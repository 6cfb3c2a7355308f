"""Several pools that are taken back in one transaction."""

import json
from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, select, text

from climate.compute.models.aggregate import POOL
from climate.compute.models.node import FREEPOOL
from climate.compute.store.columns import in_parameter
from climate.compute.store.reservations.batch_lend import NodeRow
from climate.compute.store.tables.nodes import aggregates


class PoolDeletion(NamedTuple):
    """A pool to be deleted: the pool to which its nodes go, the token of the caller, and the ids of its nodes."""

    pool: str
    to: str | None
    token: int
    nodes: list[int]


_KEEP = (
    select(aggregates.c.name)
    .where(in_parameter(aggregates.c.name, "names"), aggregates.c.kind == bindparam("kind"))
    .order_by(aggregates.c.name)
    .with_for_update(read=True, key_share=True, skip_locked=True)
)

# Two statements: only the second one sees a node that came into a pool before the pool was locked.
_LOCK_POOLS = (
    select(aggregates.c.name, aggregates.c.fence)
    .where(in_parameter(aggregates.c.name, "pools"))
    .order_by(aggregates.c.name)
    .with_for_update(key_share=True, skip_locked=True)
)

_OWN = "(pool = ANY(CAST(:pools AS text[])) OR (pool = :freepool AND name = ANY(CAST(:names AS text[]))))"
_LOCK_NODES = text(f"""
    WITH held AS MATERIALIZED (
        SELECT id, name, pool, fence, outside FROM compute_nodes WHERE {_OWN}
        ORDER BY name, id FOR NO KEY UPDATE SKIP LOCKED)
    SELECT id, name, pool, fence, outside, true AS is_locked FROM held
    UNION ALL
    SELECT id, name, pool, fence, outside, false FROM compute_nodes n
    WHERE {_OWN} AND NOT EXISTS (SELECT FROM held h WHERE h.id = n.id)
""")

_TAKE_BACK = text("""
    WITH wanted AS MATERIALIZED (
        SELECT * FROM jsonb_to_recordset(CAST(:pools AS jsonb))
            AS w (pool text, target text, token bigint, nodes int[])),
    moved AS (
        UPDATE compute_nodes n SET pool = CASE WHEN n.pool = w.pool THEN w.target ELSE n.pool END, fence = w.token
        FROM wanted w WHERE n.id = ANY(w.nodes))
    DELETE FROM compute_aggregates a USING wanted w WHERE a.name = w.pool
""")


def lock_unlocked(conn: Connection, names: Collection[str]) -> frozenset[str]:
    """Keep the unlocked ones of these pools until the transaction ends; return them."""
    return frozenset(conn.scalars(_KEEP, {"names": sorted(names), "kind": POOL})) if names else frozenset()


def lock(conn: Connection, pools: Sequence[str], names: Sequence[str]) -> tuple[dict[str, int], list[NodeRow]]:
    """Lock the unlocked ones of the pools, of their nodes, and of nodes of the reservation pool with these names.

    Return the highest tokens used on the locked pools, and all of these nodes by name and id.
    """
    fences = {row.name: row.fence for row in conn.execute(_LOCK_POOLS, {"pools": list(pools)})}
    given = {"pools": list(pools), "names": list(names), "freepool": FREEPOOL}
    nodes = [NodeRow(*row) for row in conn.execute(_LOCK_NODES, given)]
    return fences, sorted(nodes, key=lambda one: (one.name, one.id))


def take_back(conn: Connection, deletions: Sequence[PoolDeletion]) -> None:
    """Move the nodes that are in their pool to another one, or to none; fence all nodes, and delete the pools.

    The pools and nodes are locked.
    """
    if deletions:
        rows = [
            {"pool": deletion.pool, "target": deletion.to, "token": deletion.token, "nodes": deletion.nodes}
            for deletion in deletions
        ]
        conn.execute(_TAKE_BACK, {"pools": json.dumps(rows)})
