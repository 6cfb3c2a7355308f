"""Transfer of servers between two nodes: the steps of each node's service, and the changes of the rows.

A server is on exactly one of the two nodes at any time, and only the service of that node works on it. The other node
holds capacity for it, and its disk if that was not moved, until the migration is over. A worker that dies between two
steps loses nothing: its successor starts again on the same node. Between services without a shared home, the disk is
copied through the folder of images, in a file with a name that no image has.
"""

from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import structlog
from sqlalchemy import Connection

from climate.compute import shared_home
from climate.compute.context import Compute
from climate.compute.errors import VirtError
from climate.compute.images import image_data
from climate.compute.models.migration import (
    CANCELLED,
    CONFIRMED,
    CONFIRMING,
    DONE,
    FAILED,
    FINISHED,
    MIGRATING,
    POST_MIGRATING,
    REVERTED,
    REVERTING,
    Migration,
)
from climate.compute.models.server import (
    ACTIVE,
    ERROR,
    EVACUATE,
    LIVE_MIGRATE,
    MIGRATE,
    REVERT,
    SHUTOFF,
    VERIFY_RESIZE,
    Server,
)
from climate.compute.servers import fault_redaction, guest_removal, volume_attachments
from climate.compute.servers.interfaces import vif_plugging
from climate.compute.servers.tasks import task_heartbeat
from climate.compute.servers.tasks.task_context import Work
from climate.compute.store.servers import migrations as rows
from climate.compute.store.servers import reschedule, servers, tasks
from climate.database.connections import reading

log = structlog.get_logger(__name__)

HOLD_SECONDS = 8.0


def current(compute: Compute, server: Server) -> Migration | None:
    """Return the migration of a server; None: it has none."""
    if server.migration_id is None:
        return None
    with reading(compute.engine) as conn:
        return rows.get(conn, server.migration_id)


def migrate(work: Work) -> None:
    """Do this node's part of a cold migration: leave it, or arrive at it. Raises VirtError."""
    migration = needed(work)
    if migration.is_at_destination(work.server.node_id):
        set_status(work.compute, migration, POST_MIGRATING)
        _arrive(work, migration)
    else:
        set_status(work.compute, migration, MIGRATING)
        _release_guest(work, migration)


def leave_destination(work: Work) -> bool:
    """Leave the destination of a reverted migration; False if the server is at its source again."""
    migration = current(work.compute, work.server)
    if migration is None or not migration.is_at_destination(work.server.node_id):
        return False
    set_status(work.compute, migration, REVERTING)
    work.check()
    work.driver.stop(work.guest, kindly=work.server.before == ACTIVE)
    if shared_home.has(work.compute, migration.source_host):
        volume_attachments.release(work.compute, work.server.id)
        vif_plugging.unplug(work.compute, work.server)
    else:
        work.clear()
    return True


def evacuate(work: Work) -> None:
    """Create a server on this node again, or start it from its disk in a shared home. Raises VirtError."""
    migration = needed(work)
    check_volumes(work)
    work.check()
    shared = shared_home.has(work.compute, migration.source_host) and _has_disk(work)
    if shared:
        work.driver.stop(work.guest, kindly=False)
    else:
        work.driver.delete(work.server.id)
    _begin(work, run=work.server.status != SHUTOFF, made=shared)


def _release_guest(work: Work, migration: Migration) -> None:
    """Stop a guest, and copy its disk to where the destination reads it."""
    work.driver.stop(work.guest, kindly=work.server.status == ACTIVE)
    if not shared_home.has(work.compute, migration.dest_host):
        image_data.copy_disk(work.compute, work.guest, migration.file, work.check)
    work.check()
    volume_attachments.release(work.compute, work.server.id)
    vif_plugging.unplug(work.compute, work.server)


