"""Deletion of rows in batches, so that each statement is short."""

from sqlalchemy import ColumnElement, Connection, Table, delete, func, literal_column, select

PORTION = 5000
"""Maximum rows per statement, which then takes some tens of milliseconds."""


def drop(conn: Connection, table: Table, old: ColumnElement[bool], limit: int = PORTION) -> int:
    """Delete up to `limit` rows that meet the condition; return their number.

    Skip locked rows, so that concurrent processes do not wait for each other.
    """
    place: ColumnElement[str] = literal_column("ctid")
    result = select(place).select_from(table).where(old).limit(limit).with_for_update(skip_locked=True)
    return conn.execute(delete(table).where(place == func.any(func.array(result.scalar_subquery())))).rowcount
