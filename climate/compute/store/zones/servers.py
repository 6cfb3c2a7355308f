"""Servers that this zone placed in its children, and whose they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

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
    """The child and the owner of a server that was placed in a child."""
    row = conn.execute(select(*COLUMNS).where(table.c.server_id == server_id)).one_or_none()
    return None if row is None else PlacedServer(*row)


def listed(conn: Connection, *, project_id: str | None = None, build_id: str | None = None) -> list[PlacedServer]:
    """Placed servers, newest first; None: of all projects, of all builds."""
    query = select(*COLUMNS).order_by(table.c.created_at.desc(), table.c.server_id)
    if project_id is not None:
        query = query.where(table.c.project_id == project_id)
    if build_id is not None:
        query = query.where(table.c.build_id == build_id)
    return [PlacedServer(*row) for row in conn.execute(query)]


def add(conn: Connection, values: Mapping[str, Any]) -> None:
    """Write down that a server was placed in a child, and whose it is; nothing when that is known."""
    conn.execute(insert(table).values(**values).on_conflict_do_nothing())


def forget(conn: Connection, server_ids: Sequence[str]) -> None:
    """Forget servers that are gone from their zones."""
    conn.execute(delete(table).where(table.c.server_id.in_(server_ids)))
