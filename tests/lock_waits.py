"""Sessions of a test's database that wait for locks: how a test knows that a rival is blocked, however slow it is."""

from collections.abc import Callable

from sqlalchemy import Engine, text

_WAITING = text(
    """
    SELECT count(DISTINCT pid) FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE NOT granted AND datname = current_database()
    """
)
_PAUSE = text("SELECT pg_sleep(0.005)")


def count(engine: Engine) -> int:
    """Return how many sessions of the database wait for a lock now."""
    with engine.connect() as conn:  # a transaction of its own each time: in one, the server shows one state for ever
        return int(conn.execute(_WAITING).scalar_one())


def await_blocked(engine: Engine, over: Callable[[], bool], sessions: int = 1) -> None:
    """Wait until so many sessions wait for a lock; AssertionError when `over` says that a rival got past it."""
    while count(engine) < sessions:
        assert not over(), "the rival must wait"
        with engine.connect() as conn:
            conn.execute(_PAUSE)


def blocked_or_over(engine: Engine, over: Callable[[], bool], sessions: int = 1) -> None:
    """Wait until so many sessions wait for a lock, or `over` says that the rival is done."""
    while not over() and count(engine) < sessions:
        with engine.connect() as conn:
            conn.execute(_PAUSE)
