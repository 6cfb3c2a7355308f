"""Changes of a server's row after its task has succeeded or failed.

A worker that has lost the task records nothing: each change is written together with `finish`, which checks the
claim.
"""

import contextlib
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import VirtError
from climate.compute.images import image_data
from climate.compute.migrations import live_migration, migration_steps
from climate.compute.models.flavor import recorded
from climate.compute.models.server import (
    ACTIVE,
    DELETE,
    ERROR,
    EVACUATE,
    LIVE_MIGRATE,
    MAKING,
    MIGRATE,
    RESIZE,
    REVERT,
    REWIRE,
    SHELVE,
    SHELVED_OFFLOADED,
    SHUTOFF,
    SNAPSHOT,
    UNSHELVE,
    Room,
    Server,
    after,
)
from climate.compute.placement import claims
from climate.compute.servers import actions, fault_redaction, guest_removal, reschedule
from climate.compute.servers.tasks import task_heartbeat
from climate.compute.store import node_locks
from climate.compute.store.servers import resize_and_shelve, servers, tasks

Change = Callable[[Connection, Server, datetime], None]
"""A further change of a locked row, which still has the values from before the end of its task."""


def done(compute: Compute, server: Server, worker: str) -> bool:
    """Record that a task is done; False if another task was requested meanwhile."""
    task = server.task or ""
    if task == DELETE:
        return gone(compute, server)
    if task == LIVE_MIGRATE:
        return live_migration.done(compute, server, worker)
    handed = migration_steps.done(compute, server, worker)
    if handed is not None:
        return handed
    becomes = after(server)
    outcome = {"status": becomes, "launched": becomes == ACTIVE and server.launched_at is None}
    finished = _finish(compute, server, worker, outcome, _DONE.get(task))
    if finished:
        _forget_carrier(compute, server, task)
    elif task == SHELVE and task_heartbeat.renew(compute, server.id, worker):
        image_data.forget(compute, server.task_image or "")  # the replacing task has dropped the image
    return finished


def _forget_carrier(compute: Compute, server: Server, task: str) -> None:
    """Delete the image or the disks by which the server has reached its node."""
    if task == UNSHELVE and server.shelved_image is not None:
        image_data.forget(compute, server.shelved_image)
    if task == MIGRATE:
        migration_steps.forget_carried(compute, server)


def failed(compute: Compute, server: Server, worker: str, reason: str) -> bool:
    """Record that the driver has failed; False if another task was requested meanwhile."""
    task = server.task or ""
    if task in MAKING:
        return reschedule.elsewhere(compute, server, worker, reason)
    if task == DELETE or (task == SHELVE and image_data.is_made(compute, server.task_image or "")):
        # A deletion is retried until the guest is removed.
        with compute.engine.begin() as conn:
            tasks.let_go(conn, server.id, worker, compute.now(conn))
        return True
    if task == EVACUATE:
        return migration_steps.not_evacuated(compute, server, worker, reason)
    if task == LIVE_MIGRATE:
        return live_migration.failed(compute, server, worker, reason)
    if task == MIGRATE:
        return migration_steps.taken_back(compute, server, worker, reason)
    if task == UNSHELVE and task_heartbeat.renew(compute, server.id, worker):
        with contextlib.suppress(VirtError):
            guest_removal.remove(compute, server)
    return _finish(compute, server, worker, _failure(server, reason), _FAILED.get(task))


def _finish(
    compute: Compute, server: Server, worker: str, outcome: Mapping[str, Any], change: Change | None = None
) -> bool:
    with compute.engine.begin() as conn:
        now = compute.now(conn)
        locked = servers.get(conn, server.id, lock=True)
        given = {key: _dated(value, now) if key == "fault" else value for key, value in outcome.items()}
        finished = locked is not None and tasks.finish(conn, server.id, worker, server.task or "", given, now)
        if locked is not None and finished and change is not None:
            change(conn, locked, now)
    return finished


def _failure(server: Server, reason: str) -> dict[str, object]:
    """Return the values of a server whose task has failed; a snapshot or an interface update changes no status."""
    if server.task in (SNAPSHOT, REWIRE):
        return {"failed": True}
    status = {SHELVE: SHUTOFF, UNSHELVE: SHELVED_OFFLOADED}.get(server.task or "", ERROR)
    return {"status": status, "fault": {"code": 500, "message": fault_redaction.readable(server, reason)}}


def _dated(fault: Mapping[str, object], now: datetime) -> dict[str, object]:
    return {**fault, "created": f"{now:%Y-%m-%dT%H:%M:%SZ}"}


def gone(compute: Compute, server: Server) -> bool:
    """Delete the row of a deleted server, and release its resources; return True."""
    with compute.engine.begin() as conn:
        locked = servers.get(conn, server.id, lock=True)
        if locked is None or locked.task != DELETE:
            return True
        node_locks.lock_of_migration(conn, locked.migration_id)
        claims.release(conn, locked)
        migration_steps.dropped(conn, locked, compute.now(conn))
        actions.drop(conn, compute, locked)
    if locked.shelved_image is not None:
        image_data.forget(compute, locked.shelved_image)
    return True


def _record_image_failure(conn: Connection, server: Server, now: datetime) -> None:
    image_data.record_failure(conn, server.task_image or "", now)


def _offloaded(conn: Connection, server: Server, now: datetime) -> None:
    claims.release(conn, server)
    resize_and_shelve.offload(conn, server.id, server.task_image)


def _still_shelved(conn: Connection, server: Server, now: datetime) -> None:
    claims.release(conn, server)
    resize_and_shelve.offload(conn, server.id, server.shelved_image)


def _unshelved(conn: Connection, server: Server, now: datetime) -> None:
    if server.shelved_image is not None:
        image_data.drop(conn, server.shelved_image)
    resize_and_shelve.unshelved(conn, server.id)


def _resized(conn: Connection, server: Server, now: datetime) -> None:
    resize_and_shelve.resized(conn, server.id, recorded(server.task_details["flavor"]), server.flavor, server.status)


def _as_before(conn: Connection, server: Server, now: datetime) -> None:
    """Give the server its old flavor and capacity."""
    flavor = server.old_flavor or server.flavor
    resize_and_shelve.settle(conn, server.id, Room(flavor.vcpus, flavor.ram_mb, flavor.disk_mb))
    resize_and_shelve.resized(conn, server.id, flavor)


def _reverted(conn: Connection, server: Server, now: datetime) -> None:
    node_locks.lock_of_migration(conn, server.migration_id)
    _as_before(conn, server, now)
    migration_steps.returned(conn, server, now)


def _not_reverted(conn: Connection, server: Server, now: datetime) -> None:
    _as_before(conn, server, now)
    migration_steps.gave_up(conn, server, now)


_DONE: Mapping[str, Change] = {
    SHELVE: _offloaded,
    UNSHELVE: _unshelved,
    RESIZE: _resized,
    REVERT: _reverted,
    MIGRATE: migration_steps.arrived,
    EVACUATE: migration_steps.evacuated,
}
_FAILED: Mapping[str, Change] = {
    SNAPSHOT: _record_image_failure,
    SHELVE: _record_image_failure,
    UNSHELVE: _still_shelved,
    RESIZE: _as_before,
    REVERT: _not_reverted,
}
