"""Requests that must not be carried out twice, by the key their sender gave them."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, func, insert, select

from climate import advisory_locks
from climate.domain.errors import Busy, KeyReused
from climate.domain.policy import Caller
from climate.store.batch_delete import drop
from climate.store.tables.leases import idempotency_keys

KEPT = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Key:
    """An Idempotency-Key with the fingerprint of the request that it came with."""

    text: str
    fingerprint: str


def earlier(conn: Connection, caller: Caller, key: Key) -> str | None:
    """The id of what an earlier request with this key made, or None for the first.

    Busy while that request is still running; KeyReused when it was another one.
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
    """What the request made is no more; the next one with this key is the first."""
    k = idempotency_keys.c
    mine = (k.project_id == caller.project_id, k.user_id == caller.user_id, k.key == key.text)
    conn.execute(delete(idempotency_keys).where(*mine))


def forget_old(conn: Connection, now: datetime) -> int:
    """Delete a portion of the keys of more than a day ago; how many."""
    return drop(conn, idempotency_keys, idempotency_keys.c.created_at < now - KEPT)
