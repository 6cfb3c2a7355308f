"""Deletion of expired rows, and heartbeats of processes."""

from collections.abc import Callable, Mapping
from datetime import timedelta

import structlog
from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.errors import Unavailable
from climate.service.transaction import work
from climate.store import db_errors, heartbeats, idempotency, notifications
from climate.store.batch_delete import PORTION
from climate.store.hosts import pool_membership
from climate.store.leases import fences, healing_waits

log = structlog.get_logger(__name__)

PORTIONS = 20
"""Maximum number of portions of one kind of rows in one run."""

Forget = Callable[[Climate, Connection], int]

OLD: Mapping[str, Forget] = {
    "processes": lambda climate, conn: heartbeats.forget_old(conn, climate.now(conn)),
    "idempotency keys": lambda climate, conn: idempotency.forget_old(conn, climate.now(conn)),
    "fences": lambda climate, conn: fences.forget_old(conn, climate.now(conn)),
    "tries of healing": lambda climate, conn: healing_waits.forget_old(conn, climate.now(conn)),
    "causes of pools": lambda climate, conn: pool_membership.correct_causes(conn),
    "notices": lambda climate, conn: notifications.forget_old(
        conn, climate.now(conn) - timedelta(days=climate.settings.notice_days)
    ),
}
"""Expired rows and corrections; each function processes a portion and returns its number of rows."""


def show_life(climate: Climate, process: str, *roles: str) -> None:
    """Record that this process has just done the work of these roles; readiness checks the age of that."""
    work(climate, lambda conn, patient: heartbeats.beat(conn, roles, process, climate.now(conn)))


def tidy(climate: Climate, alive: Callable[[], None] = lambda: None) -> None:
    """Delete expired idempotency keys, fences, healing attempts, notifications and processes.

    Also corrects causes of hosts that a process of an older release has moved. Each portion is a transaction of
    its own, and an error of one kind does not stop the others. `alive` is called after each portion.
    """
    for name, forget in OLD.items():
        try:
            _forget(climate, forget, alive)
        except (Unavailable, *db_errors.ERRORS) as error:
            log.warning("expired rows not deleted", rows=name, error=db_errors.reason(error))


def _forget(climate: Climate, forget: Forget, alive: Callable[[], None]) -> None:
    for _ in range(PORTIONS):
        went = work(climate, lambda conn, patient: forget(climate, conn))
        alive()
        if went < PORTION:
            break
