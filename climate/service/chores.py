"""Upkeep that need not be done at once."""

from datetime import timedelta

from sqlalchemy import Connection

from climate.context import Climate
from climate.service.unit import work
from climate.store import beats, idempotency, lease_fences, notices


def show_life(climate: Climate, process: str, *roles: str) -> None:
    """Say that this process has just done what the roles stand for; readiness looks at how long ago that was."""
    work(climate, lambda conn, patient: beats.beat(conn, roles, process, climate.now(conn)))


def tidy(climate: Climate) -> None:
    """Forget old idempotency keys, fences and notices, and processes that are long gone."""

    def act(conn: Connection, patient: bool) -> None:
        now = climate.now(conn)
        beats.forget_old(conn, now)
        idempotency.forget_old(conn, now)
        lease_fences.forget_old(conn, now)
        notices.forget_old(conn, now - timedelta(days=climate.settings.notice_days))

    work(climate, act)
