"""Mail to users about their leases: what they asked for, reminders, and delivery."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import structlog
from sqlalchemy import Connection

from climate.configuration import mail as mail_settings
from climate.context import Climate
from climate.database.connections import reading
from climate.domain.errors import InvalidInput
from climate.domain.notifications import Audience, Notice, Topic
from climate.domain.policy import Caller, require
from climate.outbound import smtp_client
from climate.outbound.smtp_client import MailServer, OutgoingMail, Sent
from climate.service.notifications import delivery, mail_texts
from climate.service.notifications.notice_texts import time_text
from climate.service.transaction import run
from climate.store.notices import calendar_feeds, notifications
from climate.store.notices import mail_preferences as mail_rows
from climate.store.notices.mail_preferences import Reminder
from climate.store.notices.notifications import Kept, Result

log = structlog.get_logger(__name__)

NO_ADDRESS = "the user has no usable mail address: `climate user set --email` sets one"


@dataclass(frozen=True, slots=True)
class Preferences:
    """Topics about which a user gets mail, and the address for it."""

    topics: Sequence[Topic]
    address: str | None
    """Address that the identity service has for the user."""
    is_sent: bool
    """False if this deployment sends no mail."""


def preferences(climate: Climate, caller: Caller) -> Preferences:
    """Return what the caller gets mail about."""
    require(caller, "mail_preferences:get")
    with reading(climate.engine) as conn:
        topics = mail_rows.topics(conn, caller.user_id)
    address = climate.addresses([caller.user_id]).get(caller.user_id)
    return Preferences(topics, address, bool(climate.settings.smtp_url))


def set_preferences(climate: Climate, caller: Caller, topics: Sequence[Topic]) -> Preferences:
    """Set what the caller gets mail about. Raise InvalidInput for a topic that is named twice."""
    require(caller, "mail_preferences:put")
    if len(set(topics)) != len(topics):
        raise InvalidInput(f"topics names one of {', '.join(topics)} twice")
    run(climate, _set, climate, caller, topics)
    return preferences(climate, caller)


def _set(conn: Connection, climate: Climate, caller: Caller, topics: Sequence[Topic]) -> None:
    mail_rows.set_topics(conn, caller.user_id, topics, climate.now(conn))


def deliver(climate: Climate) -> int:
    """Write the reminders that are due, and send mail, each at least once; return the number sent.

    Any number of workers may run it at once. No transaction is open while the server is spoken to.
    """
    server = mail_settings.server(climate.settings)
    run(climate, _remind, climate)
    if server is None:
        return delivery.drain(climate, [], [Audience.MAIL], lambda *_: [])
    return delivery.drain(
        climate, [Audience.MAIL], [], lambda climate, claimed, now: send(climate, server, claimed, now)
    )


def _remind(conn: Connection, climate: Climate) -> None:
    now = climate.now(conn)
    before = mail_rows.claim_interval(conn, now)
    if before is not None and climate.settings.smtp_url:
        notifications.add(conn, now, [_notice(one) for one in mail_rows.due(conn, before, now)])


def _notice(due: Reminder) -> Notice:
    starts = due.topic is Topic.START
    moment = due.start if starts else due.end
    message = f"Lease {due.name} {'starts' if starts else 'ends'} at {time_text(moment)}"
    return Notice(
        f"lease.reminder.{due.topic}", message, due.project_id, due.user_id, due.lease_id, audience=Audience.MAIL
    )


def send(climate: Climate, server: MailServer, claimed: Sequence[Kept], now: datetime) -> list[Result]:
    """Send claimed notifications over one connection, and return their results."""
    users = {kept.notice.user_id for kept in claimed if kept.notice.user_id}
    addresses = climate.addresses(users)
    with reading(climate.engine) as conn:
        entries = calendar_feeds.entries_of(conn, {kept.notice.lease_id for kept in claimed if kept.notice.lease_id})
    letters: dict[int, OutgoingMail] = {}
    for kept in claimed:
        address = addresses.get(kept.notice.user_id or "", "")
        if mail_texts.usable(address):
            entry = entries.get(kept.notice.lease_id) if kept.notice.lease_id else None
            letters[kept.id] = OutgoingMail(address, mail_texts.message(kept, entry, server.sender, address))
    sent = dict(zip(letters, smtp_client.send_all(server, list(letters.values())), strict=True)) if letters else {}
    return [_result(climate, kept, sent.get(kept.id, Sent(NO_ADDRESS, for_good=True)), now) for kept in claimed]


def _result(climate: Climate, kept: Kept, sent: Sent, now: datetime) -> Result:
    return delivery.result(climate, kept, sent.error, now, unwanted=sent.for_good)
