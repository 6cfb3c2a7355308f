"""Notifications as rows, for lists and for delivery."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Row, Text, literal_column, or_, select, text, update

from climate.database.batch_delete import drop
from climate.domain.errors import InvalidInput
from climate.domain.notifications import TOPICS, Audience, Notice
from climate.store import locks
from climate.store.tables.leases import leases, shared_with
from climate.store.tables.limits_and_notices import notices


@dataclass(frozen=True, slots=True)
class Kept:
    """A notification with its number and its time; `attempts` counts the tries of delivery."""

    id: int
    at: datetime
    notice: Notice
    attempts: int = 0
    error: str = ""
    """Result of the last try, if it failed."""
    again_at: datetime | None = None
    """Time of the next try of delivery; None if there will be none."""

    @property
    def is_abandoned(self) -> bool:
        """Return whether the last try of delivery failed, and there will be no other."""
        return self.error != "" and self.again_at is None


@dataclass(frozen=True, slots=True)
class Listing:
    """Filter of notifications (all conditions must hold), and the page after `marker`."""

    project_id: str | None = None
    user_id: str | None = None
    """With a project: also those about leases that are shared with the project or this user."""
    since: datetime | None = None
    kind: str | None = None
    lease_id: UUID | None = None
    marker: int | None = None
    limit: int | None = None
    dead: bool = False
    """Only those whose delivery was given up, including mail; for admins to other services, too."""


@dataclass(frozen=True, slots=True)
class Result:
    """Result of a delivery. `again_at` is the time of the next try, or None."""

    id: int
    attempts: int
    again_at: datetime | None
    error: str


_ADD = text("""
    INSERT INTO notices (at, next_at, audience, kind, message, project_id, user_id, lease_id, host, body)
    SELECT :now, :now, a.audience, n.kind, n.message, n.project_id, a.user_id, n.lease_id, n.host, n.body
    FROM ROWS FROM (jsonb_to_recordset(CAST(:notices AS jsonb)) AS
        (audience text, kind text, message text, project_id text, user_id text, lease_id uuid, host bigint, body jsonb,
         topic text)
        ) WITH ORDINALITY AS n (audience, kind, message, project_id, user_id, lease_id, host, body, topic, place),
        LATERAL (
            SELECT n.audience, n.user_id, 0 AS place
            UNION ALL
            SELECT 'mail', p.user_id, 1 FROM mail_preferences p
            WHERE n.topic = ANY(p.topics) AND n.audience = 'people' AND p.user_id = ANY (ARRAY(
                SELECT n.user_id
                UNION ALL
                SELECT jsonb_array_elements_text((l.sharing -> 'viewers') || (l.sharing -> 'extenders'))
                FROM leases l WHERE l.id = n.lease_id AND l.sharing <> '{}'))) AS a
    ORDER BY n.place, a.place, a.user_id
