"""SQL for the availability zone of a node: that of its aggregates, else its own."""

from sqlalchemy import Connection, select, text

from climate.compute.models.aggregate import ZONE
from climate.compute.store.tables.nodes import nodes

ZONE_OF_NODE = f"""coalesce((SELECT min(za.metadata ->> '{ZONE}') FROM compute_aggregate_nodes zm
                     JOIN compute_aggregates za ON za.id = zm.aggregate_id WHERE zm.node_id = n.id), n.zone)"""
"""Expression in which the row of the node is `n`. NULL: the default zone."""

# Runs with every request that names a zone: the zone of each node in turn would take 20 ms at 10,000 nodes.
_EXISTS = text(f"""
    SELECT EXISTS (SELECT FROM compute_aggregates a
                   JOIN compute_aggregate_nodes m ON m.aggregate_id = a.id
                   JOIN compute_nodes n ON n.id = m.node_id
                   JOIN compute_services v ON v.host = n.service_host
                   WHERE a.metadata ->> '{ZONE}' = :zone AND n.present AND v.enabled)
        OR EXISTS (SELECT FROM compute_nodes n JOIN compute_services v ON v.host = n.service_host
                   WHERE coalesce(n.zone, :default) = :zone AND n.present AND v.enabled
                     AND NOT EXISTS (SELECT FROM compute_aggregate_nodes m
                                     JOIN compute_aggregates a ON a.id = m.aggregate_id
                                     WHERE m.node_id = n.id AND a.metadata ->> '{ZONE}' IS NOT NULL))
""")


def exists(conn: Connection, zone: str, default: str) -> bool:
    """Return whether a node of an enabled service is in a zone; `default`: the zone of nodes that name none."""
    return bool(conn.execute(_EXISTS, {"zone": zone, "default": default}).scalar_one())


def has_node(conn: Connection, host: str | None, node: str | None) -> bool:
    """Return whether there is a node of that name, or of that service host, or both. None: any."""
    query = select(nodes.c.id).where(nodes.c.present)
    if host is not None:
        query = query.where(nodes.c.service_host == host)
    if node is not None:
        query = query.where(nodes.c.name == node)
    return bool(conn.scalar(select(query.exists())))
