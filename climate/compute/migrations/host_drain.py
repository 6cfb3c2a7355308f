"""Draining of nodes: servers leave nodes by the settings, or at the request of the engine.

By the settings, one server of a node moves at a time, shut down on the way. None moves while another migration from the
node is in progress. A requested server is live-migrated if its driver supports that, and shut down on the way if that
has failed. It is confirmed on arrival. A server stays if no node fits.
"""

from contextlib import suppress
from uuid import uuid4

import structlog
from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import BadRequest, Conflict, NotFound
from climate.compute.migrations import cold_migration, evacuation, live_migration_requests
from climate.compute.models.migration import ERROR, LIVE
from climate.compute.models.server import ACTIVE, LIVE_MIGRATE, MIGRATE, PAUSED, VERIFY_RESIZE, Server
from climate.compute.servers import actions, resize
from climate.compute.store.servers import live_migration_steps, migration_lists
from climate.compute.store.servers import migrations as rows
from climate.compute.virt.guest_kinds import LIVE_DRIVERS
from climate.database.connections import reading

POOLS = frozenset({"draining", "recycling", "maintenance"})
"""Pools of hosts that are drained."""

USER = "climate"
"""The user id of these migrations, which no user requested."""

log = structlog.get_logger(__name__)


def run_round(compute: Compute) -> None:
    """Migrate servers from this service's nodes that are drained, and confirm those that have arrived."""
    with reading(compute.engine) as conn:
        arrived = rows.moved_by(conn, compute.service_host, USER)
    for server_id in arrived:
        with suppress(Conflict, NotFound):  # its owner confirmed or reverted it first
            resize.confirm(compute, server_id, by=_by())
    if not compute.leaving_pools:
        return
    with reading(compute.engine) as conn:
        leaving = rows.leaving(conn, compute.service_host, compute.leaving_pools)
    begun: set[int | None] = set()
    for server_id in leaving:
        with suppress(NotFound):
            node_id = actions.get(compute, server_id).node_id
            if node_id not in begun and _is_moved(compute, server_id):
                begun.add(node_id)


def move(compute: Compute, server_id: str, node: str, token: int, *, alone: bool = False) -> None:
    """Migrate a server from a node; nothing to do if it is on another node or on its way.

    Raises NotFound, StaleToken, Conflict, BadRequest, Busy, with `alone` also while another server is migrating from
    the node, and NoValidHost if no node fits; then nothing has changed. Conflict also while a user has to confirm or
    revert a migration of the server.
    """
    server = actions.get(compute, server_id)
    if server.node != node or server.task in (MIGRATE, LIVE_MIGRATE):
        return
    actions.fence(compute, server_id, token)
    if server.status == VERIFY_RESIZE and not server.busy:
        _confirm(compute, server)
    with reading(compute.engine) as conn:
        runs_on = live_migration_steps.driver_of(conn, server.node_id or 0) in LIVE_DRIVERS
        failed = _failed_live(conn, server_id, node)
    # A paused server has no cold migration.
    if runs_on and (server.status == PAUSED or (server.status == ACTIVE and not failed)):
        live_migration_requests.live_migrate(compute, server_id, by=_by(), alone=alone)
    else:
        cold_migration.migrate(compute, server_id, by=_by(), alone=alone)


def evacuate(compute: Compute, server_id: str, node: str, token: int) -> None:
    """Evacuate a server of a node whose service is down; nothing to do if it is elsewhere.

    Raises NotFound, StaleToken, Busy, Conflict, also while the service is up, and NoValidHost.
    """
    server = actions.get(compute, server_id)
    if server.node != node:
        return
    actions.fence(compute, server_id, token)
    evacuation.evacuate(compute, server_id, by=_by())


def _failed_live(conn: Connection, server_id: str, node: str) -> bool:
    """Return whether the last migration of a server was a live one from this node, without a user, that failed.

    It would fail again, for example where the service of the destination has no address for running servers.
    """
    last = next(iter(migration_lists.listed(conn, {"server_id": server_id}, 1)), None)
    return last is not None and (last.type, last.status, last.user_id, last.source_node) == (LIVE, ERROR, USER, node)


def _confirm(compute: Compute, server: Server) -> None:
    """Confirm a migration that no user requested; Conflict for one that a user may still revert."""
    with reading(compute.engine) as conn:
        last = rows.get(conn, server.migration_id) if server.migration_id is not None else None
    if last is None or last.user_id != USER:
        raise Conflict(f"Cannot move instance {server.id} away: its user has to confirm or revert its resize first")
    resize.confirm(compute, server.id, by=_by())


def _is_moved(compute: Compute, server_id: str) -> bool:
    try:
        cold_migration.migrate(compute, server_id, by=_by(), alone=True)
    except (BadRequest, Conflict) as reason:
        log.warning("server not drained", server=server_id, reason=str(reason)[:200])
        return False
    return True


def _by() -> dict[str, str]:
    return {"project_id": "", "user_id": USER, "request_id": f"req-{uuid4()}"}
