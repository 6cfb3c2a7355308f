"""Capacity of nodes: read by a claim under the nodes' locks, taken, and released."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import BigInteger, Connection, bindparam, cast, func, select, text, update

from climate.compute.models.node import CLOSED, OWNER, SHARED
from climate.compute.models.server import Room
from climate.compute.store.columns import in_parameter
from climate.compute.store.tables.nodes import aggregates, nodes, services
from climate.database.advisory_locks import SERVER_PLACEMENT

# Choosing and claiming hold this lock shared, or exclusively after too many lost races.
_TOGETHER = text(f"SELECT pg_advisory_xact_lock_shared({SERVER_PLACEMENT})")
_ALONE = text(f"SELECT pg_advisory_xact_lock({SERVER_PLACEMENT})")

# A statement of its own after the lock, so that it reads the commit of the former holder.
_DISK_MB = cast(nodes.c.local_gb, BigInteger) * 1024
_FREE_DISK_MB = func.least(
    cast(nodes.c.disk_least_gb, BigInteger) * 1024, _DISK_MB - nodes.c.used_disk_mb - nodes.c.reserved_disk_mb
)

_NODE_USAGE = (
    select(
        *(nodes.c.id, nodes.c.name, nodes.c.vcpus, nodes.c.memory_mb, nodes.c.local_gb),
        *(nodes.c.ram_ratio, nodes.c.cpu_ratio, nodes.c.disk_ratio, nodes.c.used_vcpus, nodes.c.used_servers),
        (nodes.c.used_ram_mb + nodes.c.reserved_ram_mb).label("used_ram_mb"),
        (_DISK_MB - _FREE_DISK_MB).label("used_disk_mb"),
        nodes.c.present,
        nodes.c.maintenance.is_not(None).label("in_maintenance"),
        (~services.c.enabled).label("disabled"),
        nodes.c.pool,
        aggregates.c.metadata[OWNER].astext.label("owner"),
        aggregates.c.metadata[SHARED].astext.label("shared"),
        (func.coalesce(aggregates.c.metadata[CLOSED].astext, "") == "true").label("closed"),
    )
    .join(services, services.c.host == nodes.c.service_host)
    .outerjoin(aggregates, aggregates.c.name == nodes.c.pool)
    .where(in_parameter(nodes.c.id, "ids"))
    .order_by(nodes.c.name, nodes.c.id)
)

_TAKE = text("""
    UPDATE compute_nodes n
    SET used_vcpus = used_vcpus + c.count * :vcpus,
        used_ram_mb = used_ram_mb + c.count * CAST(:ram_mb AS bigint),
        used_disk_mb = used_disk_mb + c.count * CAST(:disk_mb AS bigint),
        used_servers = used_servers + c.count
    FROM unnest(CAST(:ids AS int[]), CAST(:counts AS int[])) AS c(id, count)
    WHERE n.id = c.id
""")

_RELEASE = (
    update(nodes)
    .where(nodes.c.id == bindparam("node_id"))
    .values(
        used_vcpus=nodes.c.used_vcpus - bindparam("vcpus_of_one"),
        used_ram_mb=nodes.c.used_ram_mb - bindparam("ram_mb_of_one"),
        used_disk_mb=nodes.c.used_disk_mb - bindparam("disk_mb_of_one"),
        used_servers=nodes.c.used_servers - 1,
    )
)


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
    shared: str | None
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
    conn.execute(_RELEASE, {"node_id": node_id, **{f"{name}_of_one": size for name, size in asdict(room).items()}})
