"""Changes in the order of their positions in the journal, and the transactions that may still append to it.

A position is taken before the commit. Hence a change can become visible after one with a higher position, and a
position whose transaction was rolled back never does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, text

_CHANGES = text("""
    SELECT j.position, j.kind, j.recorded_at, l.id AS lease_id, h.id AS host_id,
        coalesce(l.project_id, CASE WHEN j.kind = 'LimitsSet' THEN j.body ->> 'project_id' END) AS project_id,
        l.sharing
    FROM journal j LEFT JOIN leases l ON l.id = j.stream LEFT JOIN hosts h ON h.stream = j.stream
    WHERE j.position > :after ORDER BY j.position LIMIT :limit
""")
_LAST = text("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM journal_position")
# Whoever appends takes this lock before its first position, and holds it until its rows are visible or gone.
_WRITERS = text("""
    SELECT virtualtransaction FROM pg_locks
    WHERE locktype = 'relation' AND relation = CAST('journal' AS regclass) AND mode = 'RowExclusiveLock' AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
""")


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the journal, without its content. The object is a lease, a host, or of another sort."""

    position: int
    kind: str
    at: datetime
    lease_id: UUID | None
    host_id: int | None
    project_id: str | None
    """Project that the change belongs to; None for one of administrators."""
    sharing: Mapping[str, Sequence[str]] | None = None
    """Ids of projects and users with whom its lease is shared, by kind."""


def after(conn: Connection, position: int, limit: int) -> list[Change]:
    """Return visible changes with higher positions, lowest first; others may still appear between them."""
    return [Change(*row) for row in conn.execute(_CHANGES, {"after": position, "limit": limit})]


def last_taken(conn: Connection) -> int:
    """Return the last position that any transaction has taken, visible or not."""
    return int(conn.execute(_LAST).scalar_one())


def writers(conn: Connection) -> frozenset[str]:
    """Return the transactions that have appended to the journal, or are about to, and are not over."""
    return frozenset(conn.scalars(_WRITERS))


def settled(changes: Sequence[Change], position: int, gaps_until: int) -> list[Change]:
    """Return the changes after `position` before which nothing can appear any more.

    `gaps_until`: positions up to this one that are not visible never will be.
    """
    known = []
    for change in changes:
        if change.position != position + 1 and change.position - 1 > gaps_until:
            break
        known.append(change)
        position = change.position
    return known
