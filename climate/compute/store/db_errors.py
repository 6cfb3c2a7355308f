"""What the database may complain of, for those who may not know its library."""

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

DATABASE_ERRORS = (DBAPIError, PoolTimeout)
"""The database is away, too busy, or has broken a deadlock."""

DEADLOCK = "40P01"


def deadlocked(error: BaseException) -> bool:
    """Whether Postgres has rolled the transaction back because it and another one waited for each other."""
    return isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) == DEADLOCK
