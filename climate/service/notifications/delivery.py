"""Delivery of notifications about leases and hosts to owners, admins and other services."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import structlog
from sqlalchemy import Connection

from climate import http_client
from climate.context import Climate
from climate.domain.notifications import Audience, Notice
from climate.domain.policy import Caller, require
from climate.http_client import CourierError, Parcel, Receipt
from climate.service.admission import enforcement
from climate.service.notifications import webhooks
from climate.service.transaction import run
from climate.store import notifications
from climate.store.notifications import Kept, Listing, Result

__all__ = ["Listing", "Notice", "deliver", "listed", "notify"]

log = structlog.get_logger(__name__)

BATCH = 20
"""Number of notifications that are sent at the same time."""

ROUND = timedelta(seconds=10)
"""Maximum time of a round while there is more to send."""

CLAIMED = timedelta(seconds=60)
"""Time after which another worker sends a claimed notification: longer than any request takes."""

FIRST_DELAY = timedelta(seconds=5)
LONGEST_DELAY = timedelta(hours=1)

GONE = 410
"""HTTP status of a receiver that wants this notification never again."""


def notify(conn: Connection, now: datetime, *notices: Notice) -> None:
    """Write notifications in the transaction of their cause, in one statement; none without notifications."""
    notifications.add(conn, now, notices)


def notify_now(conn: Connection, climate: Climate, *notices: Notice) -> None:
    """Write notifications of this moment."""
    notifications.add(conn, climate.now(conn), notices)


def listed(climate: Climate, caller: Caller, wanted: Listing) -> list[Kept]:
    """Return the notifications to the caller's project, oldest first; all of them for an admin."""
    require(caller, "notices:get")
    narrowed = wanted if caller.is_admin else replace(wanted, project_id=caller.project_id)
    return run(climate, notifications.listed, narrowed)


def deliver(climate: Climate) -> int:
    """Send due notifications, each at least once and those of a lease in order; return the number delivered.

    Any number of workers may run it at once. No transaction is open during a request.
    """
    addressed = _addressed(climate)
    others = [audience for audience in Audience if audience not in addressed]
    arrived, ends = 0, None
    while True:
        now, claimed = run(climate, _claim, climate, addressed, others)
        ends = ends or now + ROUND
        if not claimed:
            return arrived
        good = _send(climate, claimed, now)
        arrived += good
        if not good or now >= ends:
            return arrived


def _claim(
    conn: Connection, climate: Climate, addressed: Sequence[Audience], others: Sequence[Audience]
) -> tuple[datetime, list[Kept]]:
    now = climate.now(conn)
    notifications.send_nowhere(conn, others)
    return now, notifications.claim(conn, addressed, now, now + CLAIMED, BATCH) if addressed else []


def _addressed(climate: Climate) -> list[Audience]:
    """Return the receivers with a configured address."""
    settings = climate.settings
    result = [Audience.PEOPLE, Audience.HOOK] if settings.notify_url else []
    return [*result, Audience.ENFORCEMENT] if settings.enforcement_url else result


def _send(climate: Climate, claimed: Sequence[Kept], now: datetime) -> int:
    """Send all of them, and record the results; return the number delivered."""
    answers = http_client.post_all([_parcel(climate, kept, now) for kept in claimed])
    results = [_result(climate, kept, answer, now) for kept, answer in zip(claimed, answers, strict=True)]
    run(climate, notifications.settle, results)
    return sum(not result.error for result in results)


def _parcel(climate: Climate, kept: Kept, now: datetime) -> Parcel:
    settings = climate.settings
    if kept.notice.audience is Audience.ENFORCEMENT:
        return enforcement.parcel(settings, enforcement.ON_END, kept.notice.body)
    return webhooks.parcel(settings, kept, now)


def _result(climate: Climate, kept: Kept, answer: Receipt | CourierError, now: datetime) -> Result:
    trouble = str(answer) if isinstance(answer, CourierError) else webhooks.trouble(answer.status)
    if not trouble:
        return Result(kept.id, kept.attempts, None, "")
    unwanted = isinstance(answer, Receipt) and answer.status == GONE
    last = unwanted or kept.attempts >= climate.settings.notify_tries
    again_at = None if last else now + _delay(kept.attempts, climate.chance())
    log.warning("notification delivery failed", notice=kept.id, kind=kept.notice.kind, reason=trouble, given_up=last)
    return Result(kept.id, kept.attempts, again_at, trouble)


def _delay(attempts: int, chance: float) -> timedelta:
    """Return the delay, which doubles with every try; half of it is random, so that retries spread."""
    doubled: int = 2 ** min(attempts - 1, 20)
    delay = min(LONGEST_DELAY, FIRST_DELAY * doubled)
    return delay / 2 * (1 + chance)
