"""Rows of the scheduler's snapshot: all at once, or the changes since the last reading."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, text

from climate.compute.models.node import CLOSED, OWNER, SHARED
from climate.compute.models.server import IO_TASKS

Rows = Sequence[Sequence[Any]]

NODE = {
    "id": "n.id",
    "name": "n.name",
    "service_host": "n.service_host",
    "host_ip": "n.host_ip",
    "vcpus": "n.vcpus",
    "memory_mb": "n.memory_mb",
    "local_gb": "n.local_gb",
    "used_vcpus": "n.used_vcpus",
    "used_ram_mb": "n.used_ram_mb",
    "used_disk_mb": "n.used_disk_mb",
    "used_servers": "n.used_servers",
    "reserved_ram_mb": "n.reserved_ram_mb",
    "reserved_disk_mb": "n.reserved_disk_mb",
    "disk_least_gb": "n.disk_least_gb",
    "ram_ratio": "n.ram_ratio",
    "cpu_ratio": "n.cpu_ratio",
    "disk_ratio": "n.disk_ratio",
    "present": "n.present",
    "ready": "n.present AND n.maintenance IS NULL",
    "zone": "n.zone",
    "pool": "n.pool",
    "owner": f"p.metadata ->> '{OWNER}'",
    "shared": f"p.metadata ->> '{SHARED}'",
    "closed": f"coalesce(p.metadata ->> '{CLOSED}', '') = 'true'",
    "profile": "json_build_array(n.hypervisor_type, n.hypervisor_version, n.cpu_info, n.supported, n.stats)::text",
    "metrics": "n.metrics",
}
"""Columns of a node's row, and their SQL."""

_NODE = f"json_build_array({', '.join(NODE.values())})"
_FROM_NODES = "compute_nodes n LEFT JOIN compute_aggregates p ON p.name = n.pool"
_SERVICE = "json_build_array(v.host, v.enabled, v.forced_down, extract(epoch FROM v.beat_at))"

# The end of every reading. A transaction that has written such rows itself must not share its reading. The nodes of
# busy servers come as one text, which costs a tenth of JSON. Transaction numbers have no meaning on another database
# server, or after a truncation and a reload.
_ALWAYS = """
    (SELECT string_agg(CAST(node_id AS text), ' ') FROM compute_servers
     WHERE task IS NOT NULL AND task = ANY(CAST(:io_tasks AS text[])) AND node_id IS NOT NULL) AS busy,
    concat_ws(' ', pg_postmaster_start_time(), pg_relation_filenode('compute_nodes')) AS origin,
    EXISTS (SELECT FROM compute_nodes WHERE changed = pg_current_xact_id_if_assigned())
    OR EXISTS (SELECT FROM compute_services WHERE changed = pg_current_xact_id_if_assigned())
    OR EXISTS (SELECT FROM compute_structure WHERE changed = pg_current_xact_id_if_assigned()) AS own,
    pg_current_snapshot()::text AS seen, pg_current_xact_id_if_assigned()::text AS self
"""

_EVERYTHING = text(f"""
    SELECT (SELECT json_agg({_NODE} ORDER BY n.id) FROM {_FROM_NODES}) AS nodes,
           (SELECT json_agg({_SERVICE} ORDER BY v.host) FROM compute_services v) AS services,
           (SELECT json_agg(json_build_array(id, name, metadata) ORDER BY id)
            FROM compute_aggregates WHERE kind = 'aggregate') AS labels,
           (SELECT json_agg(json_build_array(node_id, aggregate_id) ORDER BY node_id, aggregate_id)
            FROM compute_aggregate_nodes) AS members,
           {_ALWAYS}
""")

# The upper bound only makes the planner expect few rows, so that it uses the index.
_UNSEEN = """changed BETWEEN pg_snapshot_xmin(CAST(:seen AS pg_snapshot)) AND '18446744073709551615'
             AND NOT pg_visible_in_snapshot(changed, CAST(:seen AS pg_snapshot))"""

_CHANGES = text(f"""
    SELECT (SELECT json_agg({_NODE} ORDER BY n.id) FROM {_FROM_NODES} WHERE n.{_UNSEEN}) AS nodes,
           (SELECT json_agg({_SERVICE}) FROM compute_services v WHERE v.{_UNSEEN}) AS services,
           EXISTS (SELECT FROM compute_structure WHERE {_UNSEEN}) AS restructured,
           {_ALWAYS}
""")


@dataclass(frozen=True, slots=True)
class Reading:
    """Rows as one statement read them."""

    nodes: Mapping[str, Sequence[object]]
    """Column by column, in the order of ids; see NODE."""
    services: Rows
    """(host, enabled, forced_down, beat as a Unix time)"""
    busy: str
    """The ids of nodes, separated by spaces: one for every server that keeps its disk busy."""
    own: bool
    """It includes uncommitted writes of this transaction."""
    seen: str
    """The snapshot of the statement, as pg_snapshot writes it."""
    origin: str
    """Identity of the database: another text after it was restored."""
    restructured: bool = False
    """Nodes were deleted, or aggregates or their members have changed: everything must be read."""
    labels: Rows = ()
    """(id, name, metadata) of the ordinary aggregates"""
    members: Rows = ()
    """(node id, aggregate id)"""


def everything(conn: Connection) -> Reading:
    """Return all nodes, services, aggregates and their members."""
    return _reading(conn.execute(_EVERYTHING, {"io_tasks": sorted(IO_TASKS)}).mappings().one())


def changes(conn: Connection, seen: str) -> Reading:
    """Return the nodes and services written by transactions that the snapshot `seen` did not include."""
    return _reading(conn.execute(_CHANGES, {"io_tasks": sorted(IO_TASKS), "seen": seen}).mappings().one())


def _without(seen: str, transaction: str | None) -> str:
    """Return a snapshot that also leaves out the transaction which took it.

    Postgres does not list a transaction among those that its own snapshot leaves out, so its later writes would count
    as read.
    """
    least, beyond, running = seen.split(":")
    if transaction is None or int(transaction) >= int(beyond):
        return seen
    out = sorted({int(transaction), *(int(number) for number in running.split(",") if number)})
    return f"{min(int(least), out[0])}:{beyond}:{','.join(map(str, out))}"


def _reading(row: RowMapping) -> Reading:
    nodes: Sequence[Sequence[object]] = list(zip(*row["nodes"], strict=True)) if row["nodes"] else [()] * len(NODE)
    return Reading(
        nodes=dict(zip(NODE, nodes, strict=True)),
        services=row["services"] or (),
        busy=row["busy"] or "",
        own=row["own"],
        seen=_without(row["seen"], row["self"]),
        origin=row["origin"],
        restructured=row.get("restructured", False),
        labels=row.get("labels") or (),
        members=row.get("members") or (),
    )
