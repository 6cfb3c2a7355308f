"""Actions on servers: recorded in one transaction, announced to the compute service after its commit."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import Busy, Conflict, NotFound, StaleToken
from climate.compute.images import image_data, quota
from climate.compute.models.server import (
    ACTIVE,
    DELETE,
    SHELVE,
    SHELVED_OFFLOADED,
    SNAPSHOT,
    VERIFY_RESIZE,
    WISHES,
    Server,
    may,
)
from climate.compute.network import fixed_ips
from climate.compute.store.projects import images as image_rows
from climate.compute.store.servers import servers, tasks
from climate.database.connections import reading

By = Mapping[str, str]
"""The requester, for the list of actions: project_id, user_id, request_id."""


def get(compute: Compute, server_id: str, project_id: str | None = None) -> Server:
    """Return the server; NotFound if it does not exist or belongs to another project. None: any project."""
    with reading(compute.engine) as conn:
        return _own(servers.get(conn, server_id), server_id, project_id)


def request_task(
    compute: Compute,
    server_id: str,
    task: str,
    *,
    project_id: str | None = None,
    token: int | None = None,
    by: By | None = None,
) -> None:
    """Record a task for a server and wake its service. With a token, do nothing if the state is reached already.

    Raises NotFound, StaleToken (for an outdated `token`), Conflict, Busy.
    """
    left = None
    with compute.engine.begin() as conn:
        server = locked(conn, server_id, project_id)
        _fence(conn, server_id, token)
        if token is not None and server.status == WISHES[task].becomes and not server.busy:
            return
        check_lock(server, project_id)
        may(server, task)
        if task == DELETE and server.node_id is None:
            left = server.shelved_image
            drop(conn, compute, server)
        elif server.task != task:
            record(conn, compute, server, TaskRequest(task), by)
    if left is not None:
        image_data.forget(compute, left)
    compute.cast(server.service_host or "", server_id)


def fence(compute: Compute, server_id: str, token: int) -> None:
    """Reject later requests for a server with a lower token. Raises NotFound; StaleToken for an outdated token."""
    with compute.engine.begin() as conn:
        server = locked(conn, server_id, None)
        _fence(conn, server.id, token)


class TaskRequest(NamedTuple):
    """A task, the image that it fills, and its further details."""

    task: str
    image: str | None = None
    details: Mapping[str, object] | None = None


class IdempotentAction(NamedTuple):
    """An action that is carried out once per occasion, under a token."""

    token: int
    occasion: str


def snapshot(compute: Compute, server_id: str, name: str, once: IdempotentAction | None = None) -> str:
    """Create an image of a server; return its id. With `once`, return the existing image of that name and occasion.

    A shelved server is in an image already, which gets this name too. A server with an unconfirmed resize is imaged
    like any other.
    """
    token, occasion = once or (None, None)
    with compute.engine.begin() as conn:
        server = locked(conn, server_id, None)
        _fence(conn, server_id, token)
        made = image_rows.snapshot_of(conn, server_id, name, occasion) if occasion is not None else None
        if made is None and server.status == SHELVED_OFFLOADED and not server.busy:
            return image_data.of_shelved(conn, compute, server, name, occasion).id
        if made is None:
            idle(_before_its_resize(server), SNAPSHOT)
            made = image_data.begin(conn, server, name, occasion)
            record(conn, compute, server, TaskRequest(SNAPSHOT, made.id))
    compute.cast(server.service_host or "", server_id)
    return made.id


def _before_its_resize(server: Server) -> Server:
    return replace(server, status=server.before or ACTIVE) if server.status == VERIFY_RESIZE else server


def create_image(
    compute: Compute,
    server_id: str,
    name: str,
    metadata: Mapping[str, str],
    *,
    project_id: str | None,
    by: By,
) -> str:
    """Create an image of a server with these properties; return its id.

    Raises NotFound, Conflict, Busy, NoImageRoom.
    """
    with compute.engine.begin() as conn:
        server = locked(conn, server_id, project_id)
        idle(server, SNAPSHOT)
        quota.check_count(conn, compute.image_limits, server.project_id, lock=False)
        quota.check_size(conn, compute.image_limits, server.project_id, 1, lock=False)
        made = image_data.begin(conn, server, name, metadata=metadata)
        record(conn, compute, server, TaskRequest(SNAPSHOT, made.id), by)
    compute.cast(server.service_host or "", server_id)
    return made.id


def shelve(compute: Compute, server_id: str, *, project_id: str | None = None, by: By | None = None) -> None:
    """Shelve a server: store it in an image of its name, and remove it from its node; it keeps its addresses.

    Raises NotFound, Conflict, Busy.
    """
    with compute.engine.begin() as conn:
        server = locked(conn, server_id, project_id)
        check_lock(server, project_id)
        idle(server, SHELVE)
        image = image_data.begin(conn, server, f"{server.name}-shelved")
        record(conn, compute, server, TaskRequest(SHELVE, image.id), by)
    compute.cast(server.service_host or "", server_id)


is_made = image_data.is_made


def locked(conn: Connection, server_id: str, project_id: str | None) -> Server:
    """Lock the row of a server and return the server; NotFound as `get`."""
    return _own(servers.get(conn, server_id, lock=True), server_id, project_id)


def check_lock(server: Server, project_id: str | None) -> None:
    """Check that the requester may change the server; administrators (project None) always may."""
    if project_id is not None and server.locked_by is not None:
        raise Conflict(f"Instance {server.id} is locked")


def idle(server: Server, task: str) -> None:
    """Check that `task` may begin and is not in progress already, for tasks that differ if they are requested twice."""
    may(server, task)
    if server.busy:
        action = WISHES[task].action
        raise Busy(f"Cannot '{action}' instance {server.id} while it is in task_state {server.task}")


def record(conn: Connection, compute: Compute, server: Server, request: TaskRequest, by: By | None = None) -> None:
    """Record a task for a server whose row is locked, and cancel the task that it replaces."""
    now = compute.now(conn)
    if server.task_image is not None and server.task == SHELVE:
        image_data.drop(conn, server.task_image)
    elif server.task_image is not None:
        image_data.record_failure(conn, server.task_image, now)
    tasks.record(conn, server.id, request.task, now, request.image, request.details)
    if by is not None:
        tasks.note(conn, server.id, WISHES[request.task].action, by, now)


def drop(conn: Connection, compute: Compute, server: Server) -> None:
    """Delete the row of a server that is on no node, its addresses and the image that it was shelved in."""
    fixed_ips.deallocate(conn, server.id, compute.now(conn), compute.network_notifier)
    if server.shelved_image is not None:
        image_data.drop(conn, server.shelved_image)
    tasks.delete(conn, server.id)


def _own(server: Server | None, server_id: str, project_id: str | None) -> Server:
    if server is None or (project_id is not None and server.project_id != project_id):
        raise NotFound(f"Instance {server_id} could not be found.")
    return server


def _fence(conn: Connection, server_id: str, token: int | None) -> None:
    if token is not None and not tasks.fence(conn, server_id, token):
        raise StaleToken
