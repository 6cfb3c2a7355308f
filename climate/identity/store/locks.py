"""Locks that are no row's."""

from sqlalchemy import Connection, func, select

from climate.advisory_locks import FIRST_START


def one_first_start(conn: Connection) -> None:
    """Until this transaction ends no other process makes the first users."""
    conn.execute(select(func.pg_advisory_xact_lock(FIRST_START)))
