"""Live migration: the steps of the services of source and destination, in turn.

The row of the server moves between the two nodes with the work. The source offers, the destination receives, the source
sends, the destination takes over. Data for the other side is stored in the details of the task before the row moves
there. A worker that dies between two steps therefore has a successor. Until the source has recorded SENT, the guest
goes on there whatever fails; then it belongs to the destination. A guest that ended meanwhile is SHUTOFF, like any that
ends by itself.
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

import structlog
from sqlalchemy import Connection

from climate.compute import one_by_one
from climate.compute.context import Compute
from climate.compute.errors import VirtError
from climate.compute.migrations import migration_steps
from climate.compute.models.migration import CANCELLED, COMPLETED, POST_MIGRATING, PREPARING, RUNNING, Migration
from climate.compute.models.server import LIVE_MIGRATE, SHUTOFF, Server
from climate.compute.servers.interfaces import vif_plugging
from climate.compute.servers.tasks.task_context import Work
from climate.compute.servers.tasks.task_heartbeat import TaskLost
from climate.compute.store.servers import live_migration_steps, reschedule, servers, tasks
from climate.compute.store.servers import migrations as rows
from climate.compute.virt.guest_kinds import LIVE_DRIVERS
from climate.compute.virt.live_migrator import APART, LiveMigrator, MigrationCommand, Progress, opened, sealed
from climate.database.connections import reading

LOOK_SECONDS = 0.5
"""Interval in seconds at which progress is stored and orders are read."""

OFFER, ARRANGEMENT, SENT, FAILED, ORDER, BLOCK = "offer", "arrangement", "sent", "failed", "order", "block"
"""Keys in the details of the task."""

_NETNS = "netns"

log = structlog.get_logger(__name__)


def migrate(work: Work) -> None:
    """Do this node's next step of a live migration. Raises VirtError, TaskLost."""
    migration = migration_steps.needed(work)
    details = work.server.task_details
    if migration.is_at_destination(work.server.node_id):
        if FAILED in details:
            _drop(work.compute, work.server)
        elif SENT in details:
            _keep(work)
        else:
            _receive(work, migration)
    elif FAILED not in details:
        _offer(work, migration) if ARRANGEMENT not in details else _send(work, migration)


def _offer(work: Work, migration: Migration) -> None:
    _check_not_aborted(work)
    migration_steps.set_status(work.compute, migration, PREPARING)
    offer = _migrator(work.compute, work.server).offer(work.guest)
    _store_details(work, {OFFER: {**offer, _NETNS: work.driver.host_netns(work.server.node or "")}})


def _receive(work: Work, migration: Migration) -> None:
    _check_not_aborted(work)
    migration_steps.check_volumes(work)
    migrator = _migrator(work.compute, work.server)
    work.check()
    arrangement = migrator.receive(work.connected(), _received(work, OFFER))
    wanted = work.server.task_details.get(BLOCK)
    if wanted is arrangement["shared"]:
        requirement = "is shared by both hosts: it cannot be copied" if wanted else "is not shared: it must be copied"
        raise VirtError(f"the disk of the server {requirement}; ask for block_migration auto")
    _store_details(work, {ARRANGEMENT: {**arrangement, _NETNS: work.driver.host_netns(work.server.node or "")}})


def _send(work: Work, migration: Migration) -> None:
    """Move the guest, and remove its remains here."""
    migrator = _migrator(work.compute, work.server)
    if SENT not in work.server.task_details:
        migration_steps.set_status(work.compute, migration, RUNNING)
        work.check()
        watcher = Watcher(work, migration)
        sent = migrator.send(work.guest, _received(work, ARRANGEMENT), work.compute.live_limits, watcher)
        if not _store_details(work, {SENT: sent}):
            return  # the row stays on this node: what is left here is the only copy of the server
        watcher.write()
        migration_steps.set_status(work.compute, migration, POST_MIGRATING)
    # From here on the guest belongs to the destination: no failure here reverts that.
    with suppress(VirtError):
        migrator.clear(work.guest, work.server.task_details[ARRANGEMENT])
        if not _one_network(work.server):
            vif_plugging.unplug(work.compute, work.server)


def _keep(work: Work) -> None:
    work.check()
    try:
        sent = _received(work, SENT)
    except VirtError:  # a failure to move the console log does not fail the migration
        sent = {}
    _migrator(work.compute, work.server).keep(work.guest, sent)
    with suppress(VirtError):  # the guest goes on; the next round plugs missing interfaces in
        work.connected()


def _drop(compute: Compute, server: Server) -> None:
    """Remove the waiting guest from the server's node, the destination."""
    _migrator(compute, server).drop(server.id, spare_disk=SENT in server.task_details)
    if not _one_network(server):
        vif_plugging.unplug(compute, server)


