"""Compute services and the nodes that they report."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from climate.compute.host import FREEPOOL, SERVICE_DOWN_SECONDS, NodeSpec, Service

_BEAT = text("""
    INSERT INTO compute_services (host, beat_at) VALUES (:host, :now)
    ON CONFLICT (host) DO UPDATE SET beat_at = greatest(compute_services.beat_at, excluded.beat_at)
""")

_FREEPOOL = text("INSERT INTO compute_aggregates (name) VALUES (:name) ON CONFLICT (name) DO NOTHING")

_REPORT = text("""
    INSERT INTO compute_nodes AS n (service_host, name, vcpus, memory_mb, local_gb, cpu_info,
                                    hypervisor_type, hypervisor_version, zone)
    SELECT :host, name, vcpus, memory_mb, local_gb, cpu_info, hypervisor_type, hypervisor_version, zone
    FROM unnest(CAST(:names AS text[]), CAST(:vcpus AS int[]), CAST(:memory_mb AS int[]), CAST(:local_gb AS int[]),
                CAST(:cpu_info AS text[]), CAST(:hypervisor_type AS text[]), CAST(:hypervisor_version AS int[]),
                CAST(:zones AS text[]))
         AS r(name, vcpus, memory_mb, local_gb, cpu_info, hypervisor_type, hypervisor_version, zone)
    ORDER BY name
    ON CONFLICT (name, service_host) DO UPDATE
    SET vcpus = excluded.vcpus, memory_mb = excluded.memory_mb, local_gb = excluded.local_gb,
        cpu_info = excluded.cpu_info, hypervisor_type = excluded.hypervisor_type,
        hypervisor_version = excluded.hypervisor_version, zone = excluded.zone, present = true
    WHERE (n.vcpus, n.memory_mb, n.local_gb, n.cpu_info, n.hypervisor_type, n.hypervisor_version, n.present)
          IS DISTINCT FROM
          (excluded.vcpus, excluded.memory_mb, excluded.local_gb, excluded.cpu_info, excluded.hypervisor_type,
           excluded.hypervisor_version, true)
       OR n.zone IS DISTINCT FROM excluded.zone
""")

# A node that is still lent, or that servers are on, stays as absent: nothing new is put there.
_ABSENT = text("""
    UPDATE compute_nodes SET present = false
    WHERE service_host = :host AND present AND NOT name = ANY(CAST(:names AS text[]))
""")

_ORPHANS = text("""
    DELETE FROM compute_nodes n
    WHERE service_host = :host AND NOT present AND pool IS NULL
      AND NOT EXISTS (SELECT FROM compute_servers s WHERE s.node_id = n.id)
""")

_LIST = text("""
    SELECT id, uuid::text, host, enabled, disabled_reason, beat_at,
           beat_at > CAST(:now AS timestamptz) - make_interval(secs => :down) AS up
    FROM compute_services
    WHERE CAST(:host AS text) IS NULL OR host = :host
    ORDER BY id
""")


def beat(conn: Connection, host: str, now: datetime) -> None:
    """Say that the service is alive; its first beat makes its row, and the pool for leases."""
    conn.execute(_BEAT, {"host": host, "now": now})
    conn.execute(_FREEPOOL, {"name": FREEPOOL})


def report(conn: Connection, host: str, specs: Sequence[NodeSpec]) -> None:
    """Bring the service's node rows up to what its driver reports."""
    fields = ("vcpus", "memory_mb", "local_gb", "cpu_info", "hypervisor_type", "hypervisor_version")
    columns: dict[str, Any] = {name: [getattr(spec, name) for spec in specs] for name in fields}
    names = [spec.name for spec in specs]
    conn.execute(_REPORT, {"host": host, "names": names, "zones": [spec.zone for spec in specs], **columns})
    conn.execute(_ABSENT, {"host": host, "names": names})
    conn.execute(_ORPHANS, {"host": host})


def listed(conn: Connection, now: datetime, host: str | None = None) -> list[Service]:
    """All compute services, or that of one host name."""
    rows = conn.execute(_LIST, {"now": now, "down": SERVICE_DOWN_SECONDS, "host": host})
    return [Service(**row) for row in rows.mappings()]
