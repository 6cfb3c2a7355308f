"""Capabilities that services report: one row for each service of a host, replaced by each report."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, select, text
from sqlalchemy.dialects.postgresql import insert

from climate.compute.store.tables.zones import service_capabilities as table
from climate.compute.zones.capabilities import ServiceReport

# ON CONFLICT DO UPDATE locks each row that it leaves as it is, which costs more than to compare all of them before.
_WRITE_CHANGED = """
    INSERT INTO compute_service_capabilities (host, service, capabilities, enabled, reported_at)
    SELECT f.host, f.service, f.capabilities, f.enabled, :now
    FROM computed f LEFT JOIN compute_service_capabilities c USING (host, service)
    WHERE c.host IS NULL OR (c.capabilities, c.enabled) IS DISTINCT FROM (f.capabilities, f.enabled)
       OR c.reported_at <= CAST(:now AS timestamptz) - make_interval(secs => :period)
    ORDER BY f.host, f.service
    ON CONFLICT (host, service) DO UPDATE
    SET capabilities = excluded.capabilities, enabled = excluded.enabled, reported_at = excluded.reported_at
"""

_REPORT_NODES = text(f"""
    WITH computed AS (
        SELECT n.service_host || '/' || n.name AS host, 'compute' AS service, jsonb_build_object(
                   'vcpus', n.vcpus,
                   'vcpus_used', n.used_vcpus,
                   'host_memory_total', n.memory_mb * CAST(1048576 AS bigint),
                   'host_memory_overhead', n.reserved_ram_mb * 1048576,
                   'host_memory_free', greatest(n.memory_mb - n.used_ram_mb, 0) * 1048576,
                   'host_memory_free_computed', greatest(n.memory_mb - n.reserved_ram_mb - n.used_ram_mb, 0) * 1048576,
                   'disk_total', n.local_gb * CAST(1073741824 AS bigint),
                   'disk_used', n.used_disk_mb * 1048576,
                   'disk_available', greatest(least(n.local_gb * CAST(1024 AS bigint) - n.used_disk_mb,
                                                    n.disk_least_gb * CAST(1024 AS bigint)), 0) * 1048576
               ) AS capabilities,
               v.enabled AND NOT v.forced_down AND n.maintenance IS NULL AS enabled
        FROM compute_nodes n JOIN compute_services v ON v.host = n.service_host
        WHERE n.service_host = :host AND n.present)
    {_WRITE_CHANGED}
""")

_REPORT_NETWORKS = text(f"""
    WITH computed AS (
        SELECT CAST(:host AS text) AS host, 'network' AS service, jsonb_build_object(
                   'networks', count(DISTINCT n.id),
                   'fixed_ips', count(*) FILTER (WHERE NOT a.reserved),
                   'fixed_ips_free', count(*) FILTER (WHERE NOT a.reserved AND a.server_id IS NULL)
               ) AS capabilities, true AS enabled
        FROM compute_networks n JOIN compute_addresses a ON a.network_id = n.id WHERE n.host = :host)
    {_WRITE_CHANGED}
""")


_ENABLED = "(SELECT enabled AND NOT forced_down FROM compute_services WHERE host = :host)"

_SEEN = text(f"SELECT pg_current_snapshot()::text AS snapshot, {_ENABLED} AS enabled")

# The range is for the index: the snapshot has all transactions before its oldest one. Its upper bound makes the planner
# expect few rows.
_CHANGED = text(f"""
    SELECT EXISTS (SELECT FROM compute_nodes
                   WHERE changed BETWEEN pg_snapshot_xmin(CAST(:snapshot AS pg_snapshot)) AND '18446744073709551615'
                     AND NOT pg_visible_in_snapshot(changed, CAST(:snapshot AS pg_snapshot)) AND service_host = :host)
        OR {_ENABLED} IS DISTINCT FROM CAST(:enabled AS boolean)
""")


@dataclass(frozen=True, slots=True)
class NodesSeen:
    """State of a compute service and its nodes at a moment."""

    snapshot: str
    """Snapshot of the statement, as pg_snapshot writes it."""
    enabled: bool | None


def present_state(conn: Connection, service_host: str) -> NodesSeen:
    """Return the present state of a compute service and its nodes."""
    return NodesSeen(*conn.execute(_SEEN, {"host": service_host}).one())


def is_changed(conn: Connection, service_host: str, then: NodesSeen) -> bool:
    """Return whether a node, or whether the service is enabled, has changed since a moment."""
    given = {"host": service_host, "snapshot": then.snapshot, "enabled": then.enabled}
    return bool(conn.scalar(_CHANGED, given))


def report(conn: Connection, host: str, service: str, capabilities: Mapping[str, float], now: datetime) -> None:
    """Replace the last report of a service."""
    values = {"capabilities": dict(capabilities), "reported_at": now}
    made = insert(table).values(host=host, service=service, **values)
    conn.execute(made.on_conflict_do_update(index_elements=["host", "service"], set_=values))


def listed(conn: Connection) -> list[ServiceReport]:
    """Return the last reports of all services."""
    columns = (table.c.host, table.c.service, table.c.reported_at, table.c.capabilities, table.c.enabled)
    return [ServiceReport(*row) for row in conn.execute(select(*columns).order_by(table.c.host, table.c.service))]


def forget(conn: Connection, before: datetime) -> None:
    """Delete older reports."""
    conn.execute(delete(table).where(table.c.reported_at < before))


def report_nodes(conn: Connection, service_host: str, now: datetime, period: float) -> None:
    """Report each node of a compute service, with memory and disk in bytes.

    An unchanged report is written once in `period` seconds.
    """
    conn.execute(_REPORT_NODES, {"host": service_host, "now": now, "period": period})


def report_networks(conn: Connection, host: str, now: datetime, period: float) -> None:
    """Report the networks of a network service and their addresses, as `report_nodes` does."""
    conn.execute(_REPORT_NETWORKS, {"host": host, "now": now, "period": period})