@dataclass
class Watcher:
    """Stores the progress of a live migration, and returns pending orders; raises TaskLost if the claim is lost."""

    work: Work
    migration: Migration
    last: float = field(default=float("-inf"))
    order: MigrationCommand = MigrationCommand.GO_ON
    figures: dict[str, int] = field(default_factory=dict)

    def __call__(self, progress: Progress) -> MigrationCommand:
        """Return the pending order; the database is read every LOOK_SECONDS."""
        self.figures |= _figures(progress)
        now = time.monotonic()
        if now - self.last < LOOK_SECONDS:
            return self.order
        self.last = now
        try:
            self.work.check()
        except TaskLost:
            if self._details() is not None:  # another worker goes on with it
                raise
            return MigrationCommand.ABORT  # its state was reset: nobody else lets the guest go on here
        self.write()
        self.order = _ordered(self._details())
        return self.order

    def _details(self) -> Mapping[str, object] | None:
        with reading(self.work.compute.engine) as conn:
            return live_migration_steps.details(conn, self.work.server.id)

    def write(self) -> None:
        """Store the progress."""
        compute = self.work.compute
        with compute.engine.begin() as conn:
            rows.set_progress(conn, self.migration.id, self.figures, compute.now(conn))


def done(compute: Compute, server: Server, worker: str) -> bool:
    """Continue after a step: hand the server to the other node, or finish; False if another task was requested."""
    migration = migration_steps.current(compute, server)
    if migration is None:
        return _end(compute, server, worker, None)
    with reading(compute.engine) as conn:
        details = live_migration_steps.details(conn, server.id) or {}
    arrived = migration.is_at_destination(server.node_id)
    if FAILED in details or (arrived and SENT in details):
        return _end(compute, server, worker, migration)
    return migration_steps.move_to_destination(compute, server, worker, migration)


def _note_failure(
    compute: Compute, server: Server, worker: str, migration: Migration | None, reason: str
) -> str | None:
    """Note the failure unless another task is requested meanwhile; return the requested task."""
    with compute.engine.begin() as conn:
        now = compute.now(conn)
        wanted = reschedule.renew_claim(conn, server.id, worker, now, migration_steps.HOLD_SECONDS)
        if wanted == LIVE_MIGRATE:
            live_migration_steps.note(conn, server.id, {FAILED: reason})
            if migration is not None:
                rows.fail(conn, migration.id, reason, now)
    return wanted


def failed(compute: Compute, server: Server, worker: str, reason: str) -> bool:
    """Record that a step has failed: the guest goes on at the source, unless it was sent already."""
    log.error("live migration failed", server=server.id, migration=server.migration_id, reason=reason)
    migration = migration_steps.current(compute, server)
    arrived = migration is not None and migration.is_at_destination(server.node_id)
    details = server.task_details
    if migration is not None and not arrived and SENT in details:
        return migration_steps.move_to_destination(compute, server, worker, migration)
    if arrived and FAILED in details:
        with compute.engine.begin() as conn:
            tasks.let_go(conn, server.id, worker, compute.now(conn))  # the waiting guest must be removed
        return True
    wanted = _note_failure(compute, server, worker, migration, reason)
    if wanted != LIVE_MIGRATE:
        return wanted is None
    if migration is not None and not arrived and ARRANGEMENT in details:
        return migration_steps.move_to_destination(compute, server, worker, migration)  # the destination removes it
    if arrived and SENT not in details:
        with suppress(VirtError):
            _drop(compute, server)
    return _end(compute, server, worker, migration)


def _end(compute: Compute, server: Server, worker: str, migration: Migration | None) -> bool:
    """Finish the task, with the server on the node that has its guest and no capacity held on the other."""
    with compute.engine.begin() as conn:
        now = compute.now(conn)
        locked = servers.get(conn, server.id, lock=True)
        details = locked.task_details if locked is not None and locked.task == LIVE_MIGRATE else {}
        lost = FAILED in details and SENT in details
        outcome = {"status": SHUTOFF if lost else None, "failed": FAILED in details}
        if locked is None or not tasks.finish(conn, server.id, worker, LIVE_MIGRATE, outcome, now):
            return False
        if migration is None:
            return True
        if FAILED not in details:
            rows.set_status(conn, migration.id, COMPLETED, now)
        elif not lost:
            _revert(conn, migration, locked, now)
        rows.free(conn, migration.id, now)
        rows.let_go(conn, server.id)
    return True


