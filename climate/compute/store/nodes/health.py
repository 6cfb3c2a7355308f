"""Health of nodes and their services, as rows."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import ColumnElement, Connection, DateTime, Interval, and_, bindparam, case, func, select

from climate.compute.models.node import PROMISED
from climate.compute.store.tables.nodes import aggregates, nodes, services


def _is_well(since: ColumnElement[datetime]) -> ColumnElement[bool]:
    """Return the condition that a node can run servers; its service had a heartbeat after `since`."""
    is_open = and_(nodes.c.present, nodes.c.maintenance.is_(None), services.c.enabled, ~services.c.forced_down)
    return and_(is_open, services.c.beat_at > since)


_WELL = select(
    func.array_agg(nodes.c.name).label("names"),
    func.bool_and(_is_well(bindparam("since", type_=DateTime(timezone=True)))).label("all_well"),
).join(services, services.c.host == nodes.c.service_host)

_SINCE = func.coalesce(bindparam("cloud_now", type_=DateTime(timezone=True)), func.statement_timestamp()) - bindparam(
    "cloud_down", type_=Interval
)
_POOLS = and_(aggregates.c.name == nodes.c.pool, aggregates.c.kind == "pool", ~aggregates.c.metadata.has_key(PROMISED))

NODES = (
    select(
        nodes.c.name.label("name"),
        case((~nodes.c.outside, aggregates.c.name)).label("pool"),
        _is_well(_SINCE).label("is_well"),
    )
    .select_from(nodes)
    .join(services, services.c.host == nodes.c.service_host)
    .outerjoin(aggregates, _POOLS)
    .subquery("cloud_hosts")
)
"""All nodes as rows (name, pool, is_well); the pool is null for one that is not in a pool of the engine."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A node and its service."""

    name: str
    service_host: str
    pool: str | None
    present: bool
    """Its driver reports it."""
    maintenance: str | None
    """The reason why no new servers are placed on it; None: they are."""
    enabled: bool
    disabled_reason: str | None
    forced_down: bool
    beat_at: datetime
    heard: bool
    """Its service has a recent heartbeat."""


def listed(conn: Connection, now: datetime, down: float) -> list[Condition]:
    """Return all nodes; a service has no recent heartbeat after `down` seconds without one. Times in UTC."""
    node, service = nodes.c, services.c
    query = (
        select(
            *(node.name, node.service_host, node.pool, node.present, node.maintenance),
            *(service.enabled, service.disabled_reason, service.forced_down, service.beat_at),
            (service.beat_at > now - timedelta(seconds=down)).label("heard"),
        )
        .join(services, service.host == node.service_host)
        .order_by(node.id)
    )
    rows = conn.execute(query).mappings()
    return [Condition(**{**row, "beat_at": row["beat_at"].astimezone(UTC)}) for row in rows]


def all_well(conn: Connection, now: datetime, down: float) -> list[str] | None:
    """Return the names of all nodes if each can run servers, else None: one row instead of thousands."""
    row = conn.execute(_WELL, {"since": now - timedelta(seconds=down)}).one()
    return row.names or [] if row.all_well is not False else None
