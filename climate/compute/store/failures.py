"""What the database may complain of, for those who may not know its library."""

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

DATABASE_ERRORS = (DBAPIError, PoolTimeout)
"""The database is away, too busy, or has broken a deadlock."""
