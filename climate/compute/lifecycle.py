"""Carrying out what is asked of servers: done by the compute service of the server's node.

No transaction is open while the driver works.  Rings may be lost or doubled:
what is to be done is read from the row each time, and one worker at a time has it.
"""

import contextlib
from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection

from climate.compute import claims, images
from climate.compute.context import Compute
from climate.compute.errors import ClaimLost, NoValidHost, VirtError
from climate.compute.image import ACTIVE as IMAGE_ACTIVE
from climate.compute.request import Placement, replacement
from climate.compute.server import (
    ACTIVE,
    DELETE,
    ERROR,
    HOLD,
    MAKING,
    REBOOT,
    RESERVED,
    RESUME,
    SHUTOFF,
    SNAPSHOT,
    SPAWN,
    START,
    STOP,
    SUSPEND,
    SUSPENDED,
    WAKE,
    WISHES,
    Server,
)
from climate.compute.store import images as image_rows
from climate.compute.store import servers, wishes
from climate.compute.virt import Guest, State, VirtDriver

CLAIM_SECONDS = 120.0
"""A worker that has not finished after so long has lost the work."""

WAIT_SECONDS, AGAIN_SECONDS = 2.0, 5.0
"""Work that nobody is at is rung for after so long, and then every so often."""

ATTEMPTS = 3
"""Nodes on which making a server is tried."""

_VERBS: dict[str, Callable[[VirtDriver, Guest], None]] = {
    SPAWN: lambda driver, guest: driver.run(guest),
    HOLD: lambda driver, guest: driver.hold(guest),
    WAKE: lambda driver, guest: driver.run(guest),
    STOP: lambda driver, guest: driver.stop(guest),
    START: lambda driver, guest: driver.run(guest),
    SUSPEND: lambda driver, guest: driver.suspend(guest),
    RESUME: lambda driver, guest: driver.resume(guest),
    DELETE: lambda driver, guest: driver.delete(guest.id),
}

_FOUND_DEAD = {ACTIVE: (SHUTOFF, None), SUSPENDED: (SHUTOFF, None), RESERVED: (RESERVED, HOLD)}
"""Status of a server whose guest is found dead -> its new status and what is to be done."""


def carry_out(compute: Compute, server_id: str) -> None:
    """Do what is wanted of a server, unless somebody is at it already; nothing when nothing is wanted."""
    worker = str(uuid4())
    with compute.engine.begin() as conn:
        if not wishes.claim(conn, server_id, worker, compute.now(conn), CLAIM_SECONDS):
            return
    done = False
    while not done:
        with compute.engine.connect() as conn:
            server = servers.get(conn, server_id)
        done = server is None or server.task is None or _step(compute, server, worker)


def unfinished(compute: Compute, wait: float = WAIT_SECONDS, again: float = AGAIN_SECONDS) -> list[tuple[str, str]]:
    """(service host, server id) of work that nobody is at, to be rung for again."""
    with compute.engine.begin() as conn:
        return wishes.unfinished(conn, compute.now(conn), wait, again)


def guest(server: Server) -> Guest:
    """The server as its driver needs to know it."""
    addresses = tuple(address.address for address in server.addresses)
    return Guest(server.id, server.name, server.node or "", addresses)


def reconcile(compute: Compute) -> None:
    """Bring the rows of this service's servers and what its driver finds together; at its start and now and then.

    A server that ran and has died is SHUTOFF, a RESERVED one is built anew; what
    there is of servers that do not exist is cleared away.
    """
    # The rows first: what is settled there had its guest before the driver is asked.
    with compute.engine.connect() as conn:
        settled = servers.settled(conn, compute.service_host)
    found = compute.driver.states()
    for server in settled:
        if compute.driver.remembers(server.node or "") and found.get(server.id, State.DEAD) is State.DEAD:
            _found_dead(compute, server)
    _clear_strays(compute, [server_id for server_id in found if _is_uuid(server_id)])


def _found_dead(compute: Compute, server: Server) -> None:
    if server.status not in _FOUND_DEAD:
        return
    status, task = _FOUND_DEAD[server.status]
    with compute.engine.begin() as conn:
        changed = wishes.died(conn, server.id, server.updated_at, status, task, compute.now(conn))
    if changed and task is not None:
        compute.cast(server.service_host or "", server.id)


