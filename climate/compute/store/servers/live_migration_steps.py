"""Progress of a live migration in the details of the server's task, through which both services communicate."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import Connection, or_, select, update

from climate.compute.models.server import LIVE_MIGRATE
from climate.compute.store.columns import in_array
from climate.compute.store.tables.migrations import migrations
from climate.compute.store.tables.nodes import nodes
from climate.compute.store.tables.servers import servers


def note(conn: Connection, server_id: str, details: Mapping[str, object]) -> bool:
    """Add to the details of a live migration; False if another task was requested meanwhile."""
    noted = servers.c.task_details.concat(dict(details))
    this = (servers.c.id == server_id, servers.c.task == LIVE_MIGRATE)
    return conn.execute(update(servers).where(*this).values(task_details=noted)).rowcount == 1


def details(conn: Connection, server_id: str) -> Mapping[str, object] | None:
    """Return the details of a live migration; None if another task was requested meanwhile."""
    return conn.scalar(select(servers.c.task_details).where(servers.c.id == server_id, servers.c.task == LIVE_MIGRATE))


def driver_of(conn: Connection, node_id: int) -> str:
    """Return the driver of a node; empty while its service has not reported it."""
    return str(conn.scalar(select(nodes.c.driver).where(nodes.c.id == node_id)) or "")


def under_way(conn: Connection, ids: list[str]) -> set[str]:
    """Return those of these servers that are in a live migration, or may be in one of their cluster."""
    # A cluster migrates its servers without a task, and ends that itself.
    is_migrating = or_(servers.c.task == LIVE_MIGRATE, nodes.c.driver == "cluster")
    query = select(servers.c.id).outerjoin(nodes, nodes.c.id == servers.c.node_id)
    return set(conn.scalars(query.where(in_array(servers.c.id, ids), is_migrating)))


def at_home(conn: Connection, ids: list[str], service_host: str) -> set[str]:
    """Return those of these servers that are on a node of this service, so that its guests are theirs."""
    query = select(servers.c.id).join(nodes, nodes.c.id == servers.c.node_id)
    return set(conn.scalars(query.where(in_array(servers.c.id, ids), nodes.c.service_host == service_host)))


def cancelled(conn: Connection, migration_id: int, status: str, now: datetime) -> None:
    """Record that a live migration has ended by an order, not by an error."""
    conn.execute(update(migrations).where(migrations.c.id == migration_id).values(status=status, updated_at=now))
