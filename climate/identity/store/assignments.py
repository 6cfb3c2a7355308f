"""Role assignments as rows, in projects and in the system."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, delete, exists, func, literal, select
from sqlalchemy.dialects.postgresql import insert

from climate.identity.models import Assignment, Role
from climate.identity.store.tables import projects, role_assignments, system_roles, users
from climate.identity.store.tables import roles as role_names


@dataclass(frozen=True, slots=True)
class Filter:
    """Filter of assignments; None matches all."""

    user_id: str | None = None
    project_id: str | None = None
    role: str | None = None
    is_system: bool = False
    """True for the assignments in the system only."""


def roles(conn: Connection, user_id: str, project_id: str | None) -> list[Role]:
    """Return the roles of a user in a project or, without one, in the system."""
    table = system_roles if project_id is None else role_assignments
    name = func.coalesce(role_names.c.name, table.c.role)
    question = (
        select(table.c.role, name.label("name"), func.coalesce(role_names.c.description, "").label("description"))
        .select_from(table.outerjoin(role_names, role_names.c.id == table.c.role))
        .where(table.c.user_id == user_id)
        .order_by(name)
    )
    if project_id is not None:
        question = question.where(role_assignments.c.project_id == project_id)
    return [Role(row.role, row.name, row.description) for row in conn.execute(question)]


def is_active_member(conn: Connection, user_id: str, project_id: str) -> bool:
    """Return whether an enabled user has a role in an enabled project."""
    both = role_assignments.join(users).join(projects, projects.c.id == role_assignments.c.project_id)
    wanted = (users.c.id == user_id, projects.c.id == project_id, users.c.enabled, projects.c.enabled)
    return bool(conn.scalar(select(exists(select(users.c.id).select_from(both).where(*wanted)))))


def listing(conn: Connection, wanted: Filter) -> list[Assignment]:
    """Return all matching assignments, ordered by names; those in the system are last."""
    found = [] if wanted.is_system else _matching(conn, _in_projects(), role_assignments, wanted)
    if wanted.project_id is None:
        found += _matching(conn, _in_system(), system_roles, wanted)
    return found


def _matching(conn: Connection, question: Select[Any], table: Any, wanted: Filter) -> list[Assignment]:
    for column, value in (("user_id", wanted.user_id), ("project_id", wanted.project_id), ("role", wanted.role)):
        if value is not None:
            question = question.where(table.c[column] == value)
    return [Assignment(**row._mapping) for row in conn.execute(question)]


def _in_projects() -> Select[Any]:
    name = func.coalesce(role_names.c.name, role_assignments.c.role)
    return (
        select(
            users.c.id.label("user_id"),
            users.c.name.label("user_name"),
            projects.c.id.label("project_id"),
            projects.c.name.label("project_name"),
            role_assignments.c.role,
            name.label("role_name"),
        )
        .select_from(
            role_assignments.join(users)
            .join(projects, projects.c.id == role_assignments.c.project_id)
            .outerjoin(role_names, role_names.c.id == role_assignments.c.role)
        )
        .order_by(projects.c.name, users.c.name, name)
    )


def _in_system() -> Select[Any]:
    name = func.coalesce(role_names.c.name, system_roles.c.role)
    return (
        select(
            users.c.id.label("user_id"),
            users.c.name.label("user_name"),
            literal(None).label("project_id"),
            literal(None).label("project_name"),
            system_roles.c.role,
            name.label("role_name"),
        )
        .select_from(system_roles.join(users).outerjoin(role_names, role_names.c.id == system_roles.c.role))
        .order_by(users.c.name, name)
    )


def add(conn: Connection, user_id: str, project_id: str | None, role: str) -> bool:
    """Add a role in a project or, without one, in the system; return False when the user has it already."""
    table, row = system_roles, {"user_id": user_id, "role": role}
    if project_id is not None:
        table, row = role_assignments, {**row, "project_id": project_id}
    added = insert(table).values(row).on_conflict_do_nothing().returning(table.c.role)
    return conn.execute(added).one_or_none() is not None


def remove(conn: Connection, user_id: str, project_id: str | None, role: str) -> bool:
    """Remove a role; return False when the user does not have it."""
    table = system_roles if project_id is None else role_assignments
    one = (table.c.user_id == user_id) & (table.c.role == role)
    if project_id is not None:
        one &= role_assignments.c.project_id == project_id
    return conn.execute(delete(table).where(one)).rowcount == 1
