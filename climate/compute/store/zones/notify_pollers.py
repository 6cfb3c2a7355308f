"""Notifications of pollers after the commit: without any, they query neither builds nor children."""

from sqlalchemy import Connection, func, select

CHANNEL = "climate_zones"

BUILDS, CHILDREN = "builds", "children"
"""There is a build to carry out; there is a child to poll."""


def notify(conn: Connection, news: str) -> None:
    """Notify all listening pollers; those that listen later query by themselves."""
    conn.execute(select(func.pg_notify(CHANNEL, news)))
