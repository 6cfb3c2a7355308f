"""Metrics of the bundled cloud, read from the database."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, TextClause, text

from climate.compute.models.server import STATUSES

_SERVICES = text("""
    SELECT CASE WHEN NOT forced_down AND beat_at > CAST(:now AS timestamptz) - make_interval(secs => :down)
                THEN 'up' ELSE 'down' END AS state, count(*)
    FROM compute_services GROUP BY state
""")

_NODES = text("""
    SELECT CASE WHEN NOT n.present THEN 'absent'
                WHEN v.forced_down OR v.beat_at <= CAST(:now AS timestamptz) - make_interval(secs => :down) THEN 'down'
                WHEN n.maintenance IS NOT NULL THEN 'maintenance'
                WHEN NOT v.enabled THEN 'disabled'
                ELSE 'up' END AS state, count(*)
    FROM compute_nodes n JOIN compute_services v ON v.host = n.service_host GROUP BY state
""")

_SERVERS = text("SELECT status, count(*) FROM compute_servers GROUP BY status")

SERVICE_STATES = ("up", "down")
NODE_STATES = ("up", "disabled", "maintenance", "down", "absent")


@dataclass(frozen=True, slots=True)
class Figures:
    """Counts by state."""

    services: Mapping[str, int]
    nodes: Mapping[str, int]
    servers: Mapping[str, int]


def read(conn: Connection, now: datetime, down: float) -> Figures:
    """Return all counts; a service is down after `down` seconds without a heartbeat."""
    given = {"now": now, "down": down}
    return Figures(
        _counted(conn, _SERVICES, given, SERVICE_STATES),
        _counted(conn, _NODES, given, NODE_STATES),
        _counted(conn, _SERVERS, {}, STATUSES),
    )


def _counted(conn: Connection, question: TextClause, given: Mapping[str, Any], states: Sequence[str]) -> dict[str, int]:
    result = {str(row[0]): int(row[1]) for row in conn.execute(question, dict(given))}
    return {state: result.get(state, 0) for state in states}