""")


def add(conn: Connection, now: datetime, messages: Sequence[Notice]) -> None:
    """Store notifications in the order given, in one statement; they are due for delivery at once.

    One to people is stored as mail, too, for each user of its lease who asked for mail about its topic. These are the
    owner and the users with whom it is shared.
    """
    if messages:
        conn.execute(_ADD, {"now": now, "notices": json.dumps([_row(notice) for notice in messages])})


def listed(conn: Connection, listing: Listing) -> list[Kept]:
    """Return notifications for users, oldest first. Raise InvalidInput for a marker that is not among them."""
    shown = _dead(listing) if listing.dead else [notices.c.audience == Audience.PEOPLE]
    shown += [_addressed(listing, listing.project_id)] if listing.project_id is not None else []
    query = select(notices).where(*shown).order_by(notices.c.id).limit(listing.limit)
    if listing.marker is not None:
        if conn.scalar(select(notices.c.id).where(*shown, notices.c.id == listing.marker)) is None:
            raise InvalidInput(f"marker {listing.marker} is not the id of a notice in this list")
        query = query.where(notices.c.id > listing.marker)
    if listing.since is not None:
        query = query.where(notices.c.at >= listing.since)
    for column, value in ((notices.c.kind, listing.kind), (notices.c.lease_id, listing.lease_id)):
        query = query if value is None else query.where(column == value)
    return [_kept(row) for row in conn.execute(query)]


def _addressed(listing: Listing, project_id: str) -> ColumnElement[bool]:
    """Return the condition for notifications to a project, and to a user with whom leases are shared."""
    shared = select(leases.c.id).where(shared_with(project_id=project_id, user_id=listing.user_id))
    own = notices.c.project_id == project_id
    return own if listing.user_id is None or listing.dead else or_(own, notices.c.lease_id.in_(shared))


def _dead(listing: Listing) -> list[ColumnElement[bool]]:
    """Return the conditions for deliveries that were given up; those to other services are for admins."""
    own = [notices.c.audience.in_((Audience.PEOPLE, Audience.MAIL))] if listing.project_id is not None else []
    return [_GIVEN_UP, *own]


# Literal, as in the condition of its index.
_GIVEN_UP: ColumnElement[bool] = notices.c.next_at.is_(None) & (notices.c.error != literal_column("''", Text))


def resend(conn: Connection, notice_id: int, now: datetime) -> Kept | None:
    """Make a delivery that was given up due again; None if there is none of this id."""
    again = update(notices).where(notices.c.id == notice_id, _GIVEN_UP).values(next_at=now, attempts=0, error="")
    row = conn.execute(again.returning(*notices.c)).one_or_none()
    return _kept(row) if row else None


_CLAIM = text("""
    WITH due AS (
        SELECT n.id FROM notices n
        WHERE n.next_at <= :now AND n.audience = ANY(:audiences)
            -- Those of a lease go to the same place one after the other.
            AND NOT EXISTS (
                SELECT FROM notices e
                WHERE e.lease_id = n.lease_id AND e.id < n.id AND e.next_at IS NOT NULL
                    AND (e.audience = 'enforcement') = (n.audience = 'enforcement')
                    AND (e.audience = 'mail') = (n.audience = 'mail'))
        ORDER BY n.next_at, n.id LIMIT :most
        FOR NO KEY UPDATE SKIP LOCKED)
    UPDATE notices n SET next_at = :until, attempts = n.attempts + 1 FROM due WHERE n.id = due.id
    RETURNING n.*
""")


def claim(conn: Connection, audiences: Sequence[Audience], now: datetime, until: datetime, most: int) -> list[Kept]:
    """Claim due notifications until `until`, at most one of each lease, and return them."""
    asked = {"audiences": [str(audience) for audience in audiences], "now": now, "until": until, "most": most}
    return sorted((_kept(row) for row in conn.execute(_CLAIM, asked)), key=lambda kept: kept.id)


_SETTLE = text("""
    UPDATE notices n SET next_at = r.again_at, error = r.error
    FROM jsonb_to_recordset(CAST(:results AS jsonb)) AS
        r (id bigint, attempts integer, again_at timestamptz, error text)
    WHERE n.id = r.id AND n.attempts = r.attempts
""")


def settle(conn: Connection, results: Sequence[Result]) -> None:
    """Store results of deliveries, except of notifications that another process has claimed since."""
    rows = [
        {
            "id": result.id,
            "attempts": result.attempts,
            "again_at": result.again_at.isoformat() if result.again_at else None,
            "error": result.error,
        }
        for result in results
    ]
    conn.execute(_SETTLE, {"results": json.dumps(rows)})


def send_nowhere(conn: Connection, audiences: Sequence[Audience]) -> None:
    """Mark the notifications of these audiences as not to be delivered, since they have no receiver."""
    unsent = notices.c.next_at.is_not(None) & notices.c.audience.in_(list(audiences))
    rows = locks.ordered(select(notices.c.id).where(unsent), notices.c.id, skip_locked=True)
    conn.execute(update(notices).where(notices.c.id.in_(rows)).values(next_at=None))


def forget_old(conn: Connection, before: datetime) -> int:
    """Delete a batch of older notifications; return their number."""
    return drop(conn, notices, notices.c.at < before)


def _row(notice: Notice) -> Mapping[str, object]:
    return {
        "audience": notice.audience,
        "kind": notice.kind,
        "message": notice.message,
        "project_id": notice.project_id,
        "user_id": notice.user_id,
        "lease_id": str(notice.lease_id) if notice.lease_id else None,
        "host": notice.host,
        "body": dict(notice.body),
        "topic": TOPICS.get(notice.kind),
    }


def _kept(row: Row[*tuple[object, ...]]) -> Kept:
    notice = Notice(
        row.kind, row.message, row.project_id, row.user_id, row.lease_id, row.host, row.body, Audience(row.audience)
    )
    return Kept(row.id, row.at, notice, row.attempts, row.error, row.next_at)
