"""Rows of namespaces of metadata definitions."""

from datetime import datetime

from sqlalchemy import Connection, RowMapping, delete, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from climate.compute.models.metadef import PUBLIC, Namespace
from climate.compute.store.tables.servers import metadefs

_COLUMNS = tuple(metadefs.c)


def listed(conn: Connection, project_id: str | None) -> list[Namespace]:
    """Return the namespaces that a project sees by name: public ones and its own; None: all."""
    query = select(*_COLUMNS).order_by(metadefs.c.namespace)
    if project_id is not None:
        query = query.where(or_(metadefs.c.visibility == PUBLIC, metadefs.c.owner == project_id))
    return [Namespace(**row) for row in conn.execute(query).mappings()]


def get(conn: Connection, name: str, *, lock: bool = False) -> Namespace | None:
    """Return a namespace, or None."""
    query = select(*_COLUMNS).where(metadefs.c.namespace == name)
    return _one(conn.execute(query.with_for_update() if lock else query).mappings().one_or_none())


def add(conn: Connection, new: Namespace) -> Namespace | None:
    """Insert a namespace; None if the name is taken."""
    statement = insert(metadefs).values(_row(new)).on_conflict_do_nothing().returning(*_COLUMNS)
    return _one(conn.execute(statement).mappings().one_or_none())


def save(conn: Connection, name: str, changed: Namespace, now: datetime) -> Namespace:
    """Replace the namespace of a name; its own name may change. IntegrityError if the new one is taken."""
    statement = update(metadefs).where(metadefs.c.namespace == name).values({**_row(changed), "updated_at": now})
    return Namespace(**conn.execute(statement.returning(*_COLUMNS)).mappings().one())


def drop(conn: Connection, name: str) -> None:
    """Delete a namespace."""
    conn.execute(delete(metadefs).where(metadefs.c.namespace == name))


def _row(namespace: Namespace) -> dict[str, object]:
    names = ("namespace", "owner", "visibility", "protected", "display_name", "description", "parts")
    return {name: getattr(namespace, name) for name in names}


def _one(row: RowMapping | None) -> Namespace | None:
    return Namespace(**row) if row else None
