"""Volumes of a server: attached and detached by its node's compute service."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from uuid import uuid4

from sqlalchemy import Connection

from climate.compute import volume_directory, volumes
from climate.compute.context import Compute
from climate.compute.errors import BadRequest, Busy, Conflict, NotFound, StaleToken, VirtError
from climate.compute.models.server import REWIRE, SHELVED_OFFLOADED, WISHES, Server
from climate.compute.servers import actions
from climate.compute.servers.actions import TaskRequest
from climate.compute.servers.interfaces.interfaces import Requester
from climate.compute.store.networks import reserved_floating_ips
from climate.compute.store.projects import volumes as rows
from climate.compute.store.projects.volumes import AVAILABLE, DETACH, Volume
from climate.compute.store.servers import tasks
from climate.compute.virt.guest_volumes import Attached
from climate.database.connections import reading

MOST = 10
"""Maximum number of volumes of one server: the disk slots of a virtual machine."""


def attach(compute: Compute, who: Requester, volume_id: str) -> Volume:
    """Attach a volume to a server of the same project; return the volume.

    Raises NotFound, Conflict for a volume that is attached already, Busy.
    """
    with compute.engine.begin() as conn:
        server = actions.locked(conn, who.server_id, who.project_id)
        actions.check_lock(server, who.project_id)
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
        rows.give(conn, volume.id, server.id, free[0])
        _notify(conn, compute, server, who, away=away)
        given = rows.get(conn, volume.id)
    compute.cast(server.service_host or "", server.id)
    return given or volume


def detach(compute: Compute, who: Requester, volume_id: str) -> None:
    """Detach a volume from a server. Raises NotFound if it is not attached there, Conflict, Busy."""
    with compute.engine.begin() as conn:
        server = actions.locked(conn, who.server_id, who.project_id)
        actions.check_lock(server, who.project_id)
        volume = rows.get(conn, volumes.uuid(volume_id), lock=True)
        if volume is None or volume.server_id != server.id:
            raise NotFound(f"Instance {server.id} has no volume {volume_id}")
        if volume.wish == DETACH and server.busy:
            raise Busy(f"Volume {volume.id} is being detached")
        away = _is_away(server)
        rows.take(conn, volume.id)
        _notify(conn, compute, server, who, away=away)
    compute.cast(server.service_host or "", server.id)


def _is_away(server: Server) -> bool:
    """Return whether a server has no guest to update; Conflict or Busy if its guest cannot be updated now."""
    if server.status == SHELVED_OFFLOADED and not server.busy:
        return True
    actions.idle(server, REWIRE)
    return False


def _notify(conn: Connection, compute: Compute, server: Server, who: Requester, *, away: bool) -> None:
    """Request the update of the guest's volumes; without a guest, the change applies at once."""
    if away:
        rows.settle(conn, server.id, done=True)
        tasks.note(conn, server.id, WISHES[REWIRE].action, who.by, compute.now(conn), done=True)
    else:
        actions.record(conn, compute, server, TaskRequest(REWIRE), who.by)


def drop(compute: Compute, pool: str, token: int, *, keep: bool) -> None:
    """Delete the volumes of a reservation, or with `keep` leave them to their project.

    Attached ones are detached first: Busy until that is done. Raises StaleToken, VirtError.
    """
    with compute.engine.begin() as conn:
        if not reserved_floating_ips.fence(conn, pool, token):
            raise StaleToken
        if keep:
            rows.keep(conn, pool)
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
    for volume_id, server_id in server_ids.items():
        with suppress(Conflict, NotFound):  # it has another task or is gone: the next attempt retries
            by = {"project_id": "", "user_id": "climate", "request_id": f"req-{uuid4()}"}
            detach(compute, Requester(server_id, None, by), volume_id)


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
        return tuple(
            Attached(one.id, one.device or 0, driver.home(one.backend, one.id)) for one in result if one.wish != DETACH
        )
    except BadRequest as error:
        raise VirtError(str(error)) from None


def release(compute: Compute, server_id: str) -> None:
    """Unmount the volumes of a server that leaves this host; VirtError while one is in use."""
    with reading(compute.engine) as conn:
        result = rows.of_server(conn, server_id)
    for one in result:
        with suppress(BadRequest):
            volume_directory.release(volumes.directory(compute).home(one.backend, one.id))


def settle(compute: Compute, server: Server, *, done: bool) -> None:
    """Record that the guest has exactly its volumes; `done` False: that they could not be changed."""
    with compute.engine.begin() as conn:
        gone = [one for one in rows.of_server(conn, server.id) if done and one.wish == DETACH]
        rows.settle(conn, server.id, done=done)
    for one in gone:
        with suppress(BadRequest, VirtError):  # a process may still use it: it is unmounted with the deletion
            volume_directory.release(volumes.directory(compute).home(one.backend, one.id))
