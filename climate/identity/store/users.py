"""Users as rows."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, replace

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from climate.identity.models import NameOrId, User
from climate.identity.store import domains
from climate.identity.store.tables import group_members, users

COLUMNS = (
    users.c.id,
    users.c.name,
    users.c.description,
    users.c.email,
    users.c.enabled,
    users.c.default_project_id,
    users.c.extra,
    users.c.domain_id,
    users.c.password_hash,
)


def find(conn: Connection, who: NameOrId) -> User | None:
    """Return the user of that id, or else of that name in its domain."""
    result = _row(conn, who, share=False)
    return _user(result) if result else None


def for_sign_in(conn: Connection, who: NameOrId) -> tuple[User, str | None] | None:
    """Return the user with its password hash; wait for concurrent changes of the user and of its domain.

    A user of a disabled domain is disabled.
    """
    result = _row(conn, who, share=True)
    if result is None:
        return None
    user = _user(result)
    return replace(user, enabled=user.enabled and domains.is_enabled(conn, user.domain_id)), result.password_hash


def lock(conn: Connection, user_id: str) -> User | None:
    """Return the user of that id, or None; it cannot sign in until this transaction ends."""
    row = conn.execute(select(*COLUMNS).where(users.c.id == user_id).with_for_update()).one_or_none()
    return row and _user(row)


def lock_with_default(conn: Connection, project_id: str) -> None:
    """Lock the users with that default project: sign-ins lock a user before a project, and deletions must too."""
    lock_all(conn, (), (project_id,))


def lock_all(conn: Connection, ids: Collection[str], default_projects: Collection[str] = ()) -> None:
    """Lock the users of these ids, and those with one of these default projects, in the order of their ids."""
    wanted = (users.c.id == func.any(list(ids))) | (users.c.default_project_id == func.any(list(default_projects)))
    conn.execute(select(users.c.id).where(wanted).order_by(users.c.id).with_for_update()).all()


def listing(conn: Connection, name: str | None = None, group_id: str | None = None) -> list[User]:
    """Return all users by name, or those of a name or in a group."""
    question = select(*COLUMNS).order_by(users.c.name, users.c.id)
    if name is not None:
        question = question.where(users.c.name == name)
    if group_id is not None:
        members = select(group_members.c.user_id).where(group_members.c.group_id == group_id)
        question = question.where(users.c.id.in_(members))
    return [_user(row) for row in conn.execute(question)]


def addresses(conn: Connection, user_ids: Collection[str]) -> dict[str, str]:
    """Return the mail addresses of those of these users who are enabled and have one."""
    is_enabled = users.c.enabled & domains.none_disabled(users.c.domain_id)
    wanted = (users.c.id == func.any(list(user_ids)), is_enabled, users.c.email != "")
    return {row.id: row.email for row in conn.execute(select(users.c.id, users.c.email).where(*wanted))}


def missing(conn: Connection, ids: Collection[str]) -> set[str]:
    """Return those of the ids that no user has."""
    known = select(users.c.id).where(users.c.id == func.any(list(ids)))
    return set(ids).difference(conn.scalars(known)) if ids else set()


def add(conn: Connection, user: User, password_hash: str | None) -> None:
    conn.execute(insert(users).values(**asdict(user), password_hash=password_hash))


def change(conn: Connection, user_id: str, changes: Mapping[str, object]) -> bool:
    """Update a user; return whether it exists."""
    return conn.execute(update(users).where(users.c.id == user_id).values(**changes)).rowcount == 1


def replace_hash(conn: Connection, user_id: str, old: str, new: str) -> None:
    """Replace the hash `old` by another hash of the same password, if it is still the user's."""
    same = (users.c.id == user_id) & (users.c.password_hash == old)
    conn.execute(update(users).where(same).values(password_hash=new))


def remove(conn: Connection, user_id: str) -> bool:
    """Delete a user with its roles and credentials; return whether it existed."""
    return conn.execute(delete(users).where(users.c.id == user_id)).rowcount == 1


def _row(conn: Connection, who: NameOrId, *, share: bool) -> Row[*tuple[object, ...]] | None:
    named = (users.c.name == (who.name or "")) & domains.named_in(users.c.domain_id, who.domain)
    question = select(*COLUMNS).where(users.c.id == who.id if who.id else named)
    return conn.execute(question.with_for_update(read=True) if share else question).one_or_none()


def _user(row: Row[*tuple[object, ...]]) -> User:
    values = {name: value for name, value in row._mapping.items() if name != "password_hash"}
    return User(**values)
