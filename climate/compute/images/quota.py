"""Room for images: what each project may have, and what the disk of all has to keep free."""

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
"""An upload looks at the disk again after so many bytes."""


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """What a project may have of images (-1: as much as it likes), and the MB that stay free on their disk."""

    count: int = -1
    size_mb: int = -1
    free_mb: int = 0


def check_count(conn: Connection, limits: ImageLimits, project_id: str | None, *, lock: bool = True) -> None:
    """Return when a project may have one more image; NoImageRoom when it may not.

    `lock`: one request of a project at a time gets past here until its transaction ends.
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
    """Return when so many more bytes fit into what a project may have; NoImageRoom when they do not."""
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
    """Return when the disk has room for so many more bytes; NoImageRoom when too little would stay free."""
    disk = os.statvfs(folder)
    if disk.f_bavail * disk.f_frsize - size < limits.free_mb * _MB:
        raise NoImageRoom(FULL)


def checked(limits: ImageLimits, folder: Path, blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The blocks of an upload, for as long as the disk has room for them; NoImageRoom when it has no more."""
    since = 0
    for block in blocks:
        since += len(block)
        if since >= _LOOK_BYTES:
            check_disk(limits, folder, since)
            since = 0
        yield block


def used(conn: Connection, project_id: str) -> Used:
    """What a project has of images: how many, their bytes, and how many are being filled."""
    return images.used(conn, project_id)
