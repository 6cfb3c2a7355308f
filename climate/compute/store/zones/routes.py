"""The route to a server, found in one statement: it is here, or in one of some children."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Boolean, Connection, and_, bindparam, exists, func, or_, select

from climate.compute.store.tables.servers import servers
from climate.compute.store.tables.zones import zone_servers as placed
from climate.compute.store.tables.zones import zones
from climate.compute.store.zones import child_zones
from climate.compute.store.zones import servers as zone_servers
from climate.compute.store.zones.servers import PlacedServer
from climate.compute.zones.models import ChildZone


@dataclass(frozen=True, slots=True)
class ZoneRoute:
    """The location of a server, as far as this zone knows it."""

    now: datetime
    """Time by the clock of the database."""
    is_here: bool
    placed: PlacedServer | None = None
    """The server, if this zone placed it in a child."""
    zones: Sequence[ChildZone] = ()
    """The child that it was placed in, or else all children; oldest first, with sealed passwords."""


_PLACED = len(zone_servers.COLUMNS)

_ASKED = select(bindparam("id", type_=servers.c.id.type).label("id")).subquery()

_OFFERED = or_(zones.c.id == placed.c.zone_id, and_(placed.c.server_id.is_(None), bindparam("search", type_=Boolean())))

_FIND = (
    select(
        func.clock_timestamp(),
        exists().where(servers.c.id == _ASKED.c.id),
        *zone_servers.COLUMNS,
        *child_zones.COLUMNS,
    )
    .select_from(_ASKED)
    .outerjoin(placed, placed.c.server_id == _ASKED.c.id)
    .outerjoin(zones, _OFFERED)
    .order_by(zones.c.id)
)


def find(conn: Connection, server_id: str, *, search: bool) -> ZoneRoute:
    """Return the route to a server; `search`: if this zone has not placed it, include all children."""
    rows = conn.execute(_FIND, {"id": server_id, "search": search}).all()
    now, is_here, *rest = rows[0]
    known = PlacedServer(*rest[:_PLACED]) if rest[0] is not None else None
    children = [ChildZone(*row[2 + _PLACED :]) for row in rows if row[2 + _PLACED] is not None]
    return ZoneRoute(now, is_here, known, children)
