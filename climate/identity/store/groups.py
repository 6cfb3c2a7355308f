"""Groups of users as rows, and the roles that users have by them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from sqlalchemy import Connection, Row, Subquery, delete, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from climate.identity.models import Group
from climate.identity.store.tables import (
    group_assignments,
    group_members,
    group_system_roles,
    groups,
    role_assignments,
    system_roles,
)

COLUMNS = (groups.c.id, groups.c.name, groups.c.description, groups.c.domain_id, groups.c.extra)


def effective() -> Subquery:
    """Return the roles of users in projects, their own and those of their groups, as user_id, project_id and role."""
    own = select(role_assignments.c.user_id, role_assignments.c.project_id, role_assignments.c.role)
    by_group = select(group_members.c.user_id, group_assignments.c.project_id, group_assignments.c.role).join_from(
        group_members, group_assignments, group_members.c.group_id == group_assignments.c.group_id
    )
    return own.union(by_group).subquery("effective")


def effective_in_system() -> Subquery:
    """Return the roles of users in the system, their own and those of their groups, as user_id and role."""
    own = select(system_roles.c.user_id, system_roles.c.role)
    by_group = select(group_members.c.user_id, group_system_roles.c.role).join_from(
        group_members, group_system_roles, group_members.c.group_id == group_system_roles.c.group_id
    )
    return own.union(by_group).subquery("effective")


def listing(conn: Connection, user_id: str | None = None) -> list[Group]:
    """Return all groups by name, or those of a user."""
    question = select(*COLUMNS).order_by(groups.c.name, groups.c.id)
    if user_id is not None:
        own = select(group_members.c.group_id).where(group_members.c.user_id == user_id)
        question = question.where(groups.c.id.in_(own))
    return [_group(row) for row in conn.execute(question)]


def find(conn: Connection, group_id: str) -> Group | None:
    """Return the group of that id."""
    row = conn.execute(select(*COLUMNS).where(groups.c.id == group_id)).one_or_none()
    return row and _group(row)


def lock(conn: Connection, group_id: str) -> Group | None:
    """Return the group of that id, or None; nobody else changes it, its members or roles meanwhile."""
    row = conn.execute(select(*COLUMNS).where(groups.c.id == group_id).with_for_update()).one_or_none()
    return row and _group(row)


def add(conn: Connection, group: Group) -> None:
    conn.execute(insert(groups).values(**asdict(group)))


def change(conn: Connection, group_id: str, changes: Mapping[str, object]) -> None:
    """Update a group."""
    conn.execute(update(groups).where(groups.c.id == group_id).values(**changes))


def remove(conn: Connection, group_id: str) -> None:
    """Delete a group with its members and roles."""
    conn.execute(delete(groups).where(groups.c.id == group_id))


def members(conn: Connection, group_id: str) -> Sequence[str]:
    """Return the ids of the users in a group."""
    question = select(group_members.c.user_id).where(group_members.c.group_id == group_id)
    return conn.scalars(question.order_by(group_members.c.user_id)).all()


def add_member(conn: Connection, group_id: str, user_id: str) -> bool:
    """Add a user to a group; return False if it is there already."""
    row = upsert(group_members).values(group_id=group_id, user_id=user_id)
    added = row.on_conflict_do_nothing().returning(group_members.c.user_id)
    return conn.execute(added).one_or_none() is not None


def remove_member(conn: Connection, group_id: str, user_id: str) -> bool:
    """Remove a user from a group; return False if it is not there."""
    one = (group_members.c.group_id == group_id) & (group_members.c.user_id == user_id)
    return conn.execute(delete(group_members).where(one)).rowcount == 1


def _group(row: Row[*tuple[object, ...]]) -> Group:
    return Group(**row._mapping)
