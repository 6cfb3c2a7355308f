"""Upkeep that need not be done at once."""

from sqlalchemy import Connection

from climate.context import Climate
from climate.service.unit import work
from climate.store import beats, idempotency


def tidy(climate: Climate, role: str, process: str) -> None:
    """Say that this process lives; forget old idempotency keys and processes that are long gone."""

    def act(conn: Connection, patient: bool) -> None:
        now = climate.now(conn)
        beats.beat(conn, role, process, now)
        beats.forget_old(conn, now)
        idempotency.forget_old(conn, now)

    work(climate, act)
