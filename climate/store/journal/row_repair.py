"""Repair of rows from the journal: its locks, and the writing of differences."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Table, Uuid, and_, delete, insert, select, text, tuple_, update

from climate.store import locks
from climate.store.journal import journal
from climate.store.journal.projections import Projection
from climate.store.journal.row_differences import RowDifference
from climate.store.tables.floating_ips import floating_allocations, floating_ips
from climate.store.tables.hosts import host_power, hosts, windows
from climate.store.tables.inventories import inventories, inventory_allocations
from climate.store.tables.leases import actions, allocations, claims, events

HELD = (
    (allocations, "host", hosts.c.id),
    (floating_allocations, "number", floating_ips.c.number),
    (inventory_allocations, "number", inventories.c.number),
)
"""Tables of allocations, and the row that has to be locked before a new one."""


def lock(conn: Connection, projection: Projection, streams: Sequence[UUID]) -> None:
    """Lock the main rows of these streams, all of one sort; until the commit nobody else appends to the streams."""
    if projection.owner_type != "uuid":
        for stream in sorted(streams):
            journal.lock_stream(conn, stream)
        return
    main = projection.tables[0]
    key = main.table.c.id
    mine = select(key).where(main.table.c[main.owner.removeprefix("t.")].in_(streams))
    if main.table is hosts:
        locks.lock_hosts(conn, list(conn.scalars(mine)))
    else:
        conn.execute(locks.ordered(mine, key))


def lock_held(conn: Connection, rows: Sequence[RowDifference]) -> None:
    """Lock all hosts, addresses and inventories that these rows hold, or are to hold, in the engine's order."""
    wanted = [(own, sorted(set(_held(rows, table, column)))) for table, column, own in HELD]
    if not any(numbers for _, numbers in wanted):
        return
    locks.lock_host_allocation(conn)
    for own, numbers in wanted:
        if own is hosts.c.id:
            locks.lock_hosts(conn, numbers)
        elif numbers:
            conn.execute(locks.ordered(select(own).where(own.in_(numbers)), own))


def _held(rows: Iterable[RowDifference], table: Table, column: str) -> Iterable[int]:
    for one in rows:
        if one.projected.table is table:
            yield from (row[column] for row in (one.said, one.known) if row)


def clear(conn: Connection, projection: Projection, rows: Sequence[RowDifference]) -> None:
    """Delete rows that are in no fact, and all allocations that differ from the facts, which are then written again."""
    for projected in reversed(projection.tables):
        mine = [row for row in rows if row.projected is projected and _is_to_delete(row)]
        if not mine:
            continue
        if projected.table is events:
            strange = [one.key["id"] for one in mine]
            conn.execute(delete(claims).where(claims.c.event_id.in_(strange)))
            conn.execute(delete(actions).where(actions.c.event_id.in_(strange)))
        key = [projected.table.c[name] for name in projected.key]
        conn.execute(delete(projected.table).where(tuple_(*key).in_([_values(one) for one in mine])))


def _is_to_delete(row: RowDifference) -> bool:
    """Return whether a row exists that is in no fact, or that is a differing allocation."""
    is_allocation = row.projected.table in [table for table, _, _ in HELD]
    return bool(row.said) and (is_allocation or row.known is None)


def stop_running(conn: Connection, rows: Iterable[RowDifference]) -> None:
    """Reset differing events in progress, because only one event of a lease may be in progress."""
    wrong = [row.key["id"] for row in rows if row.projected.table is events and "status" in row.columns]
    if wrong:
        running = (events.c.id.in_(wrong), events.c.status == "IN_PROGRESS")
        conn.execute(update(events).where(*running).values(status="DONE"))


def write(conn: Connection, projection: Projection, rows: Sequence[RowDifference], now: datetime) -> None:
    """Write the differences, after `clear`.

    Secrets of power settings and most columns of a host are in no fact, and cannot be rebuilt.
    """
    for projected in projection.tables:
        for row in rows:
            if row.projected is not projected or row.known is None:
                continue
            if row.said is None or projected.table is allocations:
                _insert(conn, row, now)
            else:
                values = _writable(row, {name: row.known[name] for name in row.columns})
                if values:
                    conn.execute(update(projected.table).where(_is(row)).values(values))


def _insert(conn: Connection, one: RowDifference, now: datetime) -> None:
    if one.projected.table is hosts or one.known is None:
        return
    row = dict(one.known)
    if one.projected.table is host_power:
        row |= {"secrets": "", "created_at": row.get("created_at", now)}
    conn.execute(insert(one.projected.table).values(row))


def _writable(one: RowDifference, values: dict[str, object]) -> dict[str, object]:
    """Return the columns that can be written; secrets are only cleared."""
    if one.projected.table is not host_power or "secrets" not in values:
        return values
    is_set = values.pop("secrets")
    return values if is_set else values | {"secrets": ""}


def _is(one: RowDifference) -> Any:
    return and_(*(one.projected.table.c[name] == value for name, value in one.key.items()))


def _values(one: RowDifference) -> tuple[object, ...]:
    """Return the key of a row in the types of its columns, since it was read from JSON."""
    return tuple(
        UUID(str(one.key[name])) if isinstance(one.projected.table.c[name].type, Uuid) else one.key[name]
        for name in one.projected.key
    )


def forget(conn: Connection, projection: Projection, owner: str) -> None:
    """Delete the rows of decisions that have no fact."""
    main = projection.tables[0]
    conn.execute(text(f"DELETE FROM {main.table.name} t WHERE {main.owner} = :owner"), {"owner": owner})  # noqa: S608


def forget_window(conn: Connection, window_id: UUID) -> None:
    """Delete a maintenance window that has no fact."""
    conn.execute(delete(allocations).where(allocations.c.window_id == window_id))
    conn.execute(delete(windows).where(windows.c.id == window_id))
