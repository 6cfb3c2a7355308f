"""Live migration as administrators request it: begin, force completion, abort."""

from climate.compute.context import Compute
from climate.compute.errors import BadRequest, Conflict, NotFound
from climate.compute.migrations import cold_migration
from climate.compute.migrations.cold_migration import Move
from climate.compute.models.migration import LIVE, PREPARING, QUEUED, RUNNING, Migration
from climate.compute.models.server import LIVE_MIGRATE, Server, may
from climate.compute.servers import actions
from climate.compute.servers.actions import By
from climate.compute.store.servers import live_migration_steps
from climate.compute.store.servers import migrations as rows
from climate.compute.virt.guest_kinds import LIVE_DRIVERS
from climate.compute.virt.live_migrator import MigrationCommand
from climate.database.connections import reading

AUTO = "auto"


def live_migrate(
    compute: Compute,
    server_id: str,
    host: str | None = None,
    block: bool | str = AUTO,
    *,
    by: By | None = None,
    alone: bool = False,
) -> None:
    """Live-migrate a running or paused server to another node, `host` or any, and wake its service.

    `block` is whether its disk is copied: True, False, or AUTO, which copies it unless the services share their
    folders. Raises NotFound, Conflict, Busy, BadRequest for an unknown host or an unsupported driver, and
    NoValidHost; then nothing has changed.
    """
    server = actions.get(compute, server_id)
    may(server, LIVE_MIGRATE)
    with reading(compute.engine) as conn:
        driver = live_migration_steps.driver_of(conn, server.node_id or 0)
    if driver and driver not in LIVE_DRIVERS:
        raise BadRequest(
            f"Cannot 'os-migrateLive' instance {server_id}: the driver {driver} of its host cannot migrate running "
            f"servers, only {', '.join(sorted(LIVE_DRIVERS))} can. Use migrate, which shuts it down on the way."
        )
    cold_migration.place(compute, Move(server_id, host, None, LIVE_MIGRATE, LIVE, QUEUED, by or {}, alone=alone))
    if block != AUTO:
        with compute.engine.begin() as conn:
            live_migration_steps.note(conn, server_id, {"block": block})
    compute.cast(server.service_host or "", server_id)


def force_complete(compute: Compute, server_id: str, migration_id: int) -> None:
    """Pause the guest until its memory is transferred, so that the migration completes soon.

    Raises NotFound, Conflict unless the live migration is running.
    """
    _order(compute, server_id, migration_id, MigrationCommand.COMPLETE, frozenset({RUNNING}))


def abort(compute: Compute, server_id: str, migration_id: int, *, early: bool = True) -> None:
    """Abort a live migration; the server stays on its node.

    Raises NotFound, Conflict unless the live migration is running, or with `early` is to begin.
    """
    allowed = {RUNNING, QUEUED, PREPARING} if early else {RUNNING}
    _order(compute, server_id, migration_id, MigrationCommand.ABORT, frozenset(allowed))


def _order(
    compute: Compute, server_id: str, migration_id: int, order: MigrationCommand, allowed: frozenset[str]
) -> None:
    with compute.engine.begin() as conn:
        server = actions.locked(conn, server_id, None)
        migration = rows.get(conn, migration_id, lock=True)
        if migration is None or migration.server_id != server.id or migration.type != LIVE:
            raise NotFound(f"Live migration {migration_id} of instance {server.id} could not be found.")
        if not _is_under_way(server, migration) or migration.status not in allowed:
            raise Conflict(
                f"Migration {migration_id} of instance {server.id} is {migration.status}: "
                f"only one that is {' or '.join(sorted(allowed))} allows {order.value}."
            )
        live_migration_steps.note(conn, server.id, {"order": order.value})


def _is_under_way(server: Server, migration: Migration) -> bool:
    details = server.task_details
    return server.task == LIVE_MIGRATE and server.migration_id == migration.id and not details.get("sent")
