"""Removal of servers that have left the nodes of this service, and release of their capacity.

Their migrations hold the capacity. A guest whose server another service has is removed too unless it may come back:
this machine was down while its servers were evacuated.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import structlog

from climate.compute import one_by_one, shared_home
from climate.compute.context import Compute
from climate.compute.errors import NetworkError, VirtError
from climate.compute.migrations import live_migration
from climate.compute.models.migration import COMPLETED, CONFIRMED, CONFIRMING, DONE, EVACUATION, Migration
from climate.compute.models.server import LIVE_MIGRATE, MIGRATE, REVERT, Server
from climate.compute.servers import guest_conversion, guest_removal, volume_attachments
from climate.compute.servers.interfaces import vif_plugging
from climate.compute.store.servers import migrations as rows
from climate.compute.store.servers import servers, tasks
from climate.compute.store.servers.migrations import ServerLocation
from climate.database.connections import reading

_AFTERWARDS: Mapping[str, str] = {CONFIRMING: CONFIRMED, DONE: COMPLETED}

KEPT_SECONDS = 30 * 86_400
"""Seconds for which the migrations of a deleted server are listed."""

log = structlog.get_logger(__name__)


def clear(compute: Compute, server_id: str | None = None) -> None:
    """Remove the guests that a server, None: any, has left on the nodes of this service.

    Servers whose destination went down before they arrived continue here.
    """
    with reading(compute.engine) as conn:
        result = rows.held_by(conn, compute.service_host, (MIGRATE, LIVE_MIGRATE), server_id)
    over = [one.migration for one in result if one.over]
    one_by_one.each("deletion of remains", over, lambda one: _clear_if_possible(compute, one), _server_id)
    if over:
        with suppress(NetworkError, VirtError):  # the next round retries
            vif_plugging.sweep(compute)
    if any(one.away for one in result):
        _take_back(compute)
        live_migration.take_back(compute)


def forget(compute: Compute) -> None:
    """Delete old migrations of deleted servers. Called periodically."""
    with compute.engine.begin() as conn:
        rows.forget(conn, compute.now(conn), KEPT_SECONDS)


def _server_id(migration: Migration) -> str:
    return migration.server_id


def _clear_if_possible(compute: Compute, migration: Migration) -> None:
    try:
        _clear(compute, migration)
    except VirtError as error:
        log.error("remains of a server not deleted", server=migration.server_id, reason=str(error))


def _clear(compute: Compute, migration: Migration) -> None:
    """Remove the guest of a server that has moved away, while its row says that it stays away."""
    with compute.engine.begin() as conn:
        server = servers.get(conn, migration.server_id, lock=True)
        if server is not None and (server.migration_id == migration.id):
            return
        if not _is_home(compute, server):
            guest_removal.remove_departed(compute, migration.server_id)
        now = compute.now(conn)
        if not rows.free(conn, migration.id, now):
            return  # another process was faster
        rows.set_status(conn, migration.id, _AFTERWARDS.get(migration.status, migration.status), now)
    log.info("remains of a server deleted", server=migration.server_id, migration=migration.id)


def _is_home(compute: Compute, server: Server | None) -> bool:
    """Return whether the disk of a server, on whatever node, is in the home of this service."""
    return server is not None and server.service_host is not None and shared_home.has(compute, server.service_host)


def end_strays(compute: Compute, known: Sequence[ServerLocation]) -> None:
    """Remove guests that this service's driver reports and that belong to other services now.

    A guest that is being evacuated is only stopped, because it is the only copy until then.
    """
    one_by_one.each("end of guests", known, lambda one: _end(compute, one), lambda one: one.server_id)


def _end(compute: Compute, location: ServerLocation) -> None:
    if location.host in (None, compute.service_host) or shared_home.has(compute, location.host or ""):
        return
    with suppress(VirtError):
        _end_guest(compute, location)


def _end_guest(compute: Compute, location: ServerLocation) -> None:
    held = location.held_host == compute.service_host
    if held and location.type != EVACUATION:
        return
    with compute.engine.begin() as conn:
        server = servers.get(conn, location.server_id, lock=True)
        if server is None or server.service_host in (None, compute.service_host):
            return
        if held:
            compute.driver.stop(
                replace(guest_conversion.guest(compute, server), node=location.held_node or ""), kindly=False
            )
            volume_attachments.release(compute, server.id)
        elif server.migration_id is None:
            guest_removal.remove_departed(compute, server.id)
            log.info("guest of a departed server deleted", server=server.id)


def _take_back(compute: Compute) -> None:
    with reading(compute.engine) as conn:
        result = rows.stranded(conn, compute.service_host, MIGRATE, compute.now(conn), compute.down_seconds)
    one_by_one.each("return of servers", result, lambda one: _take_one_back(compute, one), _server_id)


def _take_one_back(compute: Compute, migration: Migration) -> None:
    with compute.engine.begin() as conn:
        now = compute.now(conn)
        server = servers.get(conn, migration.server_id, lock=True)
        if server is None or server.task != MIGRATE or not migration.is_at_destination(server.node_id):
            return
        if migration.source_node_id is None or server.node_id is None:
            return
        rows.fail(conn, migration.id, f"the destination {migration.dest_node} is down", now)
        rows.swap(conn, migration, migration.source_node_id, server.node_id, now)
        tasks.failed(conn, server.id, now)
        tasks.record(conn, server.id, REVERT, now)
    compute.cast(compute.service_host, migration.server_id)