def _arrive(work: Work, migration: Migration) -> None:
    check_volumes(work)
    run = work.server.status == ACTIVE
    if shared_home.has(work.compute, migration.source_host):
        if not _has_disk(work):
            raise VirtError(f"the disk of instance {work.server.id} is not in the home of {work.compute.service_host}")
        _begin(work, run=run, made=True)
        return
    # Remains here are from an earlier stay, or from an attempt that was interrupted.
    work.check()
    work.driver.delete(work.server.id)
    content = carried(work.compute, migration)
    _begin(replace(work, guest=replace(work.guest, image=content, carried=True, again=work.guest.image)), run=run)


def _begin(work: Work, *, run: bool, made: bool = False) -> None:
    """Run a guest, or only create its disk and plug its interfaces in."""
    if run:
        work.driver.run(work.with_config_drive())
    elif made:
        work.connected(up=False)
    else:
        work.driver.prepare(work.with_config_drive(up=False))


def _has_disk(work: Work) -> bool:
    """Return whether the driver finds the guest: a copied home has the same marks, but not the guests."""
    return not work.driver.knows_guests(work.server.node or "") or work.server.id in work.driver.states()


def carried(compute: Compute, migration: Migration) -> Path:
    """Return the file in which a disk is carried between services."""
    return image_data.path_of(compute, migration.file)


def check_volumes(work: Work) -> None:
    """Check that the volumes of a server exist on this host."""
    for one in volume_attachments.of_guest(work.compute, work.server):
        if not one.home.is_dir():
            raise VirtError(f"the volume {one.id} does not exist at {work.compute.service_host}: share the volumes")


def done(compute: Compute, server: Server, worker: str) -> bool | None:
    """Continue after this node's part: hand the server over; None: its task is done here."""
    migration = current(compute, server)
    if migration is None or server.task not in (MIGRATE, REVERT):
        return None
    arrived = migration.is_at_destination(server.node_id)
    if arrived is (server.task == MIGRATE):
        return None
    return move_to_destination(compute, server, worker, migration)


def move_to_destination(compute: Compute, server: Server, worker: str, migration: Migration) -> bool:
    """Move a server to the other node of its migration; False if another task was requested."""
    to, host = migration.beyond(server.node_id)
    with compute.engine.begin() as conn:
        now = compute.now(conn)
        locked = servers.get(conn, server.id, lock=True)
        wanted = reschedule.renew_claim(conn, server.id, worker, now, HOLD_SECONDS) if locked is not None else None
        if wanted != server.task or to is None or server.node_id is None:
            return wanted is None
        rows.swap(conn, migration, to, server.node_id, now)
    compute.cast(host, server.id)
    return True


def taken_back(compute: Compute, server: Server, worker: str, reason: str) -> bool:
    """Revert a server whose cold migration failed; True: another worker has the task."""
    migration = current(compute, server)
    if migration is None:
        return True
    log.error("migration failed", server=server.id, migration=migration.id, reason=reason)
    with compute.engine.begin() as conn:
        now = compute.now(conn)
        locked = servers.get(conn, server.id, lock=True)
        wanted = reschedule.renew_claim(conn, server.id, worker, now, HOLD_SECONDS) if locked is not None else None
        if wanted != server.task:
            return wanted is None
        rows.fail(conn, migration.id, reason, now)
        tasks.failed(conn, server.id, now)
        tasks.record(conn, server.id, REVERT, now)
    return False


def not_evacuated(compute: Compute, server: Server, worker: str, reason: str) -> bool:
    """Move a server that could not be created back to the node that it came from, in ERROR."""
    migration = current(compute, server)
    if migration is None or not task_heartbeat.renew(compute, server.id, worker):
        return True
    with suppress(VirtError):
        if not shared_home.has(compute, migration.source_host):
            guest_removal.remove(compute, server)
        else:
            volume_attachments.release(compute, server.id)
            vif_plugging.unplug(compute, server)
    to, _ = migration.beyond(server.node_id)
    with compute.engine.begin() as conn:
        now = compute.now(conn)
        locked = servers.get(conn, server.id, lock=True)
        message = {
            "code": 500,
            "created": f"{now:%Y-%m-%dT%H:%M:%SZ}",
            "message": fault_redaction.readable(server, reason),
        }
        outcome = {"status": ERROR, "fault": message}
        if locked is None or not tasks.finish(conn, server.id, worker, EVACUATE, outcome, now):
            return False
        rows.set_status(conn, migration.id, FAILED, now, reason)
        if to is not None and server.node_id is not None:
            rows.swap(conn, migration, to, server.node_id, now)
        rows.free(conn, migration.id, now)
        rows.let_go(conn, server.id)
    return True


