"""Mail preferences of users, and the leases of which they are reminded."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection, any_, func, literal, select, update
from sqlalchemy.dialects.postgresql import insert

from climate.domain.notifications import Topic
from climate.domain.status import EventKind, EventStatus, LeaseStatus
from climate.store.tables.calendar_feeds_and_mail import mail_preferences, mail_reminders
from climate.store.tables.leases import events, has, leases

LEADS = {
    Topic.START: timedelta(hours=1),
    Topic.END_24H: timedelta(hours=24),
    Topic.END_1H: timedelta(hours=1),
}
"""Topic of a reminder -> time before the start or the end of a lease."""


@dataclass(frozen=True, slots=True)
class Reminder:
    """A lease that starts or ends soon, with one of its users, who asked to be reminded."""

    topic: Topic
    lease_id: UUID
    name: str
    project_id: str
    user_id: str
    start: datetime
    end: datetime


def topics(conn: Connection, user_id: str) -> list[Topic]:
    """Return the topics about which a user gets mail."""
    found = conn.scalar(select(mail_preferences.c.topics).where(mail_preferences.c.user_id == user_id)) or ()
    return [topic for topic in Topic if topic in found]


def set_topics(conn: Connection, user_id: str, wanted: Sequence[Topic], now: datetime) -> None:
    """Set the topics about which a user gets mail."""
    row = {"topics": [str(topic) for topic in wanted], "updated_at": now}
    added = insert(mail_preferences).values(user_id=user_id, **row)
    conn.execute(added.on_conflict_do_update(index_elements=["user_id"], set_=row))


def claim_interval(conn: Connection, now: datetime) -> datetime | None:
    """Return the time until which reminders were written, and set it to `now`.

    Return None if there is nothing to write: it is the first time, or another transaction has written these.
    """
    before = conn.scalar(select(mail_reminders.c.written_until))
    if before is None:
        conn.execute(insert(mail_reminders).values(one_row=True, written_until=now).on_conflict_do_nothing())
        return None
    mark = (mail_reminders.c.one_row, mail_reminders.c.written_until == before, mail_reminders.c.written_until < now)
    won = conn.execute(update(mail_reminders).where(*mark).values(written_until=now)).rowcount
    return before if won else None


def due(conn: Connection, after: datetime, now: datetime) -> list[Reminder]:
    """Return the reminders that became due after `after` until `now`, in one statement for each topic.

    A lease that began or ended meanwhile has none, and neither has an end whose lease had not begun at that time.
    """
    return [reminder for topic in LEADS for reminder in _due(conn, topic, after, now)]


def _due(conn: Connection, topic: Topic, after: datetime, now: datetime) -> list[Reminder]:
    lead, preferred = LEADS[topic], literal(str(topic)) == any_(mail_preferences.c.topics)
    user_id = mail_preferences.c.user_id
    shared = leases.c.sharing["viewers"].concat(leases.c.sharing["extenders"])
    named = select(func.array_agg(func.jsonb_array_elements_text(shared).column_valued())).scalar_subquery()
    owned = leases.join(mail_preferences, user_id == any_(func.array_append(named, leases.c.user_id)))
    found = select(
        leases.c.id, leases.c.name, leases.c.project_id, user_id, leases.c.start_date, leases.c.end_date
    ).where(preferred, ~leases.c.gone, ~leases.c.deleting)
    if topic is Topic.START:
        # By the index of events to come; leases have none of their starts.
        found = found.select_from(owned.join(events, events.c.lease_id == leases.c.id)).where(
            has(events.c.status, EventStatus.UNDONE),
            events.c.kind == EventKind.START,
            events.c.run_at > max(after + lead, now),
            events.c.run_at <= now + lead,
            leases.c.status == LeaseStatus.PENDING,
            leases.c.wait_until.is_(None),
        )
    else:
        found = found.select_from(owned).where(
            leases.c.end_date > max(after + lead, now),
            leases.c.end_date <= now + lead,
            leases.c.start_date <= leases.c.end_date - lead,
            leases.c.status.in_((LeaseStatus.STARTING, LeaseStatus.ACTIVE)),
        )
    return [Reminder(topic, *row) for row in conn.execute(found.order_by(leases.c.id, user_id))]
