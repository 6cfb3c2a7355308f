"""Rows of archives: selection of leases, the index of their files, and the deletion of their rows."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Connection,
    Delete,
    Integer,
    Uuid,
    bindparam,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY

from climate.database import advisory_locks
from climate.store import locks
from climate.store.journal.archive_files import ArchiveFile, Line, Place
from climate.store.schema import Time
from climate.store.tables.archives import archived_leases, archives
from climate.store.tables.floating_ips import floating_allocations
from climate.store.tables.inventories import inventory_allocations
from climate.store.tables.leases import (
    actions,
    allocations,
    events,
    healing_waits,
    journal,
    lease_pools,
    leases,
    reservations,
)
from climate.store.tables.series import lease_series

LOOKED_AT = 10_000
"""Maximum of archived leases that one statement reads, to stay within the statement time-out."""
LAST = UUID(int=2**128 - 1)
BEGINNING = (datetime(1, 1, 1, tzinfo=UTC), UUID(int=0))


@dataclass(frozen=True, slots=True)
class Archive:
    """A file of archived leases, as recorded in the database."""

    id: int
    name: str
    state: str
    leases: int
    facts: int
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ArchivableStream:
    """A lease or series that was deleted before the given time; `version` is its number of facts."""

    id: UUID
    version: int
    gone_at: datetime
    is_needed: bool
    """True if something of it is in force, or refers to it."""


def try_lock(conn: Connection) -> bool:
    """Take the lock of archiving for the length of this connection; return False if another process holds it."""
    return bool(conn.scalar(_LOCK))


def unlock(conn: Connection) -> None:
    """Release the lock of archiving."""
    conn.execute(_UNLOCK)


def old(conn: Connection, before: datetime, after: tuple[datetime, UUID], limit: int) -> list[ArchivableStream]:
    """Return leases deleted before that time, in the order of deletion, after a position in it."""
    rows = conn.execute(_OLD, {"before": before, "at": after[0], "last": after[1], "limit": limit})
    return [ArchivableStream(row.id, row.version, row.updated_at, row.is_needed) for row in rows]


def old_series(conn: Connection, before: datetime, after: tuple[datetime, UUID], limit: int) -> list[ArchivableStream]:
    """Return series deleted before that time, as `old` does; one that still has leases is needed."""
    rows = conn.execute(_OLD_SERIES, {"before": before, "at": after[0], "last": after[1], "limit": limit})
    return [ArchivableStream(row.id, row.version, row.updated_at, row.is_needed) for row in rows]


def lines(conn: Connection, ids: Collection[UUID]) -> Iterator[Line]:
    """Return leases or series with all their facts and actions, in the order of their ids."""
    given = {"ids": list(ids)}
    complete = {
        key: list(rows) for key, rows in groupby(conn.execute(_ACTIONS, given).mappings(), lambda r: r["lease_id"])
    }
    for stream, facts in groupby(conn.execute(_FACTS, given).mappings(), lambda row: row["stream"]):
        yield {
            "lease_id": str(stream),
            "facts": [_plain(row) for row in facts],
            "actions": [_plain(row) for row in complete.get(stream, ())],
        }


def _plain(row: Any) -> dict[str, object]:
    hidden = ("stream", "lease_id")
    plain = {name: value for name, value in row.items() if name not in hidden}
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in plain.items()}


def begin(conn: Connection, name: str, before: datetime, now: datetime) -> int:
    """Record that a file is being written; return its id."""
    row = {"name": name, "state": "writing", "older_than": before, "created_at": now}
    number: int = conn.execute(insert(archives).values(row).returning(archives.c.id)).scalar_one()
    return number


def finish(conn: Connection, number: int, written: ArchiveFile) -> None:
    """Record that a file is complete, with the position of each lease; their rows may be deleted from now on."""
    complete = [
        {
            "lease_id": place.lease_id,
            "archive": number,
            "place": place.place,
            "size": place.size,
            "version": place.version,
        }
        for place in written.places
    ]
    conn.execute(insert(archived_leases), complete)
    details = {"leases": len(complete), "facts": sum(place.version for place in written.places)}
    whole = update(archives).where(archives.c.id == number)
    conn.execute(whole.values(state="written", size=written.size, sha256=written.sha256, **details))


def forget(conn: Connection, number: int) -> None:
    """Delete the record of an unfinished file."""
    conn.execute(delete(archives).where(archives.c.id == number, archives.c.state == "writing"))


def listed(conn: Connection, *states: str) -> list[Archive]:
    """Return archives in one of these states, in the order in which they were begun."""
    wanted = select(*(archives.c[name] for name in Archive.__slots__)).where(archives.c.state.in_(states))
    return [Archive(*row) for row in conn.execute(wanted.order_by(archives.c.id))]


def delete_rows(conn: Connection, number: int, limit: int) -> int:
    """Delete all rows of some leases or series in the archive; return how many were checked.

    One with newer facts, or that is needed, stays, and is removed from the archive's index.
    """
    locked = list(conn.scalars(_LEFT, {"number": number, "limit": limit}))
    if not locked:
        return _delete_series(conn, number, limit)
    # Check after locking the rows: no new reference to these leases can appear before the commit.
    stays = set(conn.scalars(_CHANGED, {"ids": locked}))
    _delete(conn, number, _DELETED, [one for one in locked if one not in stays])
    return len(locked)


def _delete_series(conn: Connection, number: int, limit: int) -> int:
    locked = list(conn.scalars(_SERIES_LEFT, {"number": number, "limit": limit}))
    if locked:
        stays = set(conn.scalars(_SERIES_CHANGED, {"ids": locked}))
        _delete(conn, number, _SERIES_DELETED, [one for one in locked if one not in stays])
    return len(locked)


def _delete(conn: Connection, number: int, statements: Sequence[Delete], ids: Sequence[UUID]) -> None:
    conn.execute(select(func.set_config("climate.archive", str(number), True)))
    for statement in statements:
        conn.execute(statement, {"ids": ids})


def close(conn: Connection, number: int) -> None:
    """Record that no rows of the leases in an archive are left."""
    conn.execute(update(archives).where(archives.c.id == number).values(state="done"))


def delete_index(conn: Connection, number: int) -> tuple[int, int]:
    """Delete the index of an archive; return how many of its leases have rows, and how many have none."""
    there, indexed = conn.execute(_INDEXED, {"number": number}).one()
    conn.execute(delete(archived_leases).where(archived_leases.c.archive == number))
    conn.execute(delete(archives).where(archives.c.id == number))
    return there, indexed - there


def place(conn: Connection, lease_id: UUID) -> tuple[str, Place] | None:
    """Return the file that has a lease and its position there; None if no archive has it."""
    row = conn.execute(_PLACE, {"lease_id": lease_id}).one_or_none()
    return (row.name, Place(lease_id, row.place, row.size, row.version)) if row else None


def with_remaining_rows(conn: Connection, portion: int = LOOKED_AT) -> Iterator[UUID]:
    """Return leases with remaining rows although an archive has them; read a limited number per statement."""
    after: UUID | None = UUID(int=0)
    while after is not None:
        last = conn.scalar(_PORTION, {"after": after, "limit": portion})
        yield from conn.scalars(_LEFT_OVER, {"after": after, "last": last or LAST})
        after = last


_LOCK = text(f"SELECT pg_try_advisory_lock({advisory_locks.ARCHIVES})")
_UNLOCK = text(f"SELECT pg_advisory_unlock({advisory_locks.ARCHIVES})")

# The limit is applied first, so that the checks run for that many leases, each by its key.
_IN_FORCE = " OR ".join(
    f"EXISTS (SELECT FROM {table} a WHERE a.reservation_id = r.id AND a.state IN ('held', 'active'))"
    for table in ("allocations", "floating_allocations", "inventory_allocations")
)
_OLD = text(f"""
    SELECT l.id, l.version, l.updated_at,
        EXISTS (SELECT FROM reservations r WHERE r.lease_id = l.id AND ({_IN_FORCE}
            OR r.id IN (SELECT pool_reservation FROM hosts WHERE removed_at IS NULL)))
        OR EXISTS (SELECT FROM events e JOIN claims c ON c.event_id = e.id WHERE e.lease_id = l.id)
        OR EXISTS (SELECT FROM events e WHERE e.lease_id = l.id AND e.kind = 'end_lease' AND e.status <> 'DONE')
        OR EXISTS (SELECT FROM leases_set_aside s WHERE s.lease_id = l.id)
        OR EXISTS (SELECT FROM archived_leases x WHERE x.lease_id = l.id) OR l.end_date >= :before AS is_needed
    FROM (SELECT id, version, updated_at, end_date FROM leases
        WHERE gone AND updated_at < :before AND (updated_at, id) > (:at, :last)
        ORDER BY updated_at, id LIMIT :limit) l
    ORDER BY l.updated_at, l.id
