"""Networks that have a name and no range yet."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

_COLUMNS = "id::text, label, manager, interface, vlan, project_id, created_at"

_LIST = text(f"SELECT {_COLUMNS} FROM compute_network_outlines ORDER BY created_at, label")

_GET = text(f"SELECT {_COLUMNS} FROM compute_network_outlines WHERE id = CAST(:id AS uuid) FOR UPDATE")

_MAKE = text(f"""
    INSERT INTO compute_network_outlines (label, manager, interface, vlan, project_id)
    VALUES (:label, :manager, :interface, :vlan, :project_id) RETURNING {_COLUMNS}
""")

_DROP = text("DELETE FROM compute_network_outlines WHERE id = CAST(:id AS uuid)")


@dataclass(frozen=True, slots=True)
class Outline:
    """A network that has a name and no range yet."""

    id: str
    label: str
    manager: str | None
    """None: it is outside, and becomes a pool of floating addresses."""
    interface: str | None
    vlan: int | None
    project_id: str | None
    created_at: datetime


def listed(conn: Connection) -> list[Outline]:
    """All of them, oldest first."""
    return [Outline(*row) for row in conn.execute(_LIST)]


def get(conn: Connection, outline_id: str) -> Outline | None:
    """The outline, with its row locked."""
    row = conn.execute(_GET, {"id": outline_id}).one_or_none()
    return None if row is None else Outline(*row)


def make(conn: Connection, wanted: dict[str, object]) -> Outline:
    """Write one down: label, manager, interface, vlan, project_id."""
    return Outline(*conn.execute(_MAKE, wanted).one())


def drop(conn: Connection, outline_id: str) -> None:
    """Forget one."""
    conn.execute(_DROP, {"id": outline_id})
