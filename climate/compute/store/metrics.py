"""Metrics of the bundled cloud, read from the database."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, FromClause, case, func, or_, select

from climate.compute.models.server import STATUSES
from climate.compute.store.tables.nodes import nodes, services
from climate.compute.store.tables.servers import servers

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
    is_down = or_(services.c.forced_down, services.c.beat_at <= now - timedelta(seconds=down))
    node_state = case(
        (~nodes.c.present, "absent"),
        (is_down, "down"),
        (nodes.c.maintenance.is_not(None), "maintenance"),
        (~services.c.enabled, "disabled"),
        else_="up",
    )
    with_service = nodes.join(services, services.c.host == nodes.c.service_host)
    return Figures(
        _counted(conn, services, case((is_down, "down"), else_="up"), SERVICE_STATES),
        _counted(conn, with_service, node_state, NODE_STATES),
        _counted(conn, servers, servers.c.status, STATUSES),
    )


def _counted(conn: Connection, rows: FromClause, state: ColumnElement[str], states: Sequence[str]) -> dict[str, int]:
    query = select(state.label("state"), func.count()).select_from(rows).group_by("state")
    result: dict[str, int] = {row[0]: row[1] for row in conn.execute(query)}
    return {state: result.get(state, 0) for state in states}
