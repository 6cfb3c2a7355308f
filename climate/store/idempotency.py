"""Idempotent requests, by the key of their sender."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, func, insert, select

from climate.database import advisory_locks
from climate.database.batch_delete import drop
from climate.domain.errors import Busy, KeyReused
from climate.domain.policy import Caller
from climate.store.tables.leases import idempotency_keys

KEPT = timedelta(hours=24)
"""Time for which a key is remembered. `DAY` of `climate/cli/leases/idempotency_times.py` must not be shorter."""


@dataclass(frozen=True, slots=True)
class Key:
    """An Idempotency-Key with the fingerprint of its request."""

    text: str
    fingerprint: str


def earlier(conn: Connection, caller: Caller, key: Key) -> str | None:
    """Return the id of the object that an earlier request with this key created, or None for the first.

    Raise Busy while that request is running, and KeyReused if it was a different one.
    """
    number = advisory_locks.idempotent_request(caller.project_id, caller.user_id, key.text)
    if not conn.scalar(select(func.pg_try_advisory_xact_lock(number))):
        raise Busy("A request with this Idempotency-Key is still running")
    k = idempotency_keys.c
    mine = (k.project_id == caller.project_id, k.user_id == caller.user_id, k.key == key.text)
    row = conn.execute(select(k.fingerprint, k.resource_id).where(*mine)).one_or_none()
    if row is None:
        return None
    if row.fingerprint != key.fingerprint:
        raise KeyReused()
    return str(row.resource_id)


def remember(conn: Connection, caller: Caller, key: Key, resource_id: str, now: datetime) -> None:
    row = {
        "project_id": caller.project_id,
        "user_id": caller.user_id,
        "key": key.text,
        "fingerprint": key.fingerprint,
        "resource_id": resource_id,
        "created_at": now,
    }
    conn.execute(insert(idempotency_keys).values(row))


def forget(conn: Connection, caller: Caller, key: Key) -> None:
    """Delete the key of an object that no longer exists, so that the next request counts as the first."""
    k = idempotency_keys.c
    mine = (k.project_id == caller.project_id, k.user_id == caller.user_id, k.key == key.text)
    conn.execute(delete(idempotency_keys).where(*mine))


def forget_old(conn: Connection, now: datetime) -> int:
    """Delete a batch of keys older than a day; return their number."""
    return drop(conn, idempotency_keys, idempotency_keys.c.created_at < now - KEPT)
