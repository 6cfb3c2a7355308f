"""Row locks of nodes, taken in the order of their names and ids: docs/locks.md.

A transaction that changes several nodes locks all of them first. One that changes a single node, and locks no other
afterwards, needs none of this.
"""

from collections.abc import Sequence

from sqlalchemy import Connection, select, text

from climate.compute.store.columns import in_parameter
from climate.compute.store.tables.nodes import nodes

_LOCK = (
    select(nodes.c.id)
    .where(in_parameter(nodes.c.id, "ids"))
    .order_by(nodes.c.name, nodes.c.id)
    .with_for_update(key_share=True)
)

_LOCK_OF_MIGRATION = text("""
    SELECT id FROM compute_nodes
    WHERE id IN (SELECT s.node_id FROM compute_migrations m JOIN compute_servers s ON s.id = m.server_id
                 WHERE m.id = :id
                 UNION ALL SELECT m.held_node_id FROM compute_migrations m WHERE m.id = :id)
    ORDER BY name, id FOR NO KEY UPDATE
""")


def lock(conn: Connection, ids: Sequence[int]) -> None:
    """Lock nodes."""
    conn.execute(_LOCK, {"ids": list(ids)})


def lock_of_migration(conn: Connection, migration_id: int | None) -> None:
    """Lock the node of a migrating server, whose row is locked, and the node that its migration holds.

    None: the server is not migrating, and is on one node at most.
    """
    if migration_id is not None:
        conn.execute(_LOCK_OF_MIGRATION, {"id": migration_id})
