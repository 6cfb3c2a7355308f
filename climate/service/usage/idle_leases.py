"""Round over idle leases: two notices to the owner, and then the end of the lease where the pool's terms say so.

A lease is idle while no server runs on any of its hosts. Time in which no worker looked does not count.
"""

from datetime import datetime, timedelta

import structlog
from sqlalchemy import Connection

from climate.context import Climate
from climate.database.connections import reading
from climate.domain.errors import Busy, NotFound
from climate.domain.hosts.pools import OnIdle
from climate.domain.lease import Lease
from climate.domain.notifications import Notice
from climate.domain.policy import ADMIN, Caller
from climate.domain.status import LeaseStatus
from climate.service.leases import update
from climate.service.leases.update import Changes
from climate.service.notifications import delivery
from climate.service.notifications.notice_texts import time_text
from climate.service.round_steps import RoundSteps, stops_all
from climate.service.transaction import run
from climate.store.hosts import pool_settings
from climate.store.leases import leases
from climate.store.usage import idle_leases
from climate.store.usage.idle_leases import IdleLease

log = structlog.get_logger(__name__)

AUTHOR = Caller("climate:idle", "", frozenset({ADMIN}))
NOTICES = 2
"""Notices before a lease is ended."""

PORTION = 50
"""Leases in one round."""


def run_round(climate: Climate) -> int:
    """Send due notices about idle leases, and end those that had two; return the number of leases."""
    pause = timedelta(seconds=climate.settings.idle_warning)
    if not pause:
        return 0
    with reading(climate.engine) as conn:
        now = climate.now(conn)
        action = OnIdle(pool_settings.of(conn, climate.settings).idle)
        most = NOTICES + (action is OnIdle.RELEASE)
        due = idle_leases.due(conn, pause, now, PORTION, most)
    steps = RoundSteps("idle lease failed")
    for one in due:
        with steps.item(lease_id=str(one.lease_id)):
            _processed(climate, one, action)
    return len(due)


def _processed(climate: Climate, one: IdleLease, action: OnIdle) -> None:
    """Send the notice or end the lease. One that cannot be read or ended is put off, and keeps no other waiting."""
    try:
        if one.notices < NOTICES:
            run(climate, _warn, climate, one, action)
        else:
            _end(climate, one)
    except (Busy, NotFound) as error:  # a worker runs one of its events, or it is deleted
        log.info("idle lease left for now", lease_id=str(one.lease_id), reason=str(error))
    except Exception as error:
        if not stops_all(error):
            run(climate, _postpone, climate, one)
        raise


def _postpone(conn: Connection, climate: Climate, one: IdleLease) -> None:
    """Have the lease tried again after the time of one more notice."""
    idle_leases.note(conn, one.lease_id, one.notices, climate.now(conn))


def _warn(conn: Connection, climate: Climate, one: IdleLease, action: OnIdle) -> None:
    lease = leases.get(conn, one.lease_id, lock=True)
    if lease.status is not LeaseStatus.ACTIVE:
        return
    now = climate.now(conn)
    idle_leases.note(conn, lease.id, one.notices + 1, now)
    delivery.notify(conn, now, _notice(climate, lease, one, action, now))


def _notice(climate: Climate, lease: Lease, one: IdleLease, action: OnIdle, now: datetime) -> Notice:
    pause = timedelta(seconds=climate.settings.idle_warning)
    ends_at = now + pause * (NOTICES - one.notices) if action is OnIdle.RELEASE else None
    message = f"No server has run on the hosts of lease {lease.name} since {time_text(one.since)}"
    if ends_at is not None and ends_at < lease.period.end:
        message += f"; unless one runs before, the lease ends at {time_text(ends_at)}"
    body = {
        "lease_id": str(lease.id),
        "idle_since": one.since.isoformat(),
        "notice": one.notices + 1,
        "ends_at": ends_at.isoformat() if ends_at else None,
    }
    return Notice("lease.idle", message, lease.project_id, lease.user_id, lease.id, body=body)


def _end(climate: Climate, one: IdleLease) -> None:
    """End a lease now, and tell its owner."""
    lease = update.update(climate, AUTHOR, one.lease_id, Changes(end_now=True))
    run(climate, _ended, climate, lease, one)


def _ended(conn: Connection, climate: Climate, lease: Lease, one: IdleLease) -> None:
    now = climate.now(conn)
    idle_leases.note(conn, lease.id, one.notices + 1, now)
    message = f"Lease {lease.name} ends early: no server has run on its hosts since {time_text(one.since)}"
    body = {"lease_id": str(lease.id), "idle_since": one.since.isoformat()}
    delivery.notify(
        conn, now, Notice("lease.idle_ended", message, lease.project_id, lease.user_id, lease.id, body=body)
    )
