"""Calendar feeds as rows, and the leases that a feed shows."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from hmac import compare_digest
from uuid import UUID

from sqlalchemy import Connection, Row, Select, and_, delete, func, insert, select, union
from sqlalchemy.dialects.postgresql import aggregate_order_by

from climate.domain.period import Period
from climate.store.tables.calendar_feeds_and_mail import calendar_feeds as table
from climate.store.tables.leases import leases, reservations, shared_with


class Scope(StrEnum):
    """Leases that a feed shows."""

    USER = "user"  # those of its user in its project
    PROJECT = "project"  # those of its project


@dataclass(frozen=True, slots=True)
class Feed:
    """A calendar feed without its secret."""

    id: UUID
    scope: Scope
    project_id: str
    user_id: str
    name: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Entry:
    """A lease as a calendar shows it. `version` grows with each change of the lease."""

    lease_id: UUID
    name: str
    period: Period
    status: str
    version: int
    created_at: datetime
    updated_at: datetime | None
    removed: bool
    """Set if the lease is deleted, or about to be."""
    resources: Sequence[str] = ()
    """Resource types of its reservations, each with its number where it has one."""
    waits: bool = False
    """Set while the lease is in the waiting list, without its resources."""


COLUMNS = (table.c.id, table.c.scope, table.c.project_id, table.c.user_id, table.c.name, table.c.created_at)


def add(conn: Connection, feed: Feed, secret_hash: bytes) -> None:
    conn.execute(insert(table).values(**asdict(feed), secret_hash=secret_hash))


def count(conn: Connection, user_id: str, project_id: str) -> int:
    """Return the number of feeds that a user has in a project."""
    mine = (table.c.user_id == user_id) & (table.c.project_id == project_id)
    return int(conn.execute(select(func.count()).where(mine)).scalar_one())


def listed(conn: Connection, owner: tuple[str, str] | None, marker: UUID | None, limit: int | None) -> list[Feed]:
    """Return feeds in the order of their creation: those of a user in a project, or with None all."""
    query = _of(select(*COLUMNS), owner).order_by(table.c.id).limit(limit)
    return [_feed(row) for row in conn.execute(query if marker is None else query.where(table.c.id > marker))]


def find(conn: Connection, feed_id: UUID, owner: tuple[str, str] | None) -> Feed | None:
    """Return a feed, of this user and project or with None of anybody."""
    row = conn.execute(_of(select(*COLUMNS), owner).where(table.c.id == feed_id)).one_or_none()
    return _feed(row) if row else None


def remove(conn: Connection, feed_id: UUID) -> bool:
    """Delete a feed; return whether it existed."""
    return conn.execute(delete(table).where(table.c.id == feed_id)).rowcount == 1


def with_secret(conn: Connection, secret_hash: bytes) -> Feed | None:
    """Return the feed whose secret has this hash."""
    row = conn.execute(select(*COLUMNS, table.c.secret_hash).where(table.c.secret_hash == secret_hash)).one_or_none()
    return _feed(row) if row and compare_digest(row.secret_hash, secret_hash) else None


def entries(conn: Connection, feed: Feed, window: Period, most: int) -> list[Entry]:
    """Return the leases of a feed that overlap the window, at most the `most` that end first; in one statement.

    Leases that are shared with the user, or with the project, are among them.
    """
    wanted = [leases.c.end_date > window.start, leases.c.start_date < window.end]
    if feed.scope is Scope.USER:
        owned = and_(leases.c.project_id == feed.project_id, leases.c.user_id == feed.user_id)
        shared = shared_with(user_id=feed.user_id)
    else:
        owned = leases.c.project_id == feed.project_id
        shared = shared_with(project_id=feed.project_id)
    order = (leases.c.end_date, leases.c.id)
    parts = [select(leases.c.id).where(*wanted, one).order_by(*order).limit(most) for one in (owned, shared)]
    ids = union(*(part.subquery().select() for part in parts))
    query = select(*_ENTRY, _RESOURCES).where(leases.c.id.in_(ids)).order_by(*order).limit(most)
    return [_entry(row) for row in conn.execute(query)]


def entries_of(conn: Connection, lease_ids: Collection[UUID]) -> dict[UUID, Entry]:
    """Return leases as entries, by their ids."""
    rows = conn.execute(select(*_ENTRY, _RESOURCES).where(leases.c.id == func.any(list(lease_ids))))
    return {row.id: _entry(row) for row in rows}


_ENTRY = (
    leases.c.id,
    leases.c.name,
    leases.c.start_date,
    leases.c.end_date,
    leases.c.status,
    leases.c.version,
    leases.c.created_at,
    leases.c.updated_at,
    (leases.c.gone | leases.c.deleting).label("removed"),
    leases.c.wait_until.is_not(None).label("waits"),
)

_NUMBER = func.coalesce(reservations.c.spec["max"].astext, reservations.c.spec["amount"].astext)
_RESOURCES = (
    select(
        func.array_agg(
            aggregate_order_by(func.concat_ws(" × ", _NUMBER, reservations.c.resource_type), reservations.c.position)
        )
    )
    .where(reservations.c.lease_id == leases.c.id)
    .scalar_subquery()
    .label("resources")
)


def _of(query: Select[*tuple[object, ...]], owner: tuple[str, str] | None) -> Select[*tuple[object, ...]]:
    if owner is None:
        return query
    return query.where(table.c.user_id == owner[0], table.c.project_id == owner[1])


def _feed(row: Row[*tuple[object, ...]]) -> Feed:
    return Feed(row.id, Scope(row.scope), row.project_id, row.user_id, row.name, row.created_at)


def _entry(row: Row[*tuple[object, ...]]) -> Entry:
    return Entry(
        row.id,
        row.name,
        Period(row.start_date, row.end_date),
        row.status,
        row.version,
        row.created_at,
        row.updated_at,
        row.removed,
        tuple(row.resources or ()),
        row.waits,
    )
