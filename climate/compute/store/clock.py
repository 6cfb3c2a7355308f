"""The database's clock."""

from datetime import datetime

from sqlalchemy import Connection, DateTime, func, select

NOW = "coalesce(CAST(:now AS timestamptz), statement_timestamp())"
"""SQL of the present time: that of the parameter `now`, or the database's if it is null."""


def database_time(conn: Connection) -> datetime:
    """Return the time of the database's clock, in UTC."""
    return conn.execute(select(func.clock_timestamp(type_=DateTime(timezone=True)))).scalar_one()