def forget_carried(compute: Compute, server: Server) -> None:
    """Delete the file in which the disk of a server was carried."""
    migration = current(compute, server)
    if migration is not None:
        image_data.discard(carried(compute, migration))


def arrived(conn: Connection, server: Server, now: datetime) -> None:
    """Record that a server is at its destination, and waits for confirmation."""
    if server.migration_id is not None:
        rows.set_status(conn, server.migration_id, FINISHED, now)


def evacuated(conn: Connection, server: Server, now: datetime) -> None:
    """Record that a server was evacuated; its capacity on the failed node is held until that node is clear of it."""
    if server.migration_id is not None:
        rows.set_status(conn, server.migration_id, DONE, now)
        rows.let_go(conn, server.id)


def returned(conn: Connection, server: Server, now: datetime) -> None:
    """Record that a server is at its source again, with no capacity held elsewhere."""
    if server.migration_id is not None:
        rows.set_status(conn, server.migration_id, REVERTED, now)
        rows.free(conn, server.migration_id, now)
        rows.let_go(conn, server.id)


def gave_up(conn: Connection, server: Server, now: datetime) -> None:
    """Record that a server stays where its disk is; the other node's service removes its remains there."""
    migration = rows.get(conn, server.migration_id, lock=True) if server.migration_id is not None else None
    if migration is None:
        return
    rows.fail(conn, migration.id, f"the server was left in {server.task or server.status}", now)
    to, _ = migration.beyond(server.node_id)
    # Until it has arrived, and once it is being reverted, the only copy is at the source.
    if (
        server.task in (MIGRATE, LIVE_MIGRATE, EVACUATE, REVERT)
        and "sent" not in server.task_details
        and migration.is_at_destination(server.node_id)
        and to is not None
        and server.node_id is not None
    ):
        rows.swap(conn, migration, to, server.node_id, now)
    rows.let_go(conn, server.id)


def confirmed(conn: Connection, server: Server, now: datetime) -> str | None:
    """Confirm a server at its destination; return the service host with remains to remove, or None."""
    migration = rows.get(conn, server.migration_id, lock=True) if server.migration_id is not None else None
    if migration is None:
        return None
    if not migration.is_at_destination(server.node_id):
        gave_up(conn, server, now)
        return None
    rows.let_go(conn, server.id)
    if migration.source_host != migration.dest_host:
        rows.set_status(conn, migration.id, CONFIRMING, now)
        return migration.source_host
    rows.set_status(conn, migration.id, CONFIRMED, now)
    rows.free(conn, migration.id, now)
    return None


def dropped(conn: Connection, server: Server, now: datetime) -> None:
    """End the migration of a server that is being deleted; release its held capacity."""
    if server.migration_id is not None:
        rows.set_status(conn, server.migration_id, CONFIRMED if server.status == VERIFY_RESIZE else CANCELLED, now)
        rows.free(conn, server.migration_id, now)


def needed(work: Work) -> Migration:
    """Return the migration of a server; VirtError if there is none."""
    migration = current(work.compute, work.server)
    if migration is None:
        raise VirtError(f"the migration of instance {work.server.id} is not known")
    return migration


def set_status(compute: Compute, migration: Migration, status: str) -> None:
    """Set the status of a migration."""
    with compute.engine.begin() as conn:
        rows.set_status(conn, migration.id, status, compute.now(conn))
