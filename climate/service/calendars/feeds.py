"""Calendar feeds: secret URLs under which a calendar program reads leases without a token."""

import secrets
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from uuid import UUID

from sqlalchemy import Connection

from climate.context import Climate
from climate.database.connections import reading
from climate.domain.errors import Conflict, NotFound
from climate.domain.period import Period
from climate.domain.policy import Caller, require
from climate.service.calendars import ics
from climate.service.transaction import run
from climate.store.notices import calendar_feeds
from climate.store.notices.calendar_feeds import Feed, Scope
from climate.time_ordered_ids import time_ordered_id

SECRET_BYTES = 32
"""Length of a secret: 256 random bits."""

SECRET_CHARACTERS = 43
"""Characters of a secret in base64 without padding."""

FEEDS = 20
"""Maximum of feeds of a user in a project."""

ENTRIES = 5000
"""Maximum of leases in a feed."""

GONE = "There is no such calendar: it was revoked, or never existed"


@dataclass(frozen=True, slots=True)
class Days:
    """Days before and after now whose leases a feed shows."""

    past: int
    future: int


@dataclass(frozen=True, slots=True)
class Rendered:
    """A feed as iCalendar, with a tag that changes with its content."""

    tag: str
    content: bytes | None
    """None if the reader has it already."""


def create(climate: Climate, caller: Caller, name: str, scope: Scope) -> tuple[Feed, str]:
    """Create a feed of the caller in its project; return it with its secret, which nothing can show again.

    Raise Conflict for a user that has FEEDS of them there.
    """
    require(caller, "calendar_feeds:post")
    secret = urlsafe_b64encode(secrets.token_bytes(SECRET_BYTES)).decode().rstrip("=")
    return run(climate, _create, climate, caller, name, scope, secret), secret


def _create(conn: Connection, climate: Climate, caller: Caller, name: str, scope: Scope, secret: str) -> Feed:
    if calendar_feeds.count(conn, caller.user_id, caller.project_id) >= FEEDS:
        raise Conflict(f"You have {FEEDS} calendar feeds in this project, which is the maximum; delete one first")
    feed = Feed(time_ordered_id(), scope, caller.project_id, caller.user_id, name, climate.now(conn))
    calendar_feeds.add(conn, feed, _hash(secret))
    return feed


def listed(climate: Climate, caller: Caller, marker: UUID | None, limit: int | None) -> list[Feed]:
    """Return the caller's feeds in its project, oldest first; all feeds for an admin."""
    require(caller, "calendar_feeds:get")
    with reading(climate.engine) as conn:
        return calendar_feeds.listed(conn, _owner(caller), marker, limit)


def revoke(climate: Climate, caller: Caller, feed_id: UUID) -> None:
    """Delete a feed of the caller, or for an admin of anybody. Raise NotFound."""
    require(caller, "calendar_feeds:delete")
    run(climate, _revoke, caller, feed_id)


def _revoke(conn: Connection, caller: Caller, feed_id: UUID) -> None:
    if calendar_feeds.find(conn, feed_id, _owner(caller)) is None or not calendar_feeds.remove(conn, feed_id):
        raise NotFound(f"Object with {{'calendar_feed_id': '{feed_id}'}} not found")


def with_secret(climate: Climate, secret: str) -> Feed:
    """Return the feed of a secret. Raise NotFound for one that is unknown or malformed, with the same message."""
    if len(secret) != SECRET_CHARACTERS or not secret.isascii():
        raise NotFound(GONE)
    with reading(climate.engine) as conn:
        feed = calendar_feeds.with_secret(conn, _hash(secret))
    if feed is None:
        raise NotFound(GONE)
    return feed


def render(climate: Climate, feed: Feed, days: Days, known: str = "") -> Rendered:
    """Return a feed as iCalendar, in one statement for any number of leases.

    `known` is the text of If-None-Match. The tag is made of the rows, so that an unchanged feed is not written.
    """
    with reading(climate.engine) as conn:
        now = climate.now(conn)
        window = Period(now - timedelta(days=days.past), now + timedelta(days=days.future))
        entries = calendar_feeds.entries(conn, feed, window, ENTRIES)
    tag = sha256(repr((ics.PRODUCT, feed.name, entries)).encode()).hexdigest()[:32]
    return Rendered(tag, None if tag in known else ics.calendar(feed.name, entries))


def _owner(caller: Caller) -> tuple[str, str] | None:
    return None if caller.is_admin else (caller.user_id, caller.project_id)


def _hash(secret: str) -> bytes:
    return sha256(secret.encode()).digest()
