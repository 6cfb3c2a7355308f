"""What the database may complain of, for those who may not know its library."""

from sqlalchemy.exc import DBAPIError, TimeoutError

DATABASE_ERRORS = (DBAPIError, TimeoutError)
"""The database is away, too busy, or has broken a deadlock."""
