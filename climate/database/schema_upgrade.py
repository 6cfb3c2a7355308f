"""Upgrade of the database schema while other processes keep working.

Each migration is a transaction of its own. A statement that waits too long for its lock gives way to the statements
queued behind it, and its migration is retried.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

import structlog
from alembic import command
from alembic.config import Config
from psycopg import errors
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, OperationalError

from climate.database.advisory_locks import MIGRATION

log = structlog.get_logger(__name__)

LOCK_TIMEOUT = "1s"
"""Lock time-out, shorter than that of all other processes, which then continue before their own time-out."""
TRIES = 60
PAUSE = 1.0
"""Seconds between two tries, in which the statements queued behind the first one continue."""
LOOK = 0.2
"""Seconds between two checks for another process that migrates."""

_IN_THE_WAY = (errors.LockNotAvailable, errors.DeadlockDetected)


def scripts() -> Path:
    """Return the folder of the migrations."""
    return Path(str(resources.files("migrations")))


def connected(engine: Engine, seconds: float, *, pause: float = PAUSE) -> Connection:
    """Return a connection; try again for up to `seconds` while the database does not answer, then raise its error."""
    deadline = time.monotonic() + seconds
    told = False
    while True:
        try:
            return engine.connect()
        except OperationalError as error:
            if time.monotonic() + pause > deadline:
                raise
            if not told:
                log.warning("the database does not answer; waiting", seconds=seconds, error=str(error.orig))
            told = True
        time.sleep(pause)


def upgrade(conn: Connection, *, tries: int = TRIES, pause: float = PAUSE) -> None:
    """Run the missing migrations over an open connection that is in no transaction."""
    config = Config()
    config.set_main_option("script_location", str(scripts()))
    config.attributes["connection"] = conn
    with _alone(conn), _short_waits(conn):
        while not _run(conn, config, tries_left=(tries := tries - 1)):
            time.sleep(pause)


def _run(conn: Connection, config: Config, tries_left: int) -> bool:
    """Run the missing migrations; return False if a retry may help."""
    try:
        command.upgrade(config, "head")
        conn.commit()
    except DBAPIError as error:
        conn.rollback()
        if tries_left <= 0 or not isinstance(error.orig, _IN_THE_WAY):
            raise
        log.info("migration gave way to other statements; retrying", tries_left=tries_left, error=str(error.orig))
        return False
    return True


@contextmanager
def _alone(conn: Connection) -> Iterator[None]:
    """Hold the session lock under which one process migrates at a time, through all migrations.

    No statement waits for the lock: building an index waits for all statements under way, and the two would deadlock.
    """
    is_logged = False
    while not conn.exec_driver_sql(f"SELECT pg_try_advisory_lock({MIGRATION})").scalar_one():
        conn.commit()
        if not is_logged:
            log.info("another process migrates the database; waiting")
        is_logged = True
        time.sleep(LOOK)
    conn.commit()
    try:
        yield
    finally:
        if not conn.invalidated:
            conn.rollback()
            conn.exec_driver_sql(f"SELECT pg_advisory_unlock({MIGRATION})")
            conn.commit()


@contextmanager
def _short_waits(conn: Connection) -> Iterator[None]:
    before = conn.exec_driver_sql("SHOW lock_timeout").scalar_one()
    conn.exec_driver_sql(f"SET lock_timeout = '{LOCK_TIMEOUT}'")
    conn.commit()
    try:
        yield
    finally:
        if not conn.invalidated:
            conn.rollback()
            conn.exec_driver_sql(f"SET lock_timeout = '{before}'")
            conn.commit()
