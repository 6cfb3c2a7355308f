"""Fences of leases with a parent: messages with a lower number than the highest received are refused."""

from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection, text

from climate.store.batch_delete import drop
from climate.store.tables.leases import lease_fences

KEPT = timedelta(days=30)
"""Longest time that a message can be under way."""

_PASS = text("""
    INSERT INTO lease_fences (lease_id, number, passed_at) VALUES (:lease_id, :number, :now)
    ON CONFLICT (lease_id) DO UPDATE SET number = excluded.number, passed_at = excluded.passed_at
    WHERE lease_fences.number <= excluded.number
    RETURNING number
""")


def passes(conn: Connection, lease_id: UUID, number: int, now: datetime) -> bool:
    """Return whether no higher number was received for a lease; others wait for the end of the transaction."""
    return conn.execute(_PASS, {"lease_id": lease_id, "number": number, "now": now}).scalar() is not None


def forget_old(conn: Connection, now: datetime) -> int:
    """Delete a batch of fences that no message can reach any more; return their number."""
    return drop(conn, lease_fences, lease_fences.c.passed_at < now - KEPT)
