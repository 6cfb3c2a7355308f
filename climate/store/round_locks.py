"""Locks of the rounds, as rows that expire unless their holder renews them.

A session lock would survive a frozen machine, whose kernel still answers for the connection.
"""

from datetime import timedelta

from sqlalchemy import ColumnElement, Connection, delete, update
from sqlalchemy.dialects.postgresql import insert

from climate.store.engine import database_time
from climate.store.leases import event_claims
from climate.store.tables.hosts import round_locks


def take(conn: Connection, name: str, holder: str, life: timedelta) -> int | None:
    """Take a lock that is free or has expired; return its token, or None if another process holds it."""
    now, token = database_time(conn), event_claims.tokens(conn, 1)[0]
    row = {"holder": holder, "token": token, "expires_at": now + life}
    free = insert(round_locks).values(name=name, **row)
    taken = free.on_conflict_do_update(index_elements=["name"], set_=row, where=round_locks.c.expires_at <= now)
    found: int | None = conn.scalar(taken.returning(round_locks.c.token))
    return found


def renew(conn: Connection, name: str, token: int, life: timedelta) -> bool:
    """Renew the lock; return False if it was released, or taken by another process since."""
    expiry = database_time(conn) + life
    return conn.execute(update(round_locks).where(_mine(name, token)).values(expires_at=expiry)).rowcount == 1


def give_back(conn: Connection, name: str, token: int) -> None:
    """Delete the lock if it is still held under this token, so that a late renewal fails."""
    conn.execute(delete(round_locks).where(_mine(name, token)))


def _mine(name: str, token: int) -> ColumnElement[bool]:
    return (round_locks.c.name == name) & (round_locks.c.token == token)
