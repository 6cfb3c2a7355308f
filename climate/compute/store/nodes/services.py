"""Compute services and the nodes that they report.

Statements over the rows of a report are SQL text: each compares a JSON list of nodes with the table.
"""

import json
from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime, timedelta

from sqlalchemy import Connection, and_, bindparam, exists, func, or_, select, text, update
from sqlalchemy import delete as delete_from

from climate.compute.models.node import FREEPOOL, Liveness, NodeDefaults, NodeSpec, Service
from climate.compute.models.server import DELETE
from climate.compute.store import node_locks
from climate.compute.store.clock import NOW
from climate.compute.store.columns import in_array
from climate.compute.store.nodes.availability_zones import ZONE_OF_NODE
from climate.compute.store.tables.migrations import migrations
from climate.compute.store.tables.nodes import nodes, services
from climate.compute.store.tables.servers import servers
from climate.database.advisory_locks import Subject

_BEAT = text(f"""
    WITH pool AS (INSERT INTO compute_aggregates (name) VALUES (:pool) ON CONFLICT (name) DO NOTHING),
    beat AS (INSERT INTO compute_services (host, beat_at) VALUES (:host, {NOW})
             ON CONFLICT (host) DO UPDATE SET beat_at = greatest(compute_services.beat_at, excluded.beat_at))
    SELECT CASE WHEN coalesce(bool_and(present), true) THEN count(*) END FROM compute_nodes WHERE service_host = :host
""")

_TYPES = {
    "vcpus": "int",
    "memory_mb": "int",
    "local_gb": "int",
    "cpu_info": "text",
    "hypervisor_type": "text",
    "hypervisor_version": "int",
    "zone": "text",
    "driver": "text",
    "host_ip": "text",
    "ram_ratio": "float",
    "cpu_ratio": "float",
    "disk_ratio": "float",
    "reserved_ram_mb": "bigint",
    "reserved_disk_mb": "bigint",
    "disk_least_gb": "int",
    "supported": "jsonb",
    "stats": "jsonb",
    "metrics": "jsonb",
}
"""Reported columns of a node besides its name, and their types."""


def _each(form: str) -> str:
    return ", ".join(form.format(column) for column in _TYPES)


_REPORTED = f"""
    jsonb_to_recordset(CAST(:nodes AS jsonb))
    AS r(name text, {", ".join(f"{column} {kind}" for column, kind in _TYPES.items())})
"""

_DIFFERS = text(f"""
    SELECT EXISTS (
        SELECT FROM {_REPORTED} FULL JOIN (SELECT * FROM compute_nodes WHERE service_host = :host) n ON n.name = r.name
        WHERE n.id IS NULL OR r.name IS NULL OR (n.present, {_each("n.{}")}) IS DISTINCT FROM (true, {_each("r.{}")}))
""")

# The service first, which a new node refers to: whoever removes a service locks it before its nodes.
# One report of a service at a time: another one would leave differences before nodes that this one holds already.
_KEEP = text(f"SELECT {Subject.NODE_REPORT.locked('host')} FROM compute_services WHERE host = :host FOR KEY SHARE")

# Only written rows are locked, in one statement: a second statement might find a node that sorts before those.
_LOCK_REPORTED = text(f"""
    SELECT n.id FROM compute_nodes n LEFT JOIN {_REPORTED} ON r.name = n.name
    WHERE n.service_host = :host
      AND (r.name IS NULL OR (n.present, {_each("n.{}")}) IS DISTINCT FROM (true, {_each("r.{}")}))
    ORDER BY n.name, n.id FOR NO KEY UPDATE OF n
""")

# Only new or changed rows are written, because the scheduler reads written rows.
_REPORT = text(f"""
    INSERT INTO compute_nodes (service_host, name, {_each("{}")})
    SELECT :host, r.name, {_each("r.{}")}
    FROM {_REPORTED}
    LEFT JOIN compute_nodes n ON n.service_host = :host AND n.name = r.name
    WHERE n.id IS NULL OR (n.present, {_each("n.{}")}) IS DISTINCT FROM (true, {_each("r.{}")})
    ORDER BY r.name
    ON CONFLICT (name, service_host) DO UPDATE SET present = true, {_each("{0} = excluded.{0}")}
""")

# A node that is lent, or has servers, stays as absent: no new server is placed there.
_IS_USED = exists().where(servers.c.node_id == nodes.c.id)
_IS_HELD = exists().where(migrations.c.held_node_id == nodes.c.id, servers.c.migration_id == migrations.c.id)
_IS_ORPHAN = and_(~nodes.c.present, nodes.c.pool.is_(None), ~_IS_USED, ~_IS_HELD)

_UP = f"NOT v.forced_down AND v.beat_at > {NOW} - make_interval(secs => :down)"

_HOSTS = text(f"SELECT v.host, {_UP} AS up FROM compute_services v ORDER BY v.id")

_LIST = text(f"""
    SELECT v.id, v.uuid::text, v.host, v.enabled, v.disabled_reason, v.forced_down, v.beat_at,
           {_UP} AS up,
           (SELECT CASE WHEN count(DISTINCT coalesce(z.zone, '')) = 1 THEN min(z.zone) END
            FROM (SELECT {ZONE_OF_NODE} AS zone FROM compute_nodes n
                  WHERE n.service_host = v.host AND n.present) z) AS zone
    FROM compute_services v
    WHERE CAST(:host AS text) IS NULL OR v.host = :host
    ORDER BY v.id
""")

