"""Nodes: reading them, claiming of them, and moving them between pools."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from climate.compute.host import CLOSED, OWNER, SERVICE_DOWN_SECONDS, Node
from climate.compute.request import Placement

_LIST = text("""
    SELECT n.id, n.uuid::text, n.name, n.service_host, v.uuid::text AS service_uuid, n.vcpus, n.memory_mb, n.local_gb,
           n.used_vcpus, n.used_ram_mb, n.used_disk_mb, n.hypervisor_type, n.hypervisor_version, n.cpu_info,
           n.zone, n.pool, n.present, v.enabled,
           n.present AND v.beat_at > CAST(:now AS timestamptz) - make_interval(secs => :down) AS up,
           (SELECT count(*) FROM compute_servers s WHERE s.node_id = n.id) AS servers
    FROM compute_nodes n JOIN compute_services v ON v.host = n.service_host
    WHERE (CAST(:name AS text) IS NULL OR n.name = :name)
    ORDER BY n.id
""")

_SNAPSHOT = text(f"""
    SELECT n.id, n.name, n.service_host, n.vcpus, n.memory_mb, n.local_gb, n.used_vcpus, n.used_ram_mb,
           n.used_disk_mb, n.ram_ratio, n.cpu_ratio, n.disk_ratio, n.zone, n.pool,
           a.metadata ->> '{OWNER}' AS owner, coalesce(a.metadata ->> '{CLOSED}', '') = 'true' AS closed,
           v.enabled AND n.present AND v.beat_at > CAST(:now AS timestamptz) - make_interval(secs => :down) AS up
    FROM compute_nodes n
    JOIN compute_services v ON v.host = n.service_host
    LEFT JOIN compute_aggregates a ON a.name = n.pool
    ORDER BY n.id
""")

_LOCK = text("""
    SELECT id, name, pool, fence FROM compute_nodes WHERE id = ANY(CAST(:ids AS int[]))
    ORDER BY name, id FOR NO KEY UPDATE
""")

# A statement of its own after the lock: it sees what the former holder of the lock has committed.
_CLAIM = text(f"""
    UPDATE compute_nodes n
    SET used_vcpus = used_vcpus + c.count * :vcpus,
        used_ram_mb = used_ram_mb + c.count * :ram_mb,
        used_disk_mb = used_disk_mb + c.count * CAST(:disk_mb AS bigint)
    FROM unnest(CAST(:ids AS int[]), CAST(:counts AS int[])) AS c(id, count)
    WHERE n.id = c.id AND n.present
      AND CASE WHEN n.pool IS NULL THEN cardinality(CAST(:pools AS text[])) = 0
               ELSE n.pool = ANY(CAST(:pools AS text[])) AND EXISTS (
                    SELECT FROM compute_aggregates a
                    WHERE a.name = n.pool AND a.metadata ->> '{OWNER}' = :project_id
                      AND coalesce(a.metadata ->> '{CLOSED}', '') <> 'true')
          END
      AND (CAST(:forced AS boolean) OR (
               n.memory_mb >= :ram_mb AND n.vcpus >= :vcpus
           AND n.used_ram_mb + c.count * :ram_mb <= n.memory_mb * n.ram_ratio
           AND n.used_vcpus + c.count * :vcpus <= n.vcpus * n.cpu_ratio
           AND n.used_disk_mb + c.count * CAST(:disk_mb AS bigint) <= n.local_gb * 1024.0 * n.disk_ratio))
    RETURNING n.id
""")

_RELEASE = text("""
    UPDATE compute_nodes
    SET used_vcpus = used_vcpus - :vcpus, used_ram_mb = used_ram_mb - :ram_mb, used_disk_mb = used_disk_mb - :disk_mb
    WHERE id = :id
""")


@dataclass(frozen=True, slots=True)
class Held:
    """A node whose row is locked by this transaction."""

    id: int
    name: str
    pool: str | None
    fence: int


def listed(conn: Connection, now: datetime, name: str | None = None) -> list[Node]:
    """All nodes, or those of one name."""
    rows = conn.execute(_LIST, {"now": now, "down": SERVICE_DOWN_SECONDS, "name": name})
    return [Node(**row) for row in rows.mappings()]


def columns(conn: Connection, now: datetime) -> Sequence[Mapping[str, Any]]:
    """What the scheduler's snapshot is made of."""
    return [dict(row) for row in conn.execute(_SNAPSHOT, {"now": now, "down": SERVICE_DOWN_SECONDS}).mappings()]


def lock(conn: Connection, ids: Sequence[int]) -> list[Held]:
    """Lock nodes in name order, the one order in which all lock them."""
    return [Held(*row) for row in conn.execute(_LOCK, {"ids": list(ids)})]


def claim(conn: Connection, counts: Mapping[int, int], place: Placement) -> bool:
    """Take room for `counts[node]` servers on each node: all or False.  The nodes must be locked."""
    given = {"ids": list(counts), "counts": list(counts.values()), "pools": list(place.pools), "forced": place.forced}
    demand = {"vcpus": place.vcpus, "ram_mb": place.ram_mb, "disk_mb": place.disk_mb, "project_id": place.project_id}
    return len(conn.execute(_CLAIM, given | demand).all()) == len(counts)


def release(conn: Connection, node_id: int, vcpus: int, ram_mb: int, disk_mb: int) -> None:
    """Give the room of one server back."""
    conn.execute(_RELEASE, {"id": node_id, "vcpus": vcpus, "ram_mb": ram_mb, "disk_mb": disk_mb})
