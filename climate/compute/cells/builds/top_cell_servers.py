"""Servers of builds at the top cell: their rows from the request until a cell reports them."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import uuid4

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.models.request import BootRequest, drafts
from climate.compute.models.server import BUILD
from climate.compute.projects import quota_check
from climate.compute.store.cells import servers
from climate.compute.store.servers import tasks

SCHEDULING = "scheduling"
"""Task of a server that no cell has reported yet."""


def begun(compute: Compute, conn: Connection, request: BootRequest, build_id: str) -> list[str]:
    """Store the servers of a request for a cell in status BUILD; return their new ids.

    The project's quota counts servers of all cells. Raise QuotaExceeded, BadRequest.
    """
    used = servers.used(conn, request.project_id)
    count = quota_check.allowed(conn, request.project_id, request.flavor, request.count, request.least, used)
    now = compute.now(conn)
    ids = [str(uuid4()) for _ in range(count)]
    made = [replace(draft, status=BUILD, task=SCHEDULING) for draft in drafts(request, build_id, ids, now)]
    servers.begin(conn, made)
    by = {"project_id": request.project_id, "user_id": request.user_id, "request_id": request.request_id}
    for server in made:
        tasks.note(conn, server.id, "create", by, now)
    return ids


def failed(compute: Compute, conn: Connection, ids: Sequence[str], message: str) -> set[str]:
    """Put unreported servers into ERROR with this fault; return the ids of changed ones."""
    now = compute.now(conn)
    fault = {"code": 500, "created": f"{now:%Y-%m-%dT%H:%M:%SZ}", "message": message}
    return servers.fail(conn, ids, fault, now)
