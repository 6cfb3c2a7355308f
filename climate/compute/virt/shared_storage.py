"""Identity of guests' folders on storage that several services share.

A file in the folder holds its identity, and one marker file per service names the services that use it. Two services
that read the same identity can reach each other's disks.

A file beside the folder holds the identity that the folder had last. So a service that is started while the storage is
not mounted does not take the empty folder below the mount for its disks.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Protocol, runtime_checkable
from uuid import uuid4

from climate.compute.virt import VirtDriver
from climate.compute.virt.guest_folders import Homes

NAME = ".disks"
SERVICES = ".services"


@runtime_checkable
class HasGuestFolders(Protocol):
    """Driver with a folder for each guest."""

    @property
    def homes(self) -> Homes:
        """Return the folders of its guests."""


def identity(driver: VirtDriver) -> str:
    """Return the name of the folder of a driver's guests, which is made up once; empty for a driver without one.

    A folder that has lost its name, as below the place of a mount, keeps the one that this process read first.
    """
    if not isinstance(driver, HasGuestFolders):
        return ""
    try:
        first = _first(driver.homes.folder)
        return _read(driver.homes.folder) or first
    except OSError:
        return ""  # a read-only folder cannot hold disks


def trouble(driver: VirtDriver) -> str | None:
    """Return why the folder of a driver's guests has no name any more; None: it has one, or there is no folder."""
    if not isinstance(driver, HasGuestFolders):
        return None
    folder = driver.homes.folder
    try:
        _first(folder)
    except OSError:
        return None  # it had no name before, and nobody else finds its disks
    try:
        identity = _read(folder)
    except OSError as error:
        return f"the folder {folder} cannot be read: {error.strerror}"
    if identity:
        return None
    return (
        f"the folder {folder} has lost its file {NAME}: mount its storage, "
        f"or delete {_record(folder)} and restart the service if the disks are gone for good"
    )


def mark(driver: VirtDriver, service_host: str) -> None:
    """Record in the folder of a driver's guests that a service keeps its guests there.

    Nothing is recorded where the storage does not answer: the service goes on with its other drivers.
    """
    for place in _marks(driver, service_host):
        with suppress(OSError):
            if place.parent.parent.is_dir():
                place.parent.mkdir(mode=0o700, exist_ok=True)
                place.touch()


def has(driver: VirtDriver, service_host: str) -> bool:
    """Return whether a service keeps its guests in the driver's folder."""
    return any(place.exists() for place in _marks(driver, service_host))


def _marks(driver: VirtDriver, service_host: str) -> Iterator[Path]:
    if isinstance(driver, HasGuestFolders):
        yield driver.homes.folder / SERVICES / service_host.replace("/", "_")


@cache
def _first(folder: Path) -> str:
    """Return the name that a folder has when this process first reads it, or had before if it has none now."""
    identity, kept = _read(folder), _recorded(folder)
    if kept and not identity:
        return kept
    name = identity or _named(folder)
    if name != kept:
        with suppress(OSError):  # without the record, only a start without the storage goes unnoticed
            _record(folder).write_text(f"{name}\n", encoding="ascii")
    return name


def _record(folder: Path) -> Path:
    return folder.parent / f"{folder.name}{NAME}"


def _recorded(folder: Path) -> str:
    with suppress(FileNotFoundError):
        return _record(folder).read_text(encoding="ascii").strip()
    return ""


def _read(folder: Path) -> str:
    with suppress(FileNotFoundError):
        return (folder / NAME).read_text(encoding="ascii").strip()
    return ""


def _named(folder: Path) -> str:
    """Create the identity of a folder; concurrent services read the same one."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = folder / f"{NAME}.{uuid4()}"
    draft.write_text(f"{uuid4()}\n", encoding="ascii")
    try:
        with suppress(FileExistsError):
            os.link(draft, folder / NAME)
    finally:
        draft.unlink()
    return _read(folder)
