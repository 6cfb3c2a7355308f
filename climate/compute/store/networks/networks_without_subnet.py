"""Networks with a name and no range yet."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from climate.compute.store.tables.networks_without_subnet import network_outlines as outlines

COLUMNS = (
    outlines.c.id,
    outlines.c.label,
    outlines.c.manager,
    outlines.c.interface,
    outlines.c.vlan,
    outlines.c.project_id,
    outlines.c.created_at,
    outlines.c.by_project,
)

_OF_ID = outlines.c.id == bindparam("outline_id")

_LIST = select(*COLUMNS).order_by(outlines.c.created_at, outlines.c.label)

_LOCK = select(*COLUMNS).where(_OF_ID).with_for_update()

_KEEP = select(*COLUMNS).where(_OF_ID).with_for_update(read=True)

_MAKE = insert(outlines).returning(*COLUMNS)

_DROP = delete(outlines).where(_OF_ID)


@dataclass(frozen=True, slots=True)
class Outline:
    """A network with a name and no range yet."""

    id: str
    label: str
    manager: str | None
    """None: it is external, and becomes a pool of floating addresses."""
    interface: str | None
    vlan: int | None
    project_id: str | None
    created_at: datetime
    by_project: bool = False
    """True: created by its project, which deletes it."""

    def is_seen_by(self, project_id: str | None) -> bool:
        """Return whether a project sees it, None: an administrator.

        Others see external networks, and those that they created.
        """
        return project_id is None or self.manager is None or (self.by_project and self.project_id == project_id)


def listed(conn: Connection) -> list[Outline]:
    """Return all of them, oldest first."""
    return [Outline(*row) for row in conn.execute(_LIST)]


def get(conn: Connection, outline_id: str, *, keep: bool = False) -> Outline | None:
    """Return the outline, with its row locked; `keep`: against its deletion only."""
    row = conn.execute(_KEEP if keep else _LOCK, {"outline_id": outline_id}).one_or_none()
    return None if row is None else Outline(*row)


def create(conn: Connection, wanted: dict[str, object]) -> Outline:
    """Insert an outline: label, manager, interface, vlan, project_id, and optionally id and by_project."""
    return Outline(*conn.execute(_MAKE, wanted).one())


def change(conn: Connection, outline_id: str, changes: dict[str, object]) -> None:
    """Update the label of an outline, or its manager, interface and VLAN."""
    conn.execute(update(outlines).where(_OF_ID).values(**changes), {"outline_id": outline_id})


def count(conn: Connection, project_id: str) -> int:
    """Return the number of outlines that a project created."""
    query = select(func.count()).where(outlines.c.project_id == project_id, outlines.c.by_project)
    return conn.execute(query).scalar_one()


def drop(conn: Connection, outline_id: str) -> None:
    """Delete an outline."""
    conn.execute(_DROP, {"outline_id": outline_id})
