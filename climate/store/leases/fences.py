"""Fences of leases with a parent: messages with a lower number than the highest received are refused."""

from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection
from sqlalchemy.dialects.postgresql import insert

from climate.database.batch_delete import drop
from climate.store.tables.leases import lease_fences

KEPT = timedelta(days=30)
"""Longest time that a message can be under way."""

_NEW = insert(lease_fences)
_PASS = _NEW.on_conflict_do_update(
    index_elements=["lease_id"],
    set_={"number": _NEW.excluded.number, "passed_at": _NEW.excluded.passed_at},
    where=lease_fences.c.number <= _NEW.excluded.number,
).returning(lease_fences.c.number)


def passes(conn: Connection, lease_id: UUID, number: int, now: datetime) -> bool:
    """Return whether no higher number was received for a lease; others wait for the end of the transaction."""
    return conn.scalar(_PASS, {"lease_id": lease_id, "number": number, "passed_at": now}) is not None


def forget_old(conn: Connection, now: datetime) -> int:
    """Delete a batch of fences that no message can reach any more; return their number."""
    return drop(conn, lease_fences, lease_fences.c.passed_at < now - KEPT)
