"""Limits of images: per project, and the free space to keep on their disk."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection

from climate.compute.errors import NoImageRoom
from climate.compute.store.projects import images, quotas
from climate.compute.store.projects.images import Used

FULL = "There is not enough room on the disk of images: an operator has to make some."

_MB = 1 << 20
_LOOK_BYTES = 8 * _MB
"""Bytes between two checks of the disk during an upload."""


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """The limits of a project's images (-1: unlimited), and the MB to keep free on their disk."""

    count: int = -1
    size_mb: int = -1
    free_mb: int = 0


def check_count(conn: Connection, limits: ImageLimits, project_id: str | None, *, lock: bool = True) -> None:
    """Check that a project may have one more image; else raise NoImageRoom.

    `lock`: serialize the requests of a project until its transaction ends.
    """
    if project_id is None or limits.count < 0:
        return
    if lock:
        quotas.lock_limits(conn, project_id)
    used = images.used(conn, project_id)
    if used.images >= limits.count:
        raise NoImageRoom(
            f"Quota exceeded for images: the project has {used.images} of {limits.count}. Delete one first."
        )


def check_size(conn: Connection, limits: ImageLimits, project_id: str | None, size: int, *, lock: bool = True) -> None:
    """Check that so many more bytes are within the limit of a project; else raise NoImageRoom."""
    if project_id is None or limits.size_mb < 0:
        return
    if lock:
        quotas.lock_limits(conn, project_id)
    used = images.used(conn, project_id)
    if used.size + size > limits.size_mb * _MB:
        raise NoImageRoom(
            f"Quota exceeded for images: {-(-size // _MB)} MB are too much, the project uses "
            f"{-(-used.size // _MB)} of {limits.size_mb} MB. Delete an image first."
        )


def check_disk(limits: ImageLimits, folder: Path, size: int = 0) -> None:
    """Check that the disk has space for so many more bytes; NoImageRoom if too little would stay free."""
    disk = os.statvfs(folder)
    if disk.f_bavail * disk.f_frsize - size < limits.free_mb * _MB:
        raise NoImageRoom(FULL)


def checked(limits: ImageLimits, folder: Path, blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the blocks of an upload while the disk has space for them; else raise NoImageRoom."""
    since = 0
    for block in blocks:
        since += len(block)
        if since >= _LOOK_BYTES:
            check_disk(limits, folder, since)
            since = 0
        yield block


def used(conn: Connection, project_id: str) -> Used:
    """Return the usage of images by a project: their number, bytes, and uploads in progress."""
    return images.used(conn, project_id)
