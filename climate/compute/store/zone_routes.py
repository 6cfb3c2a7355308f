"""The way to a server: whether it is here, or which children may have it, in one statement."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, and_, cast, exists, func, literal, or_, select

from climate.compute.store import child_zones, zone_servers
from climate.compute.store.tables import servers
from climate.compute.store.zone_servers import PlacedServer
from climate.compute.store.zone_tables import zone_servers as placed
from climate.compute.store.zone_tables import zones
from climate.compute.zones.models import ChildZone


@dataclass(frozen=True, slots=True)
class ZoneRoute:
    """Place of a server, as far as this zone knows it."""

    now: datetime
    """By the clock of the database."""
    is_here: bool
    placed: PlacedServer | None = None
    """The server, when this zone placed it in a child."""
    zones: Sequence[ChildZone] = ()
    """The child that it was placed in, or else all children; oldest first, with sealed passwords."""


_PLACED = len(zone_servers.COLUMNS)


def find(conn: Connection, server_id: str, *, search: bool) -> ZoneRoute:
    """The way to a server; `search`: when this zone has not placed it, all children may have it."""
    asked = select(cast(server_id, servers.c.id.type).label("id")).subquery()
    query = (
        select(
            func.clock_timestamp(),
            exists().where(servers.c.id == asked.c.id),
            *zone_servers.COLUMNS,
            *child_zones.COLUMNS,
        )
        .select_from(asked)
        .outerjoin(placed, placed.c.server_id == asked.c.id)
        .outerjoin(zones, or_(zones.c.id == placed.c.zone_id, and_(placed.c.server_id.is_(None), literal(search))))
        .order_by(zones.c.id)
    )
    rows = conn.execute(query).all()
    now, is_here, *rest = rows[0]
    known = PlacedServer(*rest[:_PLACED]) if rest[0] is not None else None
    children = [ChildZone(*row[2 + _PLACED :]) for row in rows if row[2 + _PLACED] is not None]
    return ZoneRoute(now, is_here, known, children)
