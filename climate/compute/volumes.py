"""Volumes of projects: created for reservations or without one, listed, deleted."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import UUID

from climate.compute.context import Compute
from climate.compute.errors import BadRequest, Conflict, Forbidden, NotFound, NoVolumeRoom, StaleToken, VirtError
from climate.compute.store.networks import reserved_floating_ips
from climate.compute.store.projects import volumes as rows
from climate.compute.store.projects.volumes import Volume
from climate.compute.volume_directory import UNRESERVED, Directory
from climate.database.connections import reading

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class ReservedVolume:
    """A volume requested by a reservation; `number` counts from 1."""

    pool: str
    number: int
    project_id: str
    backend: str
    storage_class: str
    size_gb: int


@dataclass(frozen=True, slots=True)
class NewVolume:
    """A volume that a member requests without a reservation."""

    project_id: str
    user_id: str
    size_gb: int
    name: str
    description: str | None
    metadata: Mapping[str, str]


def directory(compute: Compute) -> Directory:
    """Return the driver of volumes."""
    return Directory(compute.home / "volumes")


def machine() -> str:
    """Return an identity of this machine, which changes when it starts."""
    return _BOOT_ID.read_text(encoding="ascii").strip() if _BOOT_ID.exists() else ""


def ensure(compute: Compute, order: ReservedVolume, token: int) -> None:
    """Create or grow a volume for a reservation.

    Raises StaleToken, BadRequest for an unknown backend, VirtError.
    """
    driver = directory(compute)
    if driver.capacity_gb(order.backend) is None:
        known = ", ".join(driver.names())
        raise BadRequest(f"There is no storage backend {order.backend!r} here; known are {known}")
    row = {
        "pool": order.pool,
        "number": order.number,
        "project_id": order.project_id,
        "name": f"{order.storage_class}-{order.pool[:8]}-{order.number}",
        "backend": order.backend,
        "storage_class": order.storage_class,
        "size_gb": order.size_gb,
    }
    with compute.engine.begin() as conn:
        if not reserved_floating_ips.fence(conn, order.pool, token):
            raise StaleToken
        volume = rows.upsert_reserved(conn, row)
    if not build(compute, driver, volume):
        raise StaleToken  # only the end of the reservation deletes it


def reservable_gb(compute: Compute, backend: str) -> int | None:
    """Return the size of a backend for leases in GB; None if there is no such backend."""
    return None if backend == UNRESERVED else directory(compute).capacity_gb(backend)


def create(compute: Compute, new: NewVolume) -> Volume:
    """Create a volume without a reservation.

    Raises Forbidden if only leases create volumes, NoVolumeRoom beyond the limit of the project or the size of the
    backend, VirtError. Raises Conflict if the volume is deleted meanwhile.
    """
    if compute.volume_gb == 0:
        raise Forbidden(
            "Only leases create volumes here: reserve storage by a lease of storage:pool, or ask the operator to set "
            "CLIMATE_VOLUME_GB_PER_PROJECT"
        )
    driver = directory(compute)
    row = asdict(new) | {"metadata": dict(new.metadata), "backend": UNRESERVED, "storage_class": UNRESERVED}
    with compute.engine.begin() as conn:
        rows.alone(conn, UNRESERVED)
        _check_room(compute, new, rows.sizes(conn, UNRESERVED), driver.capacity_gb(UNRESERVED) or 0)
        volume = rows.add(conn, row)
    try:
        is_built = build(compute, driver, volume)
    except VirtError:
        with suppress(VirtError):  # its project can delete it later
            remove(compute, [volume])
        raise
    if not is_built:
        raise Conflict(f"Volume {volume.id} was deleted while it was created: create another one")
    return volume


def build(compute: Compute, driver: Directory, volume: Volume) -> bool:
    """Create the files of a volume; False, without files, if it was deleted meanwhile. Raises VirtError."""
    driver.ensure(volume.backend, volume.id, volume.size_gb)
    with compute.engine.begin() as conn:
        is_kept = rows.mark_available(conn, volume.id)
    if not is_kept:
        # Its deletion may have deleted the files before they were made.
        driver.delete(volume.backend, volume.id)
    return is_kept


def _check_room(compute: Compute, new: NewVolume, used: Mapping[str, int], capacity_gb: int) -> None:
    own = used.get(new.project_id, 0)
    if compute.volume_gb >= 0 and own + new.size_gb > compute.volume_gb:
        raise NoVolumeRoom(
            f"Quota exceeded for volumes: {new.size_gb} GB are too much, the project uses {own} of "
            f"{compute.volume_gb} GB. Delete a volume first."
        )
    left = capacity_gb - sum(used.values())
    if new.size_gb > left:
        raise NoVolumeRoom(
            f"{new.size_gb} GB are too much, {max(0, left)} GB are left for volumes without a lease: request less."
        )


def remove(compute: Compute, volumes: Sequence[Volume]) -> None:
    """Delete detached volumes and their files. Raises VirtError."""
    driver = directory(compute)
    for volume in volumes:
        driver.delete(volume.backend, volume.id)
        with compute.engine.begin() as conn:
            rows.delete(conn, volume.id)


def of_pools(compute: Compute, pools: Sequence[str]) -> list[Volume]:
    """Return the existing volumes of these reservations."""
    with reading(compute.engine) as conn:
        return rows.of_pools(conn, pools)


def listed(compute: Compute, project_id: str | None) -> list[Volume]:
    """Return the volumes of a project; None: of all projects."""
    with reading(compute.engine) as conn:
        return rows.listed(conn, project_id)


def get(compute: Compute, volume_id: str, project_id: str | None) -> Volume:
    """Return a volume; NotFound if it does not exist or belongs to another project. None: any project."""
    with reading(compute.engine) as conn:
        return checked(rows.get(conn, uuid(volume_id)), volume_id, project_id)


def delete(compute: Compute, volume_id: str, project_id: str | None) -> None:
    """Delete a volume that has no reservation, or was kept after it.

    Raises NotFound, Conflict while its reservation lasts or it is attached to a server, VirtError.
    """
    with compute.engine.begin() as conn:
        volume = checked(rows.get(conn, uuid(volume_id), lock=True), volume_id, project_id)
        if not volume.kept:
            raise Conflict(
                f"Volume {volume.id} belongs to reservation {volume.pool}, which is not over: "
                "it is deleted with its lease, or can be deleted afterwards if it is kept"
            )
        if volume.server_id is not None:
            raise Conflict(f"Volume {volume.id} is attached to server {volume.server_id}: detach it first")
        rows.deleting(conn, volume.id)
    remove(compute, [volume])


def checked(volume: Volume | None, volume_id: str, project_id: str | None) -> Volume:
    """Return the volume if it exists and belongs to the project; else raise NotFound."""
    if volume is None or project_id not in (None, volume.project_id):
        raise NotFound(f"Volume {volume_id} could not be found.")
    return volume


def uuid(text: str) -> str:
    """Return the id in a request as a UUID; NotFound for any other text."""
    try:
        return str(UUID(text))
    except ValueError:
        raise NotFound(f"Volume {text} could not be found.") from None
