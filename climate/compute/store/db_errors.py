"""Database errors, for callers that must not import SQLAlchemy."""

import psycopg
from sqlalchemy.exc import DataError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

DATABASE_ERRORS = (DBAPIError, PoolTimeout)
"""The database is unreachable, too busy, or has resolved a deadlock."""

DEADLOCK = "40P01"
CONFLICTS = frozenset({"40001", DEADLOCK, "55P03", "57014"})
"""Serialization failure, deadlock, lock time-out and statement time-out: the same transaction succeeds later."""

UNUSABLE = ("08", "53", "57P")
"""Beginnings of the SQLSTATEs of a lost connection, of missing resources, and of a server that stops."""


def deadlocked(error: BaseException) -> bool:
    """Return whether Postgres has rolled the transaction back to resolve a deadlock."""
    return _sqlstate(error) == DEADLOCK


def is_conflict(error: BaseException) -> bool:
    """Return whether the transaction has lost to others, and would succeed later."""
    return _sqlstate(error) in CONFLICTS


def unusable(error: BaseException) -> bool:
    """Return whether the database cannot be used: it is away, or lacks connections, memory or disk."""
    if isinstance(error, PoolTimeout):
        return True
    cause = error.orig if isinstance(error, DBAPIError) else error
    if not isinstance(cause, psycopg.Error):
        return False
    state = cause.sqlstate
    if state is None:
        return isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError)
    return state.startswith(UNUSABLE)


def is_invalid_value(error: BaseException) -> bool:
    """Return whether a value cannot be stored, such as an invalid id or text."""
    return isinstance(error, DataError | psycopg.DataError)


def _sqlstate(error: BaseException) -> str | None:
    cause = error.orig if isinstance(error, DBAPIError) else error
    return cause.sqlstate if isinstance(cause, psycopg.Error) else None
