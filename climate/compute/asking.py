"""What is asked of servers: written down in one transaction, rung for after its commit."""

from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import Connection

from climate.compute import images
from climate.compute.context import Compute
from climate.compute.errors import Busy, NotFound, StaleToken
from climate.compute.image import ACTIVE as IMAGE_ACTIVE
from climate.compute.server import (
    DELETE,
    HOLD,
    REBOOT,
    RESUME,
    SNAPSHOT,
    SPAWN,
    START,
    STOP,
    SUSPEND,
    WAKE,
    WISHES,
    Server,
    may,
)
from climate.compute.store import images as image_rows
from climate.compute.store import servers, wishes

ACTIONS = {
    SPAWN: "create",
    HOLD: "create",
    WAKE: "wake",
    STOP: "stop",
    START: "start",
    SUSPEND: "suspend",
    RESUME: "resume",
    REBOOT: "reboot",
    SNAPSHOT: "createImage",
    DELETE: "delete",
}
"""Task -> its name in the list of what was asked of a server."""


def get(compute: Compute, server_id: str, project_id: str | None = None) -> Server:
    """The server; NotFound when there is none or it is another project's.  None: any project's."""
    with compute.engine.connect() as conn:
        return _own(servers.get(conn, server_id), server_id, project_id)


def ask(
    compute: Compute,
    server_id: str,
    task: str,
    *,
    project_id: str | None = None,
    token: int | None = None,
    by: Mapping[str, str] | None = None,
) -> None:
    """Write down what is wanted of a server and ring for it.  With a token: nothing to do when it is so already.

    Raises NotFound, StaleToken (a later `token` was here), Conflict, Busy.
    `by`: project_id, user_id and request_id of who asks, for the list of actions.
    """
    with compute.engine.begin() as conn:
        server = _locked(conn, server_id, project_id, token)
        if token is not None and server.status == WISHES[task].becomes and not server.busy:
            return
        may(server, task)
        if task == DELETE and server.node_id is None:
            wishes.delete(conn, server_id)
            return
        if server.task != task:
            _record(conn, compute, server, task, by)
    compute.cast(server.service_host or "", server_id)


class Once(NamedTuple):
    """What is to be done once on an occasion, under a token."""

    token: int
    occasion: str


def snapshot(
    compute: Compute,
    server_id: str,
    name: str,
    *,
    project_id: str | None = None,
    once: Once | None = None,
    by: Mapping[str, str] | None = None,
) -> str:
    """Make an image of a server; its id.  With `once` the one of that name and occasion is found again."""
    token, occasion = once or (None, None)
    with compute.engine.begin() as conn:
        server = _locked(conn, server_id, project_id, token)
        made = image_rows.snapshot_of(conn, server_id, name, occasion) if occasion is not None else None
        if made is None:
            may(server, SNAPSHOT)
            if server.busy:
                raise Busy(f"Cannot do '{SNAPSHOT}' instance {server.id} while it is in task_state {server.task}")
            made = images.begin(conn, server, name, occasion)
            _record(conn, compute, server, SNAPSHOT, by, made.id)
    compute.cast(server.service_host or "", server_id)
    return made.id


def is_made(compute: Compute, image_id: str) -> bool:
    """Whether the content of an image is there."""
    with compute.engine.connect() as conn:
        image = image_rows.get(conn, image_id)
    return image is not None and image.status == IMAGE_ACTIVE


def _own(server: Server | None, server_id: str, project_id: str | None) -> Server:
    if server is None or (project_id is not None and server.project_id != project_id):
        raise NotFound(f"Instance {server_id} could not be found.")
    return server


def _locked(conn: Connection, server_id: str, project_id: str | None, token: int | None) -> Server:
    server = _own(servers.get(conn, server_id, lock=True), server_id, project_id)
    if token is not None and not wishes.fence(conn, server_id, token):
        raise StaleToken
    return server


def _record(
    conn: Connection,
    compute: Compute,
    server: Server,
    task: str,
    by: Mapping[str, str] | None,
    image: str | None = None,
) -> None:
    now = compute.now(conn)
    if server.task_image is not None:
        images.give_up(conn, server.task_image, now)
    wishes.record(conn, server.id, task, now, image)
    if by is not None:
        wishes.note(conn, server.id, ACTIONS[task], by, now)
