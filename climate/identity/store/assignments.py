"""Role assignments of users and groups as rows, in projects and in the system."""

from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import CTE, Connection, FromClause, Select, Table, delete, exists, func, literal, select
from sqlalchemy.dialects.postgresql import insert

from climate.identity.models import Assignment, Role
from climate.identity.store import domains, groups
from climate.identity.store import roles as role_store
from climate.identity.store.tables import (
    group_assignments,
    group_system_roles,
    projects,
    role_assignments,
    role_implications,
    system_roles,
    users,
)
from climate.identity.store.tables import groups as group_rows
from climate.identity.store.tables import roles as role_names


@dataclass(frozen=True, slots=True)
class Filter:
    """Filter of assignments; None matches all."""

    user_id: str | None = None
    project_id: str | None = None
    role: str | None = None
    is_system: bool = False
    """True for the assignments in the system only."""
    group_id: str | None = None
    effective: bool = False
    """True for the roles that users have, also by their groups, instead of the assignments."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A user or a group, which has roles."""

    id: str
    is_group: bool = False

    def table(self, project_id: str | None) -> Table:
        """Return the table of its roles in projects or, without one, in the system."""
        if self.is_group:
            return group_system_roles if project_id is None else group_assignments
        return system_roles if project_id is None else role_assignments

    @property
    def key(self) -> str:
        """Return the name of the column with its id."""
        return "group_id" if self.is_group else "user_id"


def roles(conn: Connection, holder: Holder, project_id: str | None) -> list[Role]:
    """Return the roles that were assigned to a user or a group in a project or, without one, in the system."""
    table = holder.table(project_id)
    return _named(conn, table, table.c[holder.key] == holder.id, project_id)


def effective(conn: Connection, user_id: str, project_id: str | None) -> list[Role]:
    """Return the roles that a user has in a project or, without one, in the system.

    They may be roles of its groups, or implied by others. Roles that belong to a domain only imply others.
    """
    table: FromClause = groups.effective_in_system() if project_id is None else groups.effective()
    question = select(table.c.role).where(table.c.user_id == user_id)
    if project_id is not None:
        question = question.where(table.c.project_id == project_id)
    return _named(conn, implying(question), role_names.c.domain_id.is_(None), None)


def implying(roles: Select[tuple[str]]) -> CTE:
    """Return roles, in the column `role`, and all that they imply."""
    found = roles.cte("found", recursive=True)
    return found.union(select(role_implications.c.implied).where(role_implications.c.prior == found.c.role))


def _named(conn: Connection, table: FromClause, is_holder: Any, project_id: str | None) -> list[Role]:
    name = func.coalesce(role_names.c.name, table.c.role)
    question = (
        select(
            table.c.role.label("id"),
            name.label("name"),
            func.coalesce(role_names.c.description, "").label("description"),
            role_names.c.domain_id,
        )
        .select_from(table.outerjoin(role_names, role_names.c.id == table.c.role))
        .where(is_holder)
        .order_by(name)
    )
    if project_id is not None:
        question = question.where(table.c.project_id == project_id)
    return [Role(**row._mapping) for row in conn.execute(question)]


def is_active_member(conn: Connection, user_id: str, project_id: str) -> bool:
    """Return whether an enabled user has a role in an enabled project, both in enabled domains."""
    has = groups.effective()
    both = has.join(users, users.c.id == has.c.user_id).join(projects, projects.c.id == has.c.project_id)
    is_enabled = (users.c.enabled, projects.c.enabled, domains.none_disabled(users.c.domain_id, projects.c.domain_id))
    wanted = (has.c.user_id == user_id, has.c.project_id == project_id, *is_enabled)
    return bool(conn.scalar(select(exists(select(users.c.id).select_from(both).where(*wanted)))))