def _revert(conn: Connection, migration: Migration, server: Server, now: datetime) -> None:
    """Put the server back on the source, whose guest was not sent; an aborted migration is cancelled."""
    arrived = migration.is_at_destination(server.node_id)
    if arrived and migration.source_node_id is not None and server.node_id is not None:
        rows.swap(conn, migration, migration.source_node_id, server.node_id, now)
    if server.task_details.get(ORDER) == MigrationCommand.ABORT.value:
        live_migration_steps.cancelled(conn, migration.id, CANCELLED, now)


def take_back(compute: Compute) -> None:
    """Continue servers here that were not sent yet and whose destination's service is down."""
    with reading(compute.engine) as conn:
        now = compute.now(conn)
        stranded = rows.stranded(conn, compute.service_host, LIVE_MIGRATE, now, compute.down_seconds)
    one_by_one.each("return of servers", stranded, lambda one: _take_one_back(compute, one), lambda one: one.server_id)


def _take_one_back(compute: Compute, migration: Migration) -> None:
    with compute.engine.begin() as conn:
        now = compute.now(conn)
        server = servers.get(conn, migration.server_id, lock=True)
        if server is None or server.task != LIVE_MIGRATE or SENT in server.task_details:
            return
        if not migration.is_at_destination(server.node_id) or migration.source_node_id is None:
            return
        reason = f"the destination {migration.dest_node} is down"
        live_migration_steps.note(conn, server.id, {FAILED: reason})
        rows.fail(conn, migration.id, reason, now)
        rows.swap(conn, migration, migration.source_node_id, server.node_id or 0, now)
    compute.cast(compute.service_host, migration.server_id)


def drop_strays(compute: Compute) -> None:
    """Remove guests that wait here for a live migration that is over."""
    nodes = [spec.name for spec in compute.driver.nodes() if spec.driver in LIVE_DRIVERS]
    one_by_one.each("deletion of waiting guests", nodes, lambda node: _drop_strays_of(compute, node))


def _drop_strays_of(compute: Compute, node: str) -> None:
    migrator = compute.driver.live(node)
    waiting = sorted(migrator.waiting()) if migrator is not None else []
    if migrator is None or not waiting:
        return
    with reading(compute.engine) as conn:
        kept = live_migration_steps.under_way(conn, waiting)
        own = live_migration_steps.at_home(conn, waiting, compute.service_host)

    def drop(server_id: str) -> None:
        with suppress(VirtError):
            # The disk here is the only copy if the destination failed while taking over.
            migrator.drop(server_id, spare_disk=server_id in own)
            log.info("orphaned guest of a live migration deleted", server=server_id)

    one_by_one.each("deletion of waiting guests", sorted(set(waiting) - kept), drop)


def _migrator(compute: Compute, server: Server) -> LiveMigrator:
    live = compute.driver.live(server.node or "")
    if live is None:
        raise VirtError(f"the driver of node {server.node} cannot migrate running servers")
    return live


def _check_not_aborted(work: Work) -> None:
    """Check that the migration was not aborted before it began."""
    if work.server.task_details.get(ORDER) == MigrationCommand.ABORT.value:
        raise VirtError("it was aborted")


def _store_details(work: Work, details: Mapping[str, Mapping[str, object]]) -> bool:
    """Store data for the other side, with its secrets sealed; False if another task was requested."""
    stored = {name: sealed(work.compute.vault, value) for name, value in details.items()}
    with work.compute.engine.begin() as conn:
        return live_migration_steps.note(conn, work.server.id, stored)


def _received(work: Work, name: str) -> Mapping[str, object]:
    """Return the data stored by the other side, with its secrets opened. Raises VirtError."""
    return opened(work.compute.vault, work.server.task_details[name])


def _one_network(server: Server) -> bool:
    """Return whether both nodes share a network namespace, and so one interface."""
    offer, arrangement = server.task_details.get(OFFER), server.task_details.get(ARRANGEMENT)
    if offer is None or arrangement is None:
        return True
    return APART not in arrangement and offer[_NETNS] == arrangement[_NETNS]


def _ordered(details: Mapping[str, object] | None) -> MigrationCommand:
    if details is None:  # another task was requested
        return MigrationCommand.ABORT
    return MigrationCommand(details.get(ORDER, MigrationCommand.GO_ON.value))


def _figures(progress: Progress) -> dict[str, int]:
    """Return the known figures of the transfer."""
    memory = {
        "memory_total_bytes": progress.memory_total,
        "memory_processed_bytes": progress.memory_processed,
        "memory_remaining_bytes": progress.memory_remaining,
    }
    disk = {
        "disk_total_bytes": progress.disk_total,
        "disk_processed_bytes": progress.disk_processed,
        "disk_remaining_bytes": progress.disk_remaining,
    }
    return (memory if progress.memory_total else {}) | (disk if progress.disk_total else {})
