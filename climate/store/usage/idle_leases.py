"""Leases on whose hosts no server runs, and the notices that they got."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection, Interval, bindparam, exists, text
from sqlalchemy.dialects.postgresql import insert

from climate.database.batch_delete import drop
from climate.domain.status import LeaseStatus
from climate.store.schema import Time
from climate.store.tables.leases import SUBLET, leases
from climate.store.tables.usage import idle_leases


@dataclass(frozen=True, slots=True)
class IdleLease:
    """Active lease of whole hosts, none of which has a running server."""

    lease_id: UUID
    since: datetime
    """Time since which it is idle, as far as samples tell."""
    notices: int
    """Number of notices in that time."""


def due(conn: Connection, pause: timedelta, now: datetime, limit: int, most: int) -> Sequence[IdleLease]:
    """Return idle leases that got no notice for `pause`, longest idle first.

    Leases with `most` notices are left out, and leases with open sub-leases, which cannot be ended.
    """
    rows = conn.execute(_DUE, {"pause": pause, "now": now, "limit": limit, "most": most})
    return [IdleLease(*row) for row in rows]


def note(conn: Connection, lease_id: UUID, notices: int, now: datetime) -> None:
    """Record the number of notices of a lease."""
    row = {"notices": notices, "at": now}
    made = insert(idle_leases).values(lease_id=lease_id, **row)
    conn.execute(made.on_conflict_do_update(index_elements=[idle_leases.c.lease_id], set_=row))


def forget_old(conn: Connection) -> int:
    """Delete a batch of records of leases that are over; return their number."""
    running = exists().where(leases.c.id == idle_leases.c.lease_id, leases.c.status == LeaseStatus.ACTIVE)
    return drop(conn, idle_leases, ~running)


_DUE = (
    text(f"""
    WITH idle AS (
        SELECT l.id, greatest(l.start_date, max(e.updated_at), max(p.watched_since), max(a.ends_at)) AS since
        FROM leases l
        JOIN events e ON e.lease_id = l.id AND e.kind = 'start_lease'
        JOIN reservations r ON r.lease_id = l.id
        JOIN allocations x ON x.reservation_id = r.id AND x.state = 'active' AND x.slots = 0
        CROSS JOIN usage_progress p
        LEFT JOIN LATERAL (
            SELECT max(ends_at) AS ends_at FROM host_activity WHERE host = x.host AND ends_at > l.start_date) a ON true
        WHERE l.status = 'ACTIVE' AND NOT l.gone AND l.start_date <= :now - CAST(:pause AS interval)
            AND p.watched_since IS NOT NULL
            AND NOT EXISTS (SELECT FROM reservations s WHERE s.lease_id = l.id AND s.{SUBLET})
        GROUP BY l.id)
    SELECT i.id, i.since, CASE WHEN n.at > i.since THEN n.notices ELSE 0 END
    FROM idle i LEFT JOIN idle_leases n ON n.lease_id = i.id
    WHERE i.since <= :now - CAST(:pause AS interval)
        AND (n.at IS NULL OR n.at <= i.since OR (n.at <= :now - CAST(:pause AS interval) AND n.notices < :most))
    ORDER BY i.since, i.id LIMIT :limit
""")  # noqa: S608
    .bindparams(bindparam("pause", type_=Interval), bindparam("now", type_=Time))
    .columns(since=Time)
)
