"""News for pollers, told after the commit: without any, they ask for neither builds nor children."""

from sqlalchemy import Connection, func, select

CHANNEL = "climate_zones"

BUILDS, CHILDREN = "builds", "children"
"""There is a build to carry out; there is a child to poll."""


def tell(conn: Connection, news: str) -> None:
    """Tell all pollers that listen; those that begin to listen later look by themselves."""
    conn.execute(select(func.pg_notify(CHANNEL, news)))
