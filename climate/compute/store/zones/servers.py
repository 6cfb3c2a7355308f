"""Servers that this zone placed in its children, and their owners."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.postgresql import insert

from climate.compute.store.tables.zones import zone_servers as table


@dataclass(frozen=True, slots=True)
class PlacedServer:
    """A server in a child zone."""

    server_id: str
    zone_id: int
    project_id: str
    user_id: str
    build_id: str
    name: str
    created_at: datetime


COLUMNS = [table.c[name] for name in PlacedServer.__slots__]


def get(conn: Connection, server_id: str) -> PlacedServer | None:
    """Return the child and the owner of a server that was placed in a child."""
    row = conn.execute(select(*COLUMNS).where(table.c.server_id == server_id)).one_or_none()
    return None if row is None else PlacedServer(*row)


def listed(conn: Connection, *, project_id: str | None = None, build_id: str | None = None) -> list[PlacedServer]:
    """Return placed servers, newest first; None: of all projects, of all builds."""
    query = select(*COLUMNS).order_by(table.c.created_at.desc(), table.c.server_id)
    if project_id is not None:
        query = query.where(table.c.project_id == project_id)
    if build_id is not None:
        query = query.where(table.c.build_id == build_id)
    return [PlacedServer(*row) for row in conn.execute(query)]


def add(conn: Connection, values: Mapping[str, object]) -> None:
    """Insert a server placed in a child, and its owner; nothing if it is recorded already."""
    conn.execute(insert(table).values(**values).on_conflict_do_nothing())


def forget(conn: Connection, server_ids: Sequence[str]) -> None:
    """Delete the records of servers that were deleted in their zones."""
    conn.execute(delete(table).where(table.c.server_id.in_(server_ids)))
