"""Capacity of nodes: read by a claim under the nodes' locks, taken, and released."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, text

from climate.advisory_locks import SERVER_PLACEMENT
from climate.compute.models.node import CLOSED, OWNER
from climate.compute.models.server import Room

# Choosing and claiming hold this lock shared, or exclusively after too many lost races.
_TOGETHER = text(f"SELECT pg_advisory_xact_lock_shared({SERVER_PLACEMENT})")
_ALONE = text(f"SELECT pg_advisory_xact_lock({SERVER_PLACEMENT})")

# A statement of its own after the lock, so that it reads the commit of the former holder.
_NODE_USAGE = text(f"""
    SELECT n.id, n.name, n.vcpus, n.memory_mb, n.local_gb, n.ram_ratio, n.cpu_ratio, n.disk_ratio,
           n.used_vcpus, n.used_servers, n.used_ram_mb + n.reserved_ram_mb AS used_ram_mb,
           n.local_gb * CAST(1024 AS bigint)
               - least(n.disk_least_gb * CAST(1024 AS bigint),
                       n.local_gb * CAST(1024 AS bigint) - n.used_disk_mb - n.reserved_disk_mb) AS used_disk_mb,
           n.present, n.maintenance IS NOT NULL AS in_maintenance, NOT v.enabled AS disabled,
           n.pool, p.metadata ->> '{OWNER}' AS owner, coalesce(p.metadata ->> '{CLOSED}', '') = 'true' AS closed
    FROM compute_nodes n
    JOIN compute_services v ON v.host = n.service_host
    LEFT JOIN compute_aggregates p ON p.name = n.pool
    WHERE n.id = ANY(CAST(:ids AS int[]))
    ORDER BY n.name, n.id
""")

_TAKE = text("""
    UPDATE compute_nodes n
    SET used_vcpus = used_vcpus + c.count * :vcpus,
        used_ram_mb = used_ram_mb + c.count * CAST(:ram_mb AS bigint),
        used_disk_mb = used_disk_mb + c.count * CAST(:disk_mb AS bigint),
        used_servers = used_servers + c.count
    FROM unnest(CAST(:ids AS int[]), CAST(:counts AS int[])) AS c(id, count)
    WHERE n.id = c.id
""")

_RELEASE = text("""
    UPDATE compute_nodes
    SET used_vcpus = used_vcpus - :vcpus, used_ram_mb = used_ram_mb - :ram_mb, used_disk_mb = used_disk_mb - :disk_mb,
        used_servers = used_servers - 1
    WHERE id = :id
""")


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """A node whose row is locked. Sizes: MB, disk GB; used disk in MB, and free disk by its driver."""

    id: int
    name: str
    vcpus: int
    memory_mb: int
    local_gb: int
    ram_ratio: float
    cpu_ratio: float
    disk_ratio: float
    used_vcpus: int
    used_servers: int
    used_ram_mb: int
    used_disk_mb: int
    present: bool
    in_maintenance: bool
    disabled: bool
    pool: str | None
    owner: str | None
    closed: bool


def queue(conn: Connection, *, alone: bool) -> None:
    """Wait until servers may be placed: concurrently with others, or exclusively."""
    conn.execute(_ALONE if alone else _TOGETHER)


def node_usage(conn: Connection, ids: Sequence[int]) -> list[NodeUsage]:
    """Return the current capacity and usage of these nodes, which are locked."""
    return [NodeUsage(**row) for row in conn.execute(_NODE_USAGE, {"ids": list(ids)}).mappings()]


def take(conn: Connection, counts: Mapping[int, int], each: Room) -> None:
    """Take capacity for `counts[node]` servers on each node. The nodes must be locked."""
    conn.execute(_TAKE, {"ids": list(counts), "counts": list(counts.values()), **asdict(each)})


def release(conn: Connection, node_id: int, room: Room) -> None:
    """Release the capacity of one server."""
    conn.execute(_RELEASE, {"id": node_id, **asdict(room)})
