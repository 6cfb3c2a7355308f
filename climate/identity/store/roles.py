"""Roles as rows; the default roles have none, and are added to what is read."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from sqlalchemy import Connection, delete, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from climate.identity.models import ROLES, Role
from climate.identity.store import groups
from climate.identity.store.tables import (
    group_assignments,
    group_system_roles,
    role_assignments,
    role_implications,
    roles,
    system_roles,
)

COLUMNS = (roles.c.id, roles.c.name, roles.c.description, roles.c.domain_id)
DEFAULT = {name: Role(name, name) for name in ROLES}


def listing(conn: Connection) -> list[Role]:
    """Return all roles by name."""
    rows = [Role(**row._mapping) for row in conn.execute(select(*COLUMNS))]
    return sorted([*DEFAULT.values(), *rows], key=lambda role: role.name)


def find(conn: Connection, role_id: str, *, share: bool = False) -> Role | None:
    """Return the role of that id; with `share`, it stays until this transaction ends."""
    if role_id in DEFAULT:
        return DEFAULT[role_id]
    question = select(*COLUMNS).where(roles.c.id == role_id)
    row = conn.execute(question.with_for_update(read=True) if share else question).one_or_none()
    return row and Role(**row._mapping)


def lock(conn: Connection, role_id: str) -> Role | None:
    """Return the role of that id, if it is not a default one; nobody else changes or assigns it meanwhile."""
    row = conn.execute(select(*COLUMNS).where(roles.c.id == role_id).with_for_update()).one_or_none()
    return row and Role(**row._mapping)


def named(conn: Connection, references: Iterable[str]) -> list[Role]:
    """Return the roles with these ids or names that belong to no domain; an unknown reference has none."""
    wanted = list(dict.fromkeys(references))
    others = [one for one in wanted if one not in DEFAULT]
    known = dict(DEFAULT)
    if others:
        either = roles.c.id.in_(others) | roles.c.name.in_(others)
        for row in conn.execute(select(*COLUMNS).where(either, roles.c.domain_id.is_(None))):
            role = Role(**row._mapping)
            known |= {role.id: role, role.name: role}
    return [known[one] for one in wanted if one in known]


def add(conn: Connection, role: Role) -> None:
    conn.execute(insert(roles).values(**asdict(role)))


def change(conn: Connection, role: Role) -> None:
    """Write the name and the description of a role."""
    values = {"name": role.name, "description": role.description}
    conn.execute(update(roles).where(roles.c.id == role.id).values(values))


def remove(conn: Connection, role_id: str) -> None:
    """Delete a role, which no user and no group has any more in a project or in the system."""
    for table in (role_assignments, system_roles, group_assignments, group_system_roles):
        conn.execute(delete(table).where(table.c.role == role_id))
    rules = role_implications.c
    conn.execute(delete(role_implications).where((rules.prior == role_id) | (rules.implied == role_id)))
    conn.execute(delete(roles).where(roles.c.id == role_id))


def holders(conn: Connection, role_id: str) -> Sequence[tuple[str, str | None]]:
    """Return each user with a role and the project; the project of the system is None.

    The role may be one of a group, or be implied by another one.
    """
    in_projects, in_system = groups.effective(), groups.effective_in_system()
    wanted = _priors(conn, role_id)
    found = conn.execute(
        select(in_projects.c.user_id, in_projects.c.project_id)
        .where(in_projects.c.role.in_(wanted))
        .distinct()
        .order_by(in_projects.c.user_id, in_projects.c.project_id)
    )
    system = select(in_system.c.user_id).where(in_system.c.role.in_(wanted)).distinct().order_by(in_system.c.user_id)
    return [*((row.user_id, row.project_id) for row in found), *((one, None) for one in conn.scalars(system))]


def rules(conn: Connection, prior: str | None = None) -> list[tuple[str, str]]:
    """Return the ids of a role and of one that it implies, for each rule, or for those of one role."""
    question = select(role_implications.c.prior, role_implications.c.implied)
    if prior is not None:
        question = question.where(role_implications.c.prior == prior)
    ordered = question.order_by(role_implications.c.prior, role_implications.c.implied)
    return [(row.prior, row.implied) for row in conn.execute(ordered)]


def add_rule(conn: Connection, prior: str, implied: str) -> bool:
    """Let a role imply another; return False if it does already."""
    added = upsert(role_implications).values(prior=prior, implied=implied).on_conflict_do_nothing()
    return conn.execute(added.returning(role_implications.c.prior)).one_or_none() is not None


def remove_rule(conn: Connection, prior: str, implied: str) -> bool:
    """Let a role imply another no more; return False if it did not."""
    one = (role_implications.c.prior == prior) & (role_implications.c.implied == implied)
    return conn.execute(delete(role_implications).where(one)).rowcount == 1


def closure(rules: Iterable[tuple[str, str]], role_ids: Iterable[str]) -> set[str]:
    """Return the ids of roles, and of those that follow from them by rules, each a pair of ids."""
    following: dict[str, set[str]] = {}
    for first, second in rules:
        following.setdefault(first, set()).add(second)
    found, waiting = set(role_ids), list(role_ids)
    while waiting:
        new = following.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found


def _priors(conn: Connection, role_id: str) -> set[str]:
    """Return the ids of a role, and of those that imply it."""
    return closure(((implied, prior) for prior, implied in rules(conn)), (role_id,))


def is_name_taken(conn: Connection, name: str, domain_id: str | None = None) -> bool:
    """Return whether a role of a domain or, without one, of none has that name, in capitals or not."""
    in_it = roles.c.domain_id.is_(None) if domain_id is None else roles.c.domain_id == domain_id
    same = select(roles.c.id).where(func.lower(roles.c.name) == name.lower(), in_it)
    return (domain_id is None and name.lower() in DEFAULT) or conn.execute(same).first() is not None