""").bindparams(bindparam("last", type_=Uuid))  # noqa: S608

_OLD_SERIES = (
    select(
        lease_series.c.id,
        lease_series.c.version,
        lease_series.c.updated_at,
        or_(
            exists().where(leases.c.series_id == lease_series.c.id),
            exists().where(archived_leases.c.lease_id == lease_series.c.id),
        ).label("is_needed"),
    )
    .where(
        lease_series.c.gone,
        lease_series.c.updated_at < bindparam("before", type_=Time),
        tuple_(lease_series.c.updated_at, lease_series.c.id)
        > tuple_(bindparam("at", type_=Time), bindparam("last", type_=Uuid)),
    )
    .order_by(lease_series.c.updated_at, lease_series.c.id)
    .limit(bindparam("limit", type_=Integer))
)

_IDS = bindparam("ids", type_=ARRAY(Uuid))
_FACTS = select(journal).where(journal.c.stream == func.any(_IDS)).order_by(journal.c.stream, journal.c.version)
_ACTIONS = (
    select(events.c.lease_id, actions)
    .join(events, events.c.id == actions.c.event_id)
    .where(events.c.lease_id == func.any(_IDS))
    .order_by(events.c.lease_id, actions.c.due_at, actions.c.step)
)

_LEFT = text("""
    SELECT l.id FROM archived_leases a JOIN leases l ON l.id = a.lease_id
    WHERE a.archive = :number ORDER BY l.id LIMIT :limit FOR UPDATE OF l
