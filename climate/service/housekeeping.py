"""Deletion of expired rows, and heartbeats of processes."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

import structlog
from sqlalchemy import Connection

from climate.context import Climate
from climate.database.batch_delete import PORTION
from climate.domain.errors import Unavailable
from climate.service.transaction import run
from climate.store import db_errors, heartbeats, idempotency
from climate.store.hosts import pool_membership
from climate.store.leases import fences, healing_waits
from climate.store.notices import notifications
from climate.store.usage import idle_leases

log = structlog.get_logger(__name__)

PORTIONS = 20
"""Maximum number of portions of one kind of rows in one run."""

Forget = Callable[[Connection, Climate], int]

OLD: Mapping[str, Forget] = {
    "processes": lambda conn, climate: heartbeats.forget_old(conn, climate.now(conn)),
    "idempotency keys": lambda conn, climate: idempotency.forget_old(conn, climate.now(conn)),
    "fences": lambda conn, climate: fences.forget_old(conn, climate.now(conn)),
    "tries of healing": lambda conn, climate: healing_waits.forget_old(conn, climate.now(conn)),
    "idle leases": lambda conn, climate: idle_leases.forget_old(conn),
    "causes of pools": lambda conn, climate: pool_membership.correct_causes(conn),
    "notices": lambda conn, climate: notifications.forget_old(
        conn, climate.now(conn) - timedelta(days=climate.settings.notice_days)
    ),
}
"""Expired rows and corrections; each function processes a portion and returns its number of rows."""

SOON: Mapping[str, Forget] = {"causes of pools": OLD["causes of pools"]}
"""Kinds that other rounds read, and that do not wait for the others."""


def show_life(climate: Climate, process: str, *roles: str) -> None:
    """Record that this process has just done the work of these roles; readiness checks the age of that."""
    run(climate, _beat, climate, roles, process)


def _beat(conn: Connection, climate: Climate, roles: Sequence[str], process: str) -> None:
    heartbeats.beat(conn, roles, process, climate.other_time(conn))


def tidy(climate: Climate, alive: Callable[[], None] = lambda: None, kinds: Mapping[str, Forget] = OLD) -> bool:
    """Delete expired idempotency keys, fences, healing attempts, notifications, processes, and records of idle leases.

    Also corrects causes of hosts that a process of an older release has moved. Each portion is a transaction of
    its own, and an error of one kind does not stop the others. `alive` is called after each portion. Return whether
    more may be left.
    """
    is_left = False
    for name, forget in kinds.items():
        try:
            is_left |= _forget(climate, forget, alive)
        except (Unavailable, *db_errors.ERRORS) as error:
            log.warning("expired rows not deleted", rows=name, error=db_errors.reason(error))
            is_left = True
    return is_left


def _forget(climate: Climate, forget: Forget, alive: Callable[[], None]) -> bool:
    """Process portions of one kind; return whether more may be left."""
    for _ in range(PORTIONS):
        went = run(climate, forget, climate)
        alive()
        if went < PORTION:
            return False
    return True
