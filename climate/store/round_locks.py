"""Locks of the rounds, as rows that expire unless their holder renews them.

A lock of a session would outlive a machine that stands still: its kernel goes
on answering for a connection that nobody reads.
"""

from datetime import timedelta

from sqlalchemy import Connection, update
from sqlalchemy.dialects.postgresql import insert

from climate.store import claims
from climate.store.care_tables import round_locks
from climate.store.engine import database_time


def take(conn: Connection, name: str, holder: str, life: timedelta) -> int | None:
    """Take a lock that is free or has expired; return its token, or None where somebody else holds it."""
    now, token = database_time(conn), claims.tokens(conn, 1)[0]
    row = {"holder": holder, "token": token, "expires_at": now + life}
    free = insert(round_locks).values(name=name, **row)
    taken = free.on_conflict_do_update(index_elements=["name"], set_=row, where=round_locks.c.expires_at <= now)
    found: int | None = conn.scalar(taken.returning(round_locks.c.token))
    return found


def renew(conn: Connection, name: str, token: int, life: timedelta) -> bool:
    """Hold the lock for longer; return False where it was taken by somebody else since."""
    return _set_expiry(conn, name, token, life)


def give_back(conn: Connection, name: str, token: int) -> None:
    """Let the lock expire now, if it is held under this token still."""
    _set_expiry(conn, name, token, timedelta(0))


def _set_expiry(conn: Connection, name: str, token: int, life: timedelta) -> bool:
    mine = (round_locks.c.name == name) & (round_locks.c.token == token)
    changed = update(round_locks).where(mine).values(expires_at=database_time(conn) + life)
    return conn.execute(changed).rowcount == 1
