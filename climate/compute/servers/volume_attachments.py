"""Volumes of a server: attached and detached by its node's compute service."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import structlog
from sqlalchemy import Connection

from climate.compute import one_by_one, volume_directory, volumes
from climate.compute.context import Compute
from climate.compute.errors import BadRequest, Busy, Conflict, NotFound, StaleToken, VirtError
from climate.compute.models.server import REWIRE, SHELVED_OFFLOADED, WISHES, Server
from climate.compute.servers import actions
from climate.compute.servers.actions import TaskRequest
from climate.compute.servers.interfaces.interfaces import Requester
from climate.compute.store.networks import reserved_floating_ips
from climate.compute.store.projects import volumes as rows
from climate.compute.store.projects.volumes import AVAILABLE, DETACH, Volume
from climate.compute.store.servers import migrations, servers, tasks
from climate.compute.store.servers.migrations import ServerLocation
from climate.compute.virt.guest_volumes import Attached
from climate.database.connections import reading

log = structlog.get_logger(__name__)

MOST = 10
"""Maximum number of volumes of one server: the disk slots of a virtual machine."""


def attach(compute: Compute, requester: Requester, volume_id: str) -> Volume:
    """Attach a volume to a server of the same project; return the volume.

    Raises NotFound, Conflict for a volume that is attached already, Busy.
    """
    with compute.engine.begin() as conn:
        server = actions.locked(conn, requester.server_id, requester.project_id)
        actions.check_lock(server, requester.project_id)
        result = rows.get(conn, volumes.uuid(volume_id), lock=True)
        volume = volumes.checked(result, volume_id, server.project_id)
        if volume.server_id is not None:
            raise Conflict(f"Volume {volume.id} is attached to server {volume.server_id} already")
        if volume.status != AVAILABLE:
            raise Conflict(f"Volume {volume.id} is {volume.status}: only one that is available can be attached")
        away = _is_away(server)
        taken = {one.device for one in rows.of_server(conn, server.id)}
        free = [device for device in range(1, MOST + 1) if device not in taken]
        if not free:
            raise Conflict(f"Instance {server.id} has {MOST} volumes, the maximum: detach one first")
        rows.begin_attachment(conn, volume.id, server.id, free[0])
        _notify(conn, compute, server, requester, away=away)
        given = rows.get(conn, volume.id)
    compute.cast(server.service_host or "", server.id)
    return given or volume


def detach(compute: Compute, requester: Requester, volume_id: str) -> None:
    """Detach a volume from a server. Raises NotFound if it is not attached there, Conflict, Busy."""
    with compute.engine.begin() as conn:
        server = actions.locked(conn, requester.server_id, requester.project_id)
        actions.check_lock(server, requester.project_id)
        volume = rows.get(conn, volumes.uuid(volume_id), lock=True)
        if volume is None or volume.server_id != server.id:
            raise NotFound(f"Instance {server.id} has no volume {volume_id}")
        if volume.wish == DETACH and server.busy:
            raise Busy(f"Volume {volume.id} is being detached")
        away = _is_away(server)
        rows.begin_detachment(conn, volume.id)
        _notify(conn, compute, server, requester, away=away)
    compute.cast(server.service_host or "", server.id)


def _is_away(server: Server) -> bool:
    """Return whether a server has no guest to update; Conflict or Busy if its guest cannot be updated now."""
    if server.status == SHELVED_OFFLOADED and not server.busy:
        return True
    actions.idle(server, REWIRE)
    return False


def _notify(conn: Connection, compute: Compute, server: Server, requester: Requester, *, away: bool) -> None:
    """Request the update of the guest's volumes; without a guest, the change applies at once."""
    if away:
        rows.settle(conn, server.id, done=True)
        tasks.note(conn, server.id, WISHES[REWIRE].action, requester.by, compute.now(conn), done=True)
    else:
        actions.record(conn, compute, server, TaskRequest(REWIRE), requester.by)


def drop(compute: Compute, pool: str, token: int, *, keep: bool) -> None:
    """Delete the volumes of a reservation, or with `keep` leave them to their project.

    Attached ones are detached first: Busy until that is done. Raises StaleToken, VirtError.
    """
    with compute.engine.begin() as conn:
        if not reserved_floating_ips.fence(conn, pool, token):
            raise StaleToken
        if keep:
            rows.retain(conn, pool)
        there = [volume for volume in rows.of_pools(conn, [pool], lock=True) if not volume.kept]
        unattached = [volume for volume in there if volume.server_id is None]
        for volume in unattached:
            rows.deleting(conn, volume.id)
    volumes.remove(compute, unattached)
    attached = {volume.id: volume.server_id for volume in there if volume.server_id is not None}
    if attached:
        _detach_all(compute, attached)
        raise Busy(f"volumes of reservation {pool} are still attached to {', '.join(sorted(attached.values()))}")


