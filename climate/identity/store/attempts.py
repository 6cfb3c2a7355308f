"""Failed sign-in attempts as rows."""

from datetime import timedelta
from typing import NamedTuple

from sqlalchemy import Connection, func, insert, select

from climate.database.batch_delete import drop
from climate.identity.store.tables import failures as table

WINDOW = timedelta(minutes=1)
LONG_WINDOW = timedelta(minutes=10)


class RecentFailures(NamedTuple):
    """Numbers of recent failures from an address, and of a login from anywhere."""

    with_login: int
    """Failures from the address with the login, within WINDOW."""
    with_any: int
    """Failures from the address with any login, within WINDOW."""
    with_login_long: int
    """Failures from the address with the login, within LONG_WINDOW."""
    from_anywhere: int
    """Failures with the login from any address, within LONG_WINDOW."""


def recent(conn: Connection, login: str, address: str) -> RecentFailures:
    """Return the numbers of failures that count."""
    mine, named = table.c.address == address, table.c.login == login
    lately = table.c.at > func.clock_timestamp() - WINDOW
    question = select(
        func.count().filter(mine & named & lately),
        func.count().filter(mine & lately),
        func.count().filter(mine & named),
        func.count().filter(named),
    ).where(mine | named, table.c.at > func.clock_timestamp() - LONG_WINDOW)
    return RecentFailures(*conn.execute(question).one())


def add(conn: Connection, login: str, address: str) -> None:
    """Record a failure, and delete a portion of those that no longer count."""
    drop(conn, table, table.c.at < func.clock_timestamp() - 2 * LONG_WINDOW)
    conn.execute(insert(table).values(login=login, address=address))
