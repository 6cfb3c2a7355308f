"""Classification of database errors."""

import psycopg
from sqlalchemy import exc
from sqlalchemy.exc import DataError, DBAPIError, InterfaceError, OperationalError

from climate.domain.errors import DiskFull

ERRORS = (exc.SQLAlchemyError, psycopg.Error)
"""Errors that the database or its connection may raise."""

PASSING = frozenset({"40001", "40P01", "23P01", "55P03", "57014", "25P03", "25006", "57P01", "57P02", "57P03", "53300"})
"""Transient errors: serialization, deadlock, exclusion, lock and statement time-outs, server read-only, ending or full.
"""

CLASHES = frozenset({"40001", "40P01", "23P01", "55P03", "57014"})
"""Errors of one transaction beside others: serialization, deadlock, exclusion, lock and statement time-outs."""

NO_ROOM = "53100"
"""Errors of a server whose disk is full."""


def disk_full(error: BaseException) -> bool:
    """Return whether the disk of the database is full: nothing was changed, and a retry fails until there is space."""
    if isinstance(error, DiskFull):
        return True
    if isinstance(error, DBAPIError):
        return sqlstate(error) == NO_ROOM
    return isinstance(error, psycopg.Error) and error.sqlstate == NO_ROOM


def reason(error: BaseException) -> str:
    """Return the name of an error for the log; a full disk has its own name."""
    return "the disk of the database is full" if disk_full(error) else type(error).__name__


def is_transient(error: BaseException) -> bool:
    """Return whether a retry may succeed shortly: the database was away or too busy, or transactions conflicted."""
    if isinstance(error, exc.TimeoutError | OperationalError | InterfaceError | psycopg.OperationalError):
        return True
    return isinstance(error, DBAPIError) and (error.connection_invalidated or sqlstate(error) in PASSING)


def is_clash(error: DBAPIError) -> bool:
    """Return whether a transaction lost a conflict with others, while the database serves."""
    return not error.connection_invalidated and sqlstate(error) in CLASHES


def unusable_value(error: BaseException) -> bool:
    """Return whether a value cannot be stored: too large a number, or an invalid text."""
    return isinstance(error, DataError | psycopg.DataError)


def sqlstate(error: DBAPIError) -> str:
    """Return the SQLSTATE of an error, or an empty text."""
    return getattr(error.orig, "sqlstate", None) or ""
