"""Leases that the pollers skip, because their rows cannot be read or written and would block all others."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, delete, func, select
from sqlalchemy.dialects.postgresql import insert

from climate.store.tables.leases import leases_set_aside as table

LONGEST_REASON = 300


@dataclass(frozen=True, slots=True)
class SetAside:
    """A lease whose events do not run until its rows are repaired."""

    lease_id: UUID
    since: datetime
    reason: str


def set_aside(conn: Connection, lease_id: UUID, now: datetime, reason: str) -> None:
    """Set a lease aside; keep it there if it is already."""
    row = {"lease_id": lease_id, "since": now, "reason": reason[:LONGEST_REASON]}
    conn.execute(insert(table).values(row).on_conflict_do_nothing())


def take_back(conn: Connection, lease_ids: Sequence[UUID]) -> None:
    """Resume the events of leases."""
    conn.execute(delete(table).where(table.c.lease_id.in_(lease_ids)))


def clear(conn: Connection) -> None:
    """Resume the events of all leases."""
    conn.execute(delete(table))


def listed(conn: Connection) -> list[SetAside]:
    """Return the leases that are set aside, oldest entries first."""
    rows = conn.execute(select(table).order_by(table.c.since, table.c.lease_id))
    return [SetAside(row.lease_id, row.since, row.reason) for row in rows]


def count(conn: Connection) -> int:
    """Return the number of leases that are set aside."""
    return int(conn.execute(select(func.count()).select_from(table)).scalar_one())
