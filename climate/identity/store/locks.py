"""Advisory locks of identity."""

from sqlalchemy import Connection, func, select

from climate.database.advisory_locks import FIRST_START


def one_first_start(conn: Connection) -> None:
    """Keep other processes from creating the first users until this transaction ends."""
    conn.execute(select(func.pg_advisory_xact_lock(FIRST_START)))
