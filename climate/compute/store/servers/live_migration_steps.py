"""Progress of a live migration in the details of the server's task, through which both services communicate."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from climate.compute.models.server import LIVE_MIGRATE

_NOTE = text("""
    UPDATE compute_servers SET task_details = task_details || CAST(:details AS jsonb)
    WHERE id = CAST(:id AS uuid) AND task = :task
""")

_DETAILS = text("SELECT task_details FROM compute_servers WHERE id = CAST(:id AS uuid) AND task = :task")

_DRIVER = text("SELECT driver FROM compute_nodes WHERE id = :id")

# A cluster migrates its servers without a task, and ends that itself.
_UNDER_WAY = text("""
    SELECT s.id::text FROM compute_servers s LEFT JOIN compute_nodes n ON n.id = s.node_id
    WHERE s.id = ANY(CAST(:ids AS uuid[])) AND (s.task = :task OR n.driver = 'cluster')
""")

_AT_HOME = text("""
    SELECT s.id::text FROM compute_servers s JOIN compute_nodes n ON n.id = s.node_id
    WHERE s.id = ANY(CAST(:ids AS uuid[])) AND n.service_host = :host
""")

_STATUS = text("UPDATE compute_migrations SET status = :status, updated_at = :now WHERE id = :id")


def note(conn: Connection, server_id: str, details: Mapping[str, Any]) -> bool:
    """Add to the details of a live migration; False if another task was requested meanwhile."""
    noted = conn.execute(_NOTE, {"id": server_id, "task": LIVE_MIGRATE, "details": json.dumps(dict(details))})
    return noted.rowcount == 1


def details(conn: Connection, server_id: str) -> Mapping[str, Any] | None:
    """Return the details of a live migration; None if another task was requested meanwhile."""
    found: Mapping[str, Any] | None = conn.execute(
        _DETAILS, {"id": server_id, "task": LIVE_MIGRATE}
    ).scalar_one_or_none()
    return found


def driver_of(conn: Connection, node_id: int) -> str:
    """Return the driver of a node; empty while its service has not reported it."""
    return str(conn.execute(_DRIVER, {"id": node_id}).scalar_one_or_none() or "")


def under_way(conn: Connection, ids: list[str]) -> set[str]:
    """Return those of these servers that are in a live migration, or may be in one of their cluster."""
    return set(conn.execute(_UNDER_WAY, {"ids": ids, "task": LIVE_MIGRATE}).scalars())


def at_home(conn: Connection, ids: list[str], service_host: str) -> set[str]:
    """Return those of these servers that are on a node of this service, so that its guests are theirs."""
    return set(conn.execute(_AT_HOME, {"ids": ids, "host": service_host}).scalars())


def cancelled(conn: Connection, migration_id: int, status: str, now: datetime) -> None:
    """Record that a live migration has ended by an order, not by an error."""
    conn.execute(_STATUS, {"id": migration_id, "status": status, "now": now})
