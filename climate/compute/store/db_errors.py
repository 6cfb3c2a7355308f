"""Database errors, for callers that must not import SQLAlchemy."""

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

DATABASE_ERRORS = (DBAPIError, PoolTimeout)
"""The database is unreachable, too busy, or has resolved a deadlock."""

DEADLOCK = "40P01"


def deadlocked(error: BaseException) -> bool:
    """Return whether Postgres has rolled the transaction back to resolve a deadlock."""
    return isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) == DEADLOCK