def listing(conn: Connection, wanted: Filter) -> list[Assignment]:
    """Return all matching assignments, ordered by names; those in the system are last."""
    found = []
    for in_project in (True, False):
        if wanted.is_system if in_project else wanted.project_id is not None:
            continue
        if wanted.group_id is None:
            found += _of_users(conn, wanted, in_project=in_project)
        if wanted.user_id is None and not wanted.effective:
            found += _matching(conn, Holder("", is_group=True).table("" if in_project else None), group_rows, wanted)
    return found


def _of_users(conn: Connection, wanted: Filter, *, in_project: bool) -> list[Assignment]:
    table: FromClause = role_assignments if in_project else system_roles
    if wanted.effective:
        table = groups.effective() if in_project else groups.effective_in_system()
    return _matching(conn, table, users, wanted)


def _matching(conn: Connection, table: FromClause, holders: Table, wanted: Filter) -> list[Assignment]:
    key = "group_id" if holders is group_rows else "user_id"
    own = {"group_id": wanted.group_id} if holders is group_rows else {"user_id": wanted.user_id}
    question = _question(table, holders, key)
    role = None if wanted.effective else wanted.role
    for column, value in {**own, "project_id": wanted.project_id, "role": role}.items():
        if value is not None:
            question = question.where(table.c[column] == value)
    found = [Assignment(**row._mapping) for row in conn.execute(question)]
    if not wanted.effective:
        return found
    return [one for one in _implied(conn, found) if wanted.role in (None, one.role)]


def _implied(conn: Connection, found: list[Assignment]) -> list[Assignment]:
    """Return an assignment for each role that a user has or that is implied, once for a place."""
    rules = role_store.rules(conn)
    known = {role.id: role for role in role_store.listing(conn) if role.domain_id is None}
    whole: dict[tuple[str, str | None, str], Assignment] = {}
    for one in found:
        for role_id in sorted(role_store.closure(rules, (one.role,))):
            key = (one.user_id, one.project_id, role_id)
            if role_id in known:
                whole.setdefault(key, replace(one, role=role_id, role_name=known[role_id].name))
    return list(whole.values())


def _question(table: FromClause, holders: Table, key: str) -> Select[*tuple[object, ...]]:
    name = func.coalesce(role_names.c.name, table.c.role)
    tables = table.join(holders, holders.c.id == table.c[key])
    tables = tables.outerjoin(role_names, role_names.c.id == table.c.role)
    place: list[Any] = [literal(None), literal(None), literal(None)]
    order = [holders.c.name, holders.c.id, name]
    if "project_id" in table.c:
        tables = tables.join(projects, projects.c.id == table.c.project_id)
        place = [projects.c.id, projects.c.name, projects.c.domain_id]
        order = [projects.c.name, projects.c.id, *order]
    return (
        select(
            holders.c.id.label("user_id"),
            holders.c.name.label("user_name"),
            place[0].label("project_id"),
            place[1].label("project_name"),
            table.c.role,
            name.label("role_name"),
            holders.c.domain_id.label("user_domain_id"),
            place[2].label("project_domain_id"),
            literal(holders is group_rows).label("of_group"),
        )
        .select_from(tables)
        .order_by(*order)
    )


def add(conn: Connection, holder: Holder, project_id: str | None, role: str) -> bool:
    """Add a role in a project or, without one, in the system; return False when the holder has it already."""
    table, row = holder.table(project_id), {holder.key: holder.id, "role": role}
    if project_id is not None:
        row["project_id"] = project_id
    added = insert(table).values(row).on_conflict_do_nothing().returning(table.c.role)
    return conn.execute(added).one_or_none() is not None


def remove(conn: Connection, holder: Holder, project_id: str | None, role: str) -> bool:
    """Remove a role; return False when the holder does not have it."""
    table = holder.table(project_id)
    one = (table.c[holder.key] == holder.id) & (table.c.role == role)
    if project_id is not None:
        one &= table.c.project_id == project_id
    return conn.execute(delete(table).where(one)).rowcount == 1