def _clear_strays(compute: Compute, found: list[str]) -> None:
    # A folder is made after its server's row: one without a row is left over.
    with compute.engine.connect() as conn:
        known = servers.known(conn, found)
    for server_id in set(found) - known:
        with contextlib.suppress(VirtError):
            compute.driver.delete(server_id)


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def _step(compute: Compute, server: Server, worker: str) -> bool:
    """Do what is wanted of a server now; False when something else is wanted by then."""
    try:
        content = _work(compute, server)
    except VirtError as error:
        return _failed(compute, server, worker, str(error))
    return _done(compute, server, worker, content)


def _work(compute: Compute, server: Server) -> tuple[int, str] | None:
    task, subject = server.task or "", guest(server)
    if task == SNAPSHOT:
        return images.content_of(compute, subject, server.task_image or "")
    if task == REBOOT:
        compute.driver.stop(subject)
        compute.driver.run(subject)
        return None
    _VERBS[task](compute.driver, subject)
    return None


def _done(compute: Compute, server: Server, worker: str, content: tuple[int, str] | None) -> bool:
    task = server.task or ""
    becomes = WISHES[task].becomes
    with compute.engine.begin() as conn:
        now = compute.now(conn)
        if task == DELETE:
            _drop(conn, server.id)
            return True
        outcome = {"status": becomes, "launched": becomes == ACTIVE and server.launched_at is None}
        finished = wishes.finish(conn, server.id, worker, task, outcome, now)
        if finished and content is not None and server.task_image is not None:
            image_rows.settle(conn, server.task_image, IMAGE_ACTIVE, now, content)
        return finished


def _drop(conn: Connection, server_id: str) -> None:
    server = servers.get(conn, server_id, lock=True)
    if server is not None:
        claims.release(conn, server)
        wishes.delete(conn, server_id)


def _failed(compute: Compute, server: Server, worker: str, reason: str) -> bool:
    """Record that the driver could not do it; False when something else is wanted by then."""
    task = server.task or ""
    if task in MAKING:
        return _elsewhere(compute, server, worker, reason)
    with compute.engine.begin() as conn:
        now = compute.now(conn)
        if task == DELETE:
            wishes.let_go(conn, server.id, worker, now)
            return True
        if task == SNAPSHOT:
            images.give_up(conn, server.task_image or "", now)
            return wishes.finish(conn, server.id, worker, task, {}, now)
        return wishes.finish(conn, server.id, worker, task, _error(reason, now), now)


def _elsewhere(compute: Compute, server: Server, worker: str, reason: str) -> bool:
    """Try to make a server on another node; ERROR when it was tried often enough or there is none."""
    with contextlib.suppress(VirtError):
        compute.driver.delete(server.id)
    tried = (*server.tried, server.node_id or 0)
    place = replacement(server, tried)
    if len(tried) < ATTEMPTS and not place.forced:
        with contextlib.suppress(NoValidHost):
            return _move(compute, server, place)
    with compute.engine.begin() as conn:
        now = compute.now(conn)
        return wishes.finish(conn, server.id, worker, server.task or "", _error(reason, now), now)


def _move(compute: Compute, server: Server, place: Placement) -> bool:
    old = server.node_id or 0
    for _ in range(claims.TRIES):
        with contextlib.suppress(ClaimLost), compute.engine.begin() as conn:
            locked = servers.get(conn, server.id, lock=True)
            if locked is None or locked.task != server.task:
                return False
            pick = claims.claim(conn, compute, place, 1, also=(old,))[0]
            claims.release(conn, locked)
            wishes.move(conn, server.id, pick.node_id, old, compute.now(conn))
            break
    else:
        raise NoValidHost
    compute.cast(pick.service_host, server.id)
    return True


def _error(reason: str, now: datetime) -> dict[str, Any]:
    return {"status": ERROR, "fault": {"code": 500, "created": f"{now:%Y-%m-%dT%H:%M:%SZ}", "message": reason}}
