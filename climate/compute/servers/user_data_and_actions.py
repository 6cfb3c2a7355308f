"""Details of servers that are stored beside their rows: user data and actions."""

from collections.abc import Sequence
from typing import Any

from climate.compute.context import Compute
from climate.compute.store.servers import servers, tasks
from climate.database.connections import reading

FAILED = tasks.FAILED
"""Message of an action that failed."""


def user_data(compute: Compute, ids: Sequence[str]) -> dict[str, str]:
    """Return the user data of servers by their ids, of those that have any."""
    with reading(compute.engine) as conn:
        return servers.user_data(conn, ids)


def owner_of_deleted(compute: Compute, server_id: str) -> str | None:
    """Return the project of a deleted server, whose actions are kept; None for one that never was here."""
    with reading(compute.engine) as conn:
        return tasks.owner(conn, server_id)


def actions(compute: Compute, server_id: str) -> list[dict[str, Any]]:
    """Return the actions on a server, newest first, with times and results."""
    with reading(compute.engine) as conn:
        return tasks.notes(conn, server_id)