_HELD = text("""
    SELECT (SELECT count(*) FROM compute_servers s LEFT JOIN compute_migrations m ON m.id = s.migration_id
            JOIN compute_nodes n ON n.id IN (s.node_id, m.held_node_id)
            WHERE n.service_host = :host) AS servers,
           (SELECT count(*) FROM compute_nodes WHERE service_host = :host AND pool IS NOT NULL) AS pooled
""")

_ABANDONED = (
    select(servers.c.id)
    .join(nodes, nodes.c.id == servers.c.node_id)
    .join(services, services.c.host == nodes.c.service_host)
    # The first condition is that of the index of tasks in progress.
    .where(servers.c.task.is_not(None), servers.c.task == DELETE)
    .where(or_(servers.c.worker_until.is_(None), servers.c.worker_until < bindparam("now")))
    .where(or_(services.c.forced_down, services.c.beat_at <= bindparam("beat_before")))
    .order_by(func.random())  # those that cannot be deleted keep no other from its turn
    .limit(500)
)


def beat(conn: Connection, host: str, now: datetime | None) -> int | None:
    """Record the heartbeat of a service; the first one creates its row, and the pool for leases.

    `now` is None for the database's clock. Return the number of nodes of the service; None if there are rows of absent
    ones.
    """
    nodes: int | None = conn.execute(_BEAT, {"host": host, "now": now, "pool": FREEPOOL}).scalar_one()
    return nodes


def report(conn: Connection, host: str, specs: Sequence[NodeSpec], defaults: NodeDefaults) -> list[int]:
    """Reconcile the service's node rows with its driver's report; return the ids of the deleted ones."""
    given = {"host": host, "nodes": json.dumps([_row(spec, defaults) for spec in specs])}
    if not conn.scalar(_DIFFERS, given):
        return []
    conn.execute(_KEEP, given)
    conn.execute(_LOCK_REPORTED, given)
    conn.execute(_REPORT, given)
    own = nodes.c.service_host == host
    is_reported = in_array(nodes.c.name, [spec.name for spec in specs])
    conn.execute(update(nodes).where(own, nodes.c.present, ~is_reported).values(present=False))
    return list(conn.scalars(delete_from(nodes).where(own, _IS_ORPHAN).returning(nodes.c.id)))


def liveness(conn: Connection, now: datetime, down_seconds: float) -> Liveness:
    """Return the number of enabled compute services with a recent heartbeat."""
    beat_at = services.c.beat_at
    up = func.count().filter(beat_at > now - timedelta(seconds=down_seconds))
    query = select(func.count(), func.max(beat_at), func.min(beat_at), up)
    return Liveness(*conn.execute(query.where(services.c.enabled, ~services.c.forced_down)).one())


def listed(conn: Connection, now: datetime | None, down: float, host: str | None = None) -> list[Service]:
    """Return all compute services, or that of one host name; down means `down` seconds without a heartbeat."""
    rows = conn.execute(_LIST, {"now": now, "down": down, "host": host})
    return [Service(**row) for row in rows.mappings()]


def names(conn: Connection) -> list[str]:
    """Return the host of each compute service, by name."""
    return list(conn.scalars(select(services.c.host).order_by(services.c.host)))


def hosts(conn: Connection, now: datetime | None, down: float) -> list[tuple[str, bool]]:
    """Return the host of each compute service, and whether it is up, without reading the nodes as `listed` does."""
    return [(row.host, row.up) for row in conn.execute(_HOSTS, {"now": now, "down": down})]


def change(
    conn: Connection, service_id: int, *, enabled: bool | None, reason: str | None, forced_down: bool | None
) -> None:
    """Enable or disable a service with a reason; force it down. None: unchanged."""
    values: dict[str, object] = {} if enabled is None else {"enabled": enabled, "disabled_reason": reason}
    if forced_down is not None:
        values["forced_down"] = forced_down
    if values:
        conn.execute(update(services).where(services.c.id == service_id).values(values))


def lock(conn: Connection, service_id: int) -> str | None:
    """Lock a service's row, which delays its heartbeat; return its host, None if it does not exist."""
    return conn.scalar(select(services.c.host).where(services.c.id == service_id).with_for_update())


def lock_capacity(conn: Connection, host: str) -> tuple[int, int]:
    """Return (servers, nodes in pools) of a service, and lock its nodes."""
    own = select(nodes.c.id).where(nodes.c.service_host == host).order_by(nodes.c.name, nodes.c.id)
    conn.execute(own.with_for_update())
    row = conn.execute(_HELD, {"host": host}).one()
    return row.servers, row.pooled


def delete(conn: Connection, host: str) -> None:
    """Delete a service and its nodes."""
    conn.execute(delete_from(nodes).where(nodes.c.service_host == host))
    conn.execute(delete_from(services).where(services.c.host == host))


def abandoned(conn: Connection, now: datetime, down: float) -> list[str]:
    """Return unclaimed servers to be deleted whose service had no heartbeat for `down` seconds."""
    return list(conn.scalars(_ABANDONED, {"now": now, "beat_before": now - timedelta(seconds=down)}))


def maintain(conn: Connection, ids: Sequence[int], reason: str | None) -> None:
    """Put nodes into maintenance for a reason; None: end maintenance."""
    node_locks.lock(conn, ids)
    conn.execute(update(nodes).where(in_array(nodes.c.id, ids)).values(maintenance=reason))


def _row(spec: NodeSpec, defaults: NodeDefaults) -> dict[str, object]:
    said = {column: getattr(spec, column) for column in ("name", *_TYPES)}
    return said | {one.name: getattr(defaults, one.name) for one in fields(defaults) if said[one.name] is None}
