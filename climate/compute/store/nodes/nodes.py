"""Nodes for the API."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select, text

from climate.compute.models.node import Node
from climate.compute.store.columns import in_array
from climate.compute.store.nodes.availability_zones import ZONE_OF_NODE
from climate.compute.store.tables import servers as tables

_LIST = text(f"""
    SELECT n.id, n.uuid::text, n.name, n.service_host, v.uuid::text AS service_uuid, n.vcpus, n.memory_mb, n.local_gb,
           n.used_vcpus, n.used_ram_mb, n.used_disk_mb, n.hypervisor_type, n.hypervisor_version, n.cpu_info,
           {ZONE_OF_NODE} AS zone, n.pool, n.host_ip, n.reserved_ram_mb, n.reserved_disk_mb, n.present,
           n.maintenance, n.stats, v.id AS service_id, v.enabled, v.disabled_reason,
           n.present AND NOT v.forced_down
           AND v.beat_at > CAST(:now AS timestamptz) - make_interval(secs => :down) AS up,
           (SELECT count(*) FROM compute_servers s WHERE s.node_id = n.id) AS servers
    FROM compute_nodes n JOIN compute_services v ON v.host = n.service_host
    WHERE (CAST(:name AS text) IS NULL OR n.name = :name)
    ORDER BY n.id
""")

_OFFERED = text("""
    SELECT DISTINCT lower(w) FROM compute_nodes n, jsonb_array_elements(n.supported) AS t,
                                  jsonb_array_elements_text(t) AS w
    UNION SELECT lower(hypervisor_type) FROM compute_nodes
""")


@dataclass(frozen=True, slots=True)
class Held:
    """A node whose row is locked by this transaction."""

    id: int
    name: str
    pool: str | None
    fence: int
    outside: bool
    """It was added to its pool by the compute API, not by a lease of this deployment."""


def listed(conn: Connection, now: datetime, down: float, name: str | None = None) -> list[Node]:
    """Return all nodes, or those of one name; a service is down after `down` seconds without a heartbeat."""
    rows = conn.execute(_LIST, {"now": now, "down": down, "name": name})
    return [Node(**row) for row in rows.mappings()]


def servers(conn: Connection, ids: Sequence[int]) -> Mapping[int, list[tuple[str, str]]]:
    """Return node -> (id, name) of the servers on it, oldest first."""
    own = tables.servers.c
    query = select(own.node_id, own.id, own.name).where(in_array(own.node_id, ids)).order_by(own.created_at, own.id)
    result: dict[int, list[tuple[str, str]]] = {node_id: [] for node_id in ids}
    for node_id, server_id, name in conn.execute(query):
        result[node_id].append((server_id, name))
    return result


def offered(conn: Connection) -> set[str]:
    """Return the architectures, hypervisors and modes that nodes report."""
    return set(conn.execute(_OFFERED).scalars())
