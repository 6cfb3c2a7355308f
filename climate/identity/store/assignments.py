"""Role assignments as rows."""

from dataclasses import dataclass

from sqlalchemy import Connection, delete, exists, select
from sqlalchemy.dialects.postgresql import insert

from climate.identity.models import Assignment
from climate.identity.store.tables import projects, role_assignments, users


@dataclass(frozen=True, slots=True)
class Filter:
    """Filter of assignments; None matches all."""

    user_id: str | None = None
    project_id: str | None = None
    role: str | None = None


def roles(conn: Connection, user_id: str, project_id: str) -> list[str]:
    """Return the roles of a user in a project."""
    mine = (role_assignments.c.user_id == user_id) & (role_assignments.c.project_id == project_id)
    return list(conn.scalars(select(role_assignments.c.role).where(mine).order_by(role_assignments.c.role)))


def is_active_member(conn: Connection, user_id: str, project_id: str) -> bool:
    """Return whether an enabled user has a role in an enabled project."""
    both = role_assignments.join(users).join(projects, projects.c.id == role_assignments.c.project_id)
    wanted = (users.c.id == user_id, projects.c.id == project_id, users.c.enabled, projects.c.enabled)
    return bool(conn.scalar(select(exists(select(users.c.id).select_from(both).where(*wanted)))))


def listing(conn: Connection, wanted: Filter) -> list[Assignment]:
    """Return all matching assignments, ordered by names."""
    question = (
        select(
            users.c.id.label("user_id"),
            users.c.name.label("user_name"),
            projects.c.id.label("project_id"),
            projects.c.name.label("project_name"),
            role_assignments.c.role,
        )
        .select_from(role_assignments.join(users).join(projects, projects.c.id == role_assignments.c.project_id))
        .order_by(projects.c.name, users.c.name, role_assignments.c.role)
    )
    for column, value in (("user_id", wanted.user_id), ("project_id", wanted.project_id), ("role", wanted.role)):
        if value is not None:
            question = question.where(role_assignments.c[column] == value)
    return [Assignment(**row._mapping) for row in conn.execute(question)]


def add(conn: Connection, user_id: str, project_id: str, role: str) -> bool:
    """Add a role; return False when the user has it already."""
    row = {"user_id": user_id, "project_id": project_id, "role": role}
    added = insert(role_assignments).values(row).on_conflict_do_nothing().returning(role_assignments.c.role)
    return conn.execute(added).one_or_none() is not None


def remove(conn: Connection, user_id: str, project_id: str, role: str) -> bool:
    """Remove a role; return False when the user does not have it."""
    one = (role_assignments.c.user_id == user_id) & (role_assignments.c.project_id == project_id)
    return conn.execute(delete(role_assignments).where(one, role_assignments.c.role == role)).rowcount == 1
