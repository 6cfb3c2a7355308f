"""The scheduler's snapshot of 10,000 nodes: read as a whole, and brought up to date after ever more changes."""

import gc
import sys
from collections.abc import Callable
from time import process_time

from sqlalchemy import Connection, Engine, text

from benchmarks import scratch
from benchmarks.figures import head, line, spread, timed
from climate.compute import Compute
from climate.compute.models.server import SPAWN
from climate.compute.scheduler.hosts.snapshot_cache import SnapshotCache

NODES, SERVICES, UNDER_WAY = 10_000, 100, 4_200
CHANGES = (0, 1, 100)


def main(short: bool) -> None:
    head(f"The snapshot of {NODES:,} nodes of {SERVICES} services, {UNDER_WAY:,} servers being made")
    with scratch.place() as place:
        deployment = place.deployment(pool_size=2)
        compute = deployment.compute
        fill(compute.engine)
        with compute.engine.connect() as conn:
            _measure("nothing kept: all is read", 5 if short else 20, lambda: _take(compute, conn, SnapshotCache()))
            roster = SnapshotCache()
            _take(compute, conn, roster)
            for changed in CHANGES:
                _measure(
                    f"{changed} nodes changed since", 50 if short else 300, *_updating(compute, conn, roster, changed)
                )
        compute.engine.dispose()


def _updating(
    compute: Compute, conn: Connection, roster: SnapshotCache, changed: int
) -> tuple[Callable[[], None], Callable[[], None]]:
    def change() -> None:
        with compute.engine.begin() as other:
            other.execute(text("UPDATE compute_nodes SET used_vcpus = used_vcpus WHERE id <= :most"), {"most": changed})

    return lambda: _take(compute, conn, roster), change


def _take(compute: Compute, conn: Connection, roster: SnapshotCache) -> None:
    roster.take(conn, compute.now(conn), compute.down_seconds)
    conn.commit()


def _measure(what: str, times: int, work: Callable[[], None], before: Callable[[], None] = lambda: None) -> None:
    spent: list[float] = []
    cpu = 0.0
    gc.collect()
    for _ in range(times):
        before()
        begun = process_time()
        spent += timed(work, 1)
        cpu += process_time() - begun
    line(what, f"{spread(spent)}, {1000 * cpu / times:.2f} ms of this process's CPU")


def fill(engine: Engine) -> None:
    """Nodes of several kinds, some in pools and some in aggregates."""
    with engine.begin() as conn:
        conn.execute(text("SET LOCAL statement_timeout = 0"))
        for statement in _FILL:
            conn.execute(text(statement), {"nodes": NODES, "services": SERVICES, "task": SPAWN, "servers": UNDER_WAY})
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        conn.execute(text("VACUUM ANALYZE compute_nodes, compute_services, compute_servers, compute_aggregate_nodes"))


_FILL = (
    "INSERT INTO compute_services (host) SELECT 'service-' || i FROM generate_series(1, :services) i",
    "INSERT INTO compute_aggregates (name, metadata) "
    """SELECT 'pool-' || i, '{"blazar:owner": "p"}' FROM generate_series(1, 100) i""",
    "INSERT INTO compute_aggregates (name, kind, metadata) "
    "SELECT 'aggregate-' || i, 'aggregate', jsonb_build_object('k', i::text) FROM generate_series(1, 20) i",
    """INSERT INTO compute_nodes (service_host, name, vcpus, memory_mb, local_gb, cpu_info, hypervisor_type,
                                  hypervisor_version, pool, stats, supported)
       SELECT 'service-' || 1 + i % :services, 'node-' || i, 64, 262144, 2000, '{"arch": "x86_64"}', 'climate', 1000000,
              CASE WHEN i % 10 = 0 THEN 'pool-' || 1 + i % 100 END, jsonb_build_object('model', i % 5),
              '[["x86_64", "kvm", "hvm"]]'
       FROM generate_series(1, :nodes) i""",
    """INSERT INTO compute_aggregate_nodes (aggregate_id, node_id)
       SELECT a.id, n.id FROM compute_aggregates a JOIN compute_nodes n ON n.id % 20 = a.id % 20
       WHERE a.kind = 'aggregate'""",
    """INSERT INTO compute_servers (id, name, project_id, user_id, status, task, task_at, vcpus, ram_mb, disk_mb,
                                    build_id, launch_index, node_id)
       SELECT gen_random_uuid(), 's', 'p', 'u', 'BUILD', :task, now(), 1, 512, 1024, 'r', 0, i
       FROM generate_series(1, :servers) i""",
)


if __name__ == "__main__":
    main("--short" in sys.argv)
