"""Capabilities that services report: one row for each service of a host, replaced by each report."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.postgresql import insert

from climate.compute.store.zone_tables import service_capabilities as table
from climate.compute.zones.capabilities import ServiceReport


def report(conn: Connection, host: str, service: str, found: Mapping[str, float], now: datetime) -> None:
    """Replace the last report of a service."""
    values = {"capabilities": dict(found), "reported_at": now}
    made = insert(table).values(host=host, service=service, **values)
    conn.execute(made.on_conflict_do_update(index_elements=["host", "service"], set_=values))


def listed(conn: Connection) -> list[ServiceReport]:
    """The last reports of all services."""
    columns = (table.c.host, table.c.service, table.c.reported_at, table.c.capabilities, table.c.enabled)
    return [ServiceReport(*row) for row in conn.execute(select(*columns).order_by(table.c.host, table.c.service))]


def forget(conn: Connection, before: datetime) -> None:
    """Drop reports that are older."""
    conn.execute(delete(table).where(table.c.reported_at < before))
