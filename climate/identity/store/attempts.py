"""Failed attempts to sign in, as rows."""

from datetime import timedelta

from sqlalchemy import Connection, delete, func, insert, select

from climate.identity.store.tables import failures as table

WINDOW = timedelta(minutes=1)


def recent(conn: Connection, login: str, address: str) -> tuple[int, int]:
    """How often an address has failed within the last minute: with this login, and with any."""
    window = (table.c.address == address) & (table.c.at > func.clock_timestamp() - WINDOW)
    question = select(func.count().filter(table.c.login == login), func.count()).where(window)
    with_login, with_any = conn.execute(question).one()
    return with_login, with_any


def add(conn: Connection, login: str, address: str) -> None:
    """One more failure; those that no longer count are forgotten."""
    conn.execute(delete(table).where(table.c.at < func.clock_timestamp() - 2 * WINDOW))
    conn.execute(insert(table).values(login=login, address=address))