""")
_CHANGED = text("""
    DELETE FROM archived_leases a USING leases l
    WHERE l.id = a.lease_id AND l.id = ANY(:ids) AND (l.version <> a.version OR NOT l.gone
        OR EXISTS (SELECT FROM leases_set_aside s WHERE s.lease_id = l.id)
        OR EXISTS (SELECT FROM events e JOIN claims c ON c.event_id = e.id WHERE e.lease_id = l.id))
    RETURNING a.lease_id
""").bindparams(_IDS)
_SERIES_LEFT = locks.ordered(
    select(lease_series.c.id)
    .join(archived_leases, archived_leases.c.lease_id == lease_series.c.id)
    .where(archived_leases.c.archive == bindparam("number"))
    .limit(bindparam("limit", type_=Integer)),
    lease_series.c.id,
)
_SERIES_CHANGED = (
    delete(archived_leases)
    .where(
        archived_leases.c.lease_id == lease_series.c.id,
        lease_series.c.id == func.any(_IDS),
        or_(lease_series.c.version != archived_leases.c.version, ~lease_series.c.gone),
    )
    .returning(archived_leases.c.lease_id)
)
_SERIES_DELETED = tuple(delete(key.table).where(key == func.any(_IDS)) for key in (lease_series.c.id, journal.c.stream))
_INDEXED = (
    select(func.count(leases.c.id) + func.count(lease_series.c.id), func.count())
    .select_from(archived_leases)
    .outerjoin(leases, leases.c.id == archived_leases.c.lease_id)
    .outerjoin(lease_series, lease_series.c.id == archived_leases.c.lease_id)
    .where(archived_leases.c.archive == bindparam("number"))
)
_OWN_EVENTS = select(events.c.id).where(events.c.lease_id == func.any(_IDS))
_OWN_RESERVATIONS = select(reservations.c.id).where(reservations.c.lease_id == func.any(_IDS))
# Rows that refer to others come first.
_DELETED = (
    delete(actions).where(actions.c.event_id.in_(_OWN_EVENTS)),
    *(
        delete(table).where(table.c.reservation_id.in_(_OWN_RESERVATIONS))
        for table in (allocations, floating_allocations, inventory_allocations, lease_pools)
    ),
    *(
        delete(key.table).where(key == func.any(_IDS))
        for key in (healing_waits.c.lease_id, events.c.lease_id, reservations.c.lease_id, leases.c.id, journal.c.stream)
    ),
)
_PLACE = (
    select(archives.c.name, archived_leases.c.place, archived_leases.c.size, archived_leases.c.version)
    .join(archives, archives.c.id == archived_leases.c.archive)
    .where(archived_leases.c.lease_id == bindparam("lease_id", type_=Uuid))
)
_PORTION = (
    select(archived_leases.c.lease_id)
    .where(archived_leases.c.lease_id > bindparam("after", type_=Uuid))
    .order_by(archived_leases.c.lease_id)
    .offset(bindparam("limit", type_=Integer) - 1)
    .limit(1)
)
_LEFT_OVER = text("""
    SELECT l.lease_id FROM archived_leases l JOIN archives a ON a.id = l.archive AND a.state = 'done'
    WHERE l.lease_id > :after AND l.lease_id <= :last
    AND (EXISTS (SELECT FROM leases WHERE id = l.lease_id) OR EXISTS (SELECT FROM journal WHERE stream = l.lease_id))
    ORDER BY l.lease_id
""").bindparams(bindparam("after", type_=Uuid), bindparam("last", type_=Uuid))


def complete(conn: Connection) -> Sequence[Archive]:
    """Return archives whose files are complete."""
    return listed(conn, "written", "done")
