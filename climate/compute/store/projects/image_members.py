"""Projects that images are shared with."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, delete, select, update
from sqlalchemy.dialects.postgresql import insert

from climate.compute.models.image import SHARED, Image
from climate.compute.models.image_member import PENDING, Member
from climate.compute.store.tables.servers import image_members

_COLUMNS = tuple(image_members.c)


def _is(image_id: str, project_id: str) -> ColumnElement[bool]:
    return (image_members.c.image_id == image_id) & (image_members.c.project_id == project_id)


def is_seen(conn: Connection, image: Image, project_id: str, statuses: Sequence[str] | None = None) -> bool:
    """Return whether a project sees an image: its own, one for everybody, or one shared with it in any such status."""
    if image.is_visible_to(project_id):
        return True
    if image.visibility != SHARED:
        return False
    member = get(conn, image.id, project_id)
    return member is not None and (statuses is None or member.status in statuses)


def get(conn: Connection, image_id: str, project_id: str) -> Member | None:
    """Return a member of an image, or None."""
    row = conn.execute(select(*_COLUMNS).where(_is(image_id, project_id))).mappings().one_or_none()
    return Member(**row) if row else None


def listed(conn: Connection, image_id: str) -> list[Member]:
    """Return the members of an image by project."""
    query = select(*_COLUMNS).where(image_members.c.image_id == image_id).order_by(image_members.c.project_id)
    return [Member(**row) for row in conn.execute(query).mappings()]


def add(conn: Connection, image_id: str, project_id: str) -> Member | None:
    """Insert a member that has not answered; None if the project is a member already."""
    given = {"image_id": image_id, "project_id": project_id, "status": PENDING}
    statement = insert(image_members).values(given).on_conflict_do_nothing().returning(*_COLUMNS)
    row = conn.execute(statement).mappings().one_or_none()
    return Member(**row) if row else None


def answer(conn: Connection, image_id: str, project_id: str, status: str, now: datetime) -> Member | None:
    """Set the status of a member; None if the project is none."""
    statement = update(image_members).where(_is(image_id, project_id)).values(status=status, updated_at=now)
    row = conn.execute(statement.returning(*_COLUMNS)).mappings().one_or_none()
    return Member(**row) if row else None


def drop(conn: Connection, image_id: str, project_id: str) -> bool:
    """Delete a member; False if the project is none."""
    statement = delete(image_members).where(_is(image_id, project_id))
    return conn.execute(statement.returning(image_members.c.image_id)).first() is not None
