"""Domains as rows; the default domain has none."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from sqlalchemy import Column, ColumnElement, Connection, Row, delete, exists, func, insert, literal, select, update

from climate.identity.models import DEFAULT_DOMAIN, DOMAIN_ID, DOMAIN_NAME, Domain, NameOrId
from climate.identity.store.tables import domains, groups, projects, roles, users

COLUMNS = (domains.c.id, domains.c.name, domains.c.description, domains.c.enabled, domains.c.extra)


def is_default(who: NameOrId | None) -> bool:
    """Return whether a reference is to the default domain."""
    return who is None or who.id == DOMAIN_ID or (not who.id and (who.name or "").lower() == DOMAIN_NAME.lower())


def named_in(column: Column[str], who: NameOrId | None) -> ColumnElement[bool]:
    """Return the condition that a column with a domain's id has the domain of a reference."""
    if who is None or is_default(who):
        return column.is_(None)
    if who.id:
        return column == who.id
    return column == select(domains.c.id).where(_name_is(who.name or "")).scalar_subquery()


def listing(conn: Connection) -> list[Domain]:
    """Return all domains by name."""
    found = [_domain(row) for row in conn.execute(select(*COLUMNS))]
    return sorted([DEFAULT_DOMAIN, *found], key=lambda one: one.name)


def find(conn: Connection, domain_id: str | None, *, share: bool = False) -> Domain | None:
    """Return the domain of that id; with `share`, it stays unchanged until this transaction ends."""
    if domain_id in (None, DOMAIN_ID):
        return DEFAULT_DOMAIN
    question = select(*COLUMNS).where(domains.c.id == domain_id)
    row = conn.execute(question.with_for_update(read=True) if share else question).one_or_none()
    return row and _domain(row)


def lock(conn: Connection, domain_id: str) -> Domain | None:
    """Return the domain of that id if it is not the default one; nobody else changes it until this transaction ends."""
    row = conn.execute(select(*COLUMNS).where(domains.c.id == domain_id).with_for_update()).one_or_none()
    return row and _domain(row)


def is_enabled(conn: Connection, domain_id: str | None) -> bool:
    """Return whether a domain is enabled, and keep it so until this transaction ends; no SQL for the default one."""
    found = find(conn, domain_id, share=True)
    return found is not None and found.enabled


def none_disabled(*columns: Column[str]) -> ColumnElement[bool]:
    """Return the condition that no column has the id of a disabled domain."""
    return ~exists(select(literal(1)).where(domains.c.id.in_(columns), ~domains.c.enabled))


def add(conn: Connection, domain: Domain) -> None:
    conn.execute(insert(domains).values(**asdict(domain)))


def change(conn: Connection, domain_id: str, changes: Mapping[str, object]) -> None:
    """Update a domain."""
    conn.execute(update(domains).where(domains.c.id == domain_id).values(**changes))


def remove(conn: Connection, domain_id: str) -> None:
    """Delete a domain, which has no users, groups and projects any more."""
    conn.execute(delete(domains).where(domains.c.id == domain_id))


def user_ids(conn: Connection, domain_id: str) -> Sequence[str]:
    """Return the ids of the users in a domain."""
    return conn.scalars(select(users.c.id).where(users.c.domain_id == domain_id).order_by(users.c.id)).all()


def group_ids(conn: Connection, domain_id: str) -> Sequence[str]:
    """Return the ids of the groups in a domain."""
    return conn.scalars(select(groups.c.id).where(groups.c.domain_id == domain_id).order_by(groups.c.id)).all()


def role_ids(conn: Connection, domain_id: str) -> Sequence[str]:
    """Return the ids of the roles that belong to a domain."""
    return conn.scalars(select(roles.c.id).where(roles.c.domain_id == domain_id).order_by(roles.c.id)).all()


def project_ids(conn: Connection, domain_id: str) -> Sequence[str]:
    """Return the ids of the projects in a domain, each after all that are below it."""
    tree = select(projects.c.id, literal(0).label("level")).where(
        projects.c.domain_id == domain_id, projects.c.parent_id.is_(None)
    )
    below = tree.cte("below", recursive=True)
    below = below.union_all(select(projects.c.id, below.c.level + 1).where(projects.c.parent_id == below.c.id))
    return conn.scalars(select(below.c.id).order_by(below.c.level.desc(), below.c.id)).all()


def _name_is(name: str) -> ColumnElement[bool]:
    return func.lower(domains.c.name) == name.lower()


def _domain(row: Row[*tuple[object, ...]]) -> Domain:
    return Domain(**row._mapping)
