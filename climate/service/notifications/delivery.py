"""Delivery of notifications about leases and hosts to owners, admins and other services."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import structlog
from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.errors import NotFound
from climate.domain.notifications import Audience, Notice
from climate.domain.policy import Caller, require
from climate.outbound import http_client
from climate.outbound.http_client import DeliveryError, PostRequest, Receipt
from climate.service.admission import enforcement
from climate.service.notifications import webhooks
from climate.service.transaction import run
from climate.store.notices import notifications
from climate.store.notices.notifications import Kept, Listing, Result

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


Send = Callable[[Climate, Sequence[Kept], datetime], Sequence[Result]]
"""Sends claimed notifications, and returns a result for each."""


def notify(conn: Connection, now: datetime, *notices: Notice) -> None:
    """Write notifications in the transaction of their cause, in one statement; none without notifications."""
    notifications.add(conn, now, notices)


def notify_now(conn: Connection, climate: Climate, *notices: Notice) -> None:
    """Write notifications of this moment."""
    notifications.add(conn, climate.now(conn), notices)


def listed(climate: Climate, caller: Caller, listing: Listing) -> list[Kept]:
    """Return the notifications to the caller's project, oldest first; all of them for an admin.

    Those about leases that are shared with the caller are among them.
    """
    require(caller, "notices:get")
    narrowed = listing if caller.is_admin else replace(listing, project_id=caller.project_id, user_id=caller.user_id)
    return run(climate, notifications.listed, narrowed)


def resend(climate: Climate, caller: Caller, notice_id: int) -> Kept:
    """Try a delivery that was given up again, from its first attempt on. Raise NotFound if there is none."""
    require(caller, "notices:resend")
    return run(climate, _resend, climate, notice_id)


def _resend(conn: Connection, climate: Climate, notice_id: int) -> Kept:
    kept = notifications.resend(conn, notice_id, climate.now(conn))
    if kept is None:
        raise NotFound(f"No notice {notice_id} whose delivery was given up; `GET /v1/notices?dead=true` lists them")
    return kept


def deliver(climate: Climate) -> int:
    """Send due notifications, each at least once and those of a lease in order; return the number delivered.

    Any number of workers may run it at once. No transaction is open during a request.
    """
    addressed = _addressed(climate)
    others = [audience for audience in Audience if audience not in (*addressed, Audience.MAIL)]
    return drain(climate, addressed, others, _send)


def drain(climate: Climate, addressed: Sequence[Audience], others: Sequence[Audience], send: Send) -> int:
    """Send what is due to `addressed` for some seconds; mark what is due to `others` as not to be delivered.

    Return the number delivered.
    """
    arrived, ends = 0, None
    while True:
        now, claimed = run(climate, _claim, climate, addressed, others)
        ends = ends or now + ROUND
        if not claimed:
            return arrived
        results = send(climate, claimed, now)
        run(climate, notifications.settle, results)
        good = sum(not result.error for result in results)
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


def _send(climate: Climate, claimed: Sequence[Kept], now: datetime) -> list[Result]:
    """Send all of them."""
    answers = http_client.post_all([_parcel(climate, kept, now) for kept in claimed])
    return [_result(climate, kept, answer, now) for kept, answer in zip(claimed, answers, strict=True)]


def _parcel(climate: Climate, kept: Kept, now: datetime) -> PostRequest:
    settings = climate.settings
    if kept.notice.audience is Audience.ENFORCEMENT:
        return enforcement.build_request(settings, enforcement.ON_END, kept.notice.body)
    return webhooks.build_request(settings, kept, now)


def _result(climate: Climate, kept: Kept, answer: Receipt | DeliveryError, now: datetime) -> Result:
    trouble = str(answer) if isinstance(answer, DeliveryError) else webhooks.trouble(answer.status)
    return result(climate, kept, trouble, now, unwanted=isinstance(answer, Receipt) and answer.status == GONE)


def result(climate: Climate, kept: Kept, trouble: str, now: datetime, *, unwanted: bool) -> Result:
    """Return the result of a try: "" is a success, and an `unwanted` notification is not tried again."""
    if not trouble:
        return Result(kept.id, kept.attempts, None, "")
    last = unwanted or kept.attempts >= climate.settings.notify_tries
    again_at = None if last else now + _delay(kept.attempts, climate.chance())
    log.warning("notification delivery failed", notice=kept.id, kind=kept.notice.kind, reason=trouble, given_up=last)
    return Result(kept.id, kept.attempts, again_at, trouble)


def _delay(attempts: int, chance: float) -> timedelta:
    """Return the delay, which doubles with every try; half of it is random, so that retries spread."""
    doubled: int = 2 ** min(attempts - 1, 20)
    delay = min(LONGEST_DELAY, FIRST_DELAY * doubled)
    return delay / 2 * (1 + chance)
