"""Locks of the rounds, as rows that expire unless their holder renews them.

A session lock would survive a frozen machine, whose kernel still answers for the connection.
"""

from datetime import timedelta

from sqlalchemy import BigInteger, Connection, Interval, bindparam, delete, func, update
from sqlalchemy.dialects.postgresql import insert

from climate.store.leases import event_claims
from climate.store.tables.limits_and_notices import round_locks


def take(conn: Connection, name: str, holder: str, life: timedelta) -> int | None:
    """Take a lock that is free or has expired; return its token, or None if another process holds it."""
    token: int | None = conn.scalar(_TAKE, {"lock": name, "who": holder, "life": life})
    return token


def renew(conn: Connection, name: str, token: int, life: timedelta) -> bool:
    """Renew the lock; return False if it was released, or taken by another process since."""
    return conn.execute(_RENEW, {"lock": name, "held": token, "life": life}).rowcount == 1


def release(conn: Connection, name: str, token: int) -> None:
    """Delete the lock if it is still held under this token, so that a late renewal fails."""
    conn.execute(_GIVE_BACK, {"lock": name, "held": token})


_MINE = (round_locks.c.name == bindparam("lock")) & (round_locks.c.token == bindparam("held", type_=BigInteger))
_EXPIRY = func.clock_timestamp() + bindparam("life", type_=Interval)
_FREE = insert(round_locks).values(
    name=bindparam("lock"), holder=bindparam("who"), token=event_claims.next_token(), expires_at=_EXPIRY
)
_TAKE = _FREE.on_conflict_do_update(
    index_elements=["name"],
    set_={name: _FREE.excluded[name] for name in ("holder", "token", "expires_at")},
    where=round_locks.c.expires_at <= func.clock_timestamp(),
).returning(round_locks.c.token)
_RENEW = update(round_locks).where(_MINE).values(expires_at=_EXPIRY)
_GIVE_BACK = delete(round_locks).where(_MINE)
