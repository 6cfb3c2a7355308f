"""Comparison and repair of the recorded usage of nodes: servers on them, and capacity held by migrations."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text

from climate.compute.store import node_locks

_SUMS = """
    SELECT n.id, coalesce(sum(s.vcpus), 0) AS vcpus, coalesce(sum(s.ram_mb), 0) AS ram_mb,
           coalesce(sum(s.disk_mb), 0) AS disk_mb, count(s.node_id) AS servers
    FROM compute_nodes n LEFT JOIN (
        SELECT node_id, vcpus, ram_mb, disk_mb FROM compute_servers WHERE node_id IS NOT NULL
        UNION ALL
        SELECT held_node_id, vcpus, ram_mb, disk_mb FROM compute_migrations WHERE held_node_id IS NOT NULL
    ) s ON s.node_id = n.id
"""

_DIFFER = """
    (n.used_vcpus, n.used_ram_mb, n.used_disk_mb, n.used_servers) IS DISTINCT FROM
    (t.vcpus, t.ram_mb, t.disk_mb, t.servers)
"""

_DRIFTED = text(f"""
    WITH t AS ({_SUMS} WHERE n.service_host = :host GROUP BY n.id)
    SELECT n.id FROM compute_nodes n JOIN t ON t.id = n.id WHERE {_DIFFER} ORDER BY n.name, n.id
""")

# A statement of its own after the lock, which is also held when servers enter or leave a node.
_MEND = text(f"""
    WITH t AS ({_SUMS} WHERE n.id = ANY(CAST(:ids AS int[])) GROUP BY n.id),
    was AS (SELECT id, used_vcpus, used_ram_mb, used_disk_mb, used_servers FROM compute_nodes
            WHERE id = ANY(CAST(:ids AS int[])))
    UPDATE compute_nodes n
    SET used_vcpus = t.vcpus, used_ram_mb = t.ram_mb, used_disk_mb = t.disk_mb, used_servers = t.servers
    FROM t JOIN was ON was.id = t.id
    WHERE n.id = t.id AND {_DIFFER}
    RETURNING n.name, ARRAY[was.used_vcpus, was.used_ram_mb, was.used_disk_mb, was.used_servers] AS was,
              ARRAY[n.used_vcpus, n.used_ram_mb, n.used_disk_mb, n.used_servers] AS is_now
""")


@dataclass(frozen=True, slots=True)
class Drift:
    """A corrected node: vCPUs, MB of memory, MB of disk and servers, before and after."""

    node: str
    was: tuple[int, ...]
    now: tuple[int, ...]


def drifted(conn: Connection, host: str) -> list[int]:
    """Return the nodes of a service with a suspected wrong usage; some may be changing just now."""
    return list(conn.execute(_DRIFTED, {"host": host}).scalars())


def correct(conn: Connection, ids: Sequence[int]) -> list[Drift]:
    """Lock nodes and write their real usage; return those that were wrong."""
    node_locks.lock(conn, ids)
    return [Drift(name, tuple(was), tuple(now)) for name, was, now in conn.execute(_MEND, {"ids": list(ids)})]
