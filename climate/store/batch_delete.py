"""Rows that are deleted a portion at a time, so that no statement lasts, however many there are."""

from sqlalchemy import ColumnElement, Connection, Table, delete, func, literal_column, select

PORTION = 5000
"""Rows that one statement deletes at most: some tens of milliseconds."""


def drop(conn: Connection, table: Table, old: ColumnElement[bool]) -> int:
    """Delete up to a portion of the rows that meet the condition; how many went.

    Passes over rows that somebody else has locked: of several processes that tidy none waits.
    """
    place: ColumnElement[str] = literal_column("ctid")
    found = select(place).select_from(table).where(old).limit(PORTION).with_for_update(skip_locked=True)
    return conn.execute(delete(table).where(place == func.any(func.array(found.scalar_subquery())))).rowcount
