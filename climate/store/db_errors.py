"""What an error of the database means to whoever asked."""

import psycopg
from sqlalchemy import exc
from sqlalchemy.exc import DataError, DBAPIError, InterfaceError, OperationalError

from climate.domain.errors import DiskFull

ERRORS = (exc.SQLAlchemyError, psycopg.Error)
"""Whatever the database or the way to it may raise."""

PASSING = frozenset({"40001", "40P01", "23P01", "55P03", "57014", "25P03", "25006", "57P01", "57P02", "57P03", "53300"})
"""Serialization, deadlock, exclusion, lock and statement time-outs, server read-only, ending or full."""

NO_ROOM = "53100"
"""Postgres cannot write: its disk is full."""


def disk_full(error: BaseException) -> bool:
    """The disk of the database is full: nothing was changed, and another try is in vain until there is room."""
    if isinstance(error, DiskFull):
        return True
    if isinstance(error, DBAPIError):
        return sqlstate(error) == NO_ROOM
    return isinstance(error, psycopg.Error) and error.sqlstate == NO_ROOM


def reason(error: BaseException) -> str:
    """The name of an error for the log; a full disk is called so."""
    return "the disk of the database is full" if disk_full(error) else type(error).__name__


def passing(error: BaseException) -> bool:
    """The same request may well succeed shortly: the database was away, too busy, or two got into each other's way."""
    if isinstance(error, exc.TimeoutError | OperationalError | InterfaceError | psycopg.OperationalError):
        return True
    return isinstance(error, DBAPIError) and (error.connection_invalidated or sqlstate(error) in PASSING)


def unusable_value(error: BaseException) -> bool:
    """A value can not be stored: too large a number, a text that is no text."""
    return isinstance(error, DataError | psycopg.DataError)


def sqlstate(error: DBAPIError) -> str:
    """The five characters by which Postgres names its errors, or an empty text."""
    return getattr(error.orig, "sqlstate", None) or ""


def constraint(error: DBAPIError) -> str:
    """The name of the constraint that was violated, or an empty text."""
    return getattr(getattr(error.orig, "diag", None), "constraint_name", None) or ""