def _detach_all(compute: Compute, server_ids: Mapping[str, str]) -> None:
    """Request that volumes are detached from their servers."""

    def detach_one(volume_id: str) -> None:
        with suppress(Conflict, NotFound):  # it has another task or is gone: the next attempt retries
            by = {"project_id": "", "user_id": "climate", "request_id": f"req-{uuid4()}"}
            detach(compute, Requester(server_ids[volume_id], None, by), volume_id)

    one_by_one.each("detachment of volumes", server_ids, detach_one)


def of_server(compute: Compute, server_id: str, project_id: str | None = None) -> list[Volume]:
    """Return the volumes of a server in the order of their devices. NotFound as `actions.get`."""
    actions.get(compute, server_id, project_id)
    with reading(compute.engine) as conn:
        return rows.of_server(conn, server_id)


def of_servers(compute: Compute, server_ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Return the ids of the volumes of servers by the servers' ids; only servers with volumes."""
    with reading(compute.engine) as conn:
        return rows.ids_of_servers(conn, server_ids)


def of_guest(compute: Compute, server: Server) -> tuple[Attached, ...]:
    """Return the volumes of a guest. VirtError if the backend of one does not exist here."""
    with reading(compute.engine) as conn:
        result = rows.of_server(conn, server.id)
    driver = volumes.directory(compute)
    try:
        attached = tuple(
            Attached(one.id, one.device or 0, driver.home(one.backend, one.id)) for one in result if one.wish != DETACH
        )
    except BadRequest as error:
        raise VirtError(str(error)) from None
    for one in attached:
        with suppress(OSError):  # the sweep of another service spares mounts while it does not know the machine
            volume_directory.mark(one.home, compute.service_host, volumes.machine())
    return attached


def release(compute: Compute, server_id: str) -> None:
    """Unmount the volumes of a server that leaves this host; VirtError while one is in use."""
    with reading(compute.engine) as conn:
        result = rows.of_server(conn, server_id)
    for one in result:
        with suppress(BadRequest):
            volume_directory.release(volumes.directory(compute).home(one.backend, one.id))


def sweep(compute: Compute, guests: Collection[str]) -> None:
    """Unmount the volumes here whose servers are on no node that may use these mounts; `guests` still run here.

    Mounts are listed before the rows are read, because a volume is mounted after its row.
    """
    for volume_id, home in volumes.directory(compute).mounted().items():
        with reading(compute.engine) as conn:
            server_id, is_used = _use(compute, conn, volume_id, home)
        if not is_used and server_id not in guests:
            _unmount(compute, volume_id, home, server_id)


def _unmount(compute: Compute, volume_id: str, home: Path, server_id: str | None) -> None:
    """Unmount a volume unless it is used now: its server cannot come back while their rows are locked."""
    with compute.engine.begin() as conn:
        if server_id is not None:
            servers.get(conn, server_id, lock=True)
        rows.get(conn, volume_id, lock=True)
        if _use(compute, conn, volume_id, home) != (server_id, False):
            return
        try:
            volume_directory.release(home)
            log.info("volume unmounted that its server has left", volume=volume_id, server=server_id)
        except VirtError as error:
            log.error("volume not unmounted", volume=volume_id, server=server_id, reason=str(error))


def _use(compute: Compute, conn: Connection, volume_id: str, home: Path) -> tuple[str | None, bool]:
    """Return the server of a volume, None for no server, and whether it may use mounts of this machine."""
    server_id = rows.servers_of(conn, [volume_id]).get(volume_id)
    places = migrations.whereabouts(conn, [server_id]) if server_id is not None else []
    return server_id, any(_may_use(compute, home, place) for place in places)


def _may_use(compute: Compute, home: Path, location: ServerLocation) -> bool:
    """Return whether a server uses mounts of this machine: here, on a cluster with members here, or beside."""
    if location.host is None:
        return False
    if location.host == compute.service_host or compute.service_host in location.member_hosts:
        return True
    return volume_directory.machine(home, location.host) in (None, volumes.machine())


def settle(compute: Compute, server: Server, *, done: bool) -> None:
    """Record that the guest has exactly its volumes; `done` False: that they could not be changed."""
    with compute.engine.begin() as conn:
        gone = [one for one in rows.of_server(conn, server.id) if done and one.wish == DETACH]
        rows.settle(conn, server.id, done=done)
    for one in gone:
        with suppress(BadRequest, VirtError):  # a process may still use it: it is unmounted with the deletion
            volume_directory.release(volumes.directory(compute).home(one.backend, one.id))
