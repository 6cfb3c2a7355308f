"""Folders of guests that several services share: on storage that all of their machines reach.

A file in the folder names it, and another one names each service that keeps guests
there.  Two services that read the same name find each other's disks.
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
class KeepsHomes(Protocol):
    """A driver with a folder for each guest."""

    @property
    def homes(self) -> Homes:
        """The folders of its guests."""


def identity(driver: VirtDriver) -> str:
    """Return the name of the folder of a driver's guests, which is made up once; empty for a driver without one.

    A folder that has lost its name, as below the place of a mount, keeps the one that this process read first.
    """
    if not isinstance(driver, KeepsHomes):
        return ""
    try:
        first = _first(driver.homes.folder)
        return _read(driver.homes.folder) or first
    except OSError:
        return ""  # a folder that cannot be written is no place for disks


def trouble(driver: VirtDriver) -> str | None:
    """Return why the folder of a driver's guests has no name any more; None: it has one, or there is no folder."""
    if not isinstance(driver, KeepsHomes):
        return None
    folder = driver.homes.folder
    try:
        _first(folder)
    except OSError:
        return None  # it had no name before, and nobody else finds its disks
    try:
        found = _read(folder)
    except OSError as error:
        return f"the folder {folder} cannot be read: {error.strerror}"
    return None if found else f"the folder {folder} has lost its file {NAME}: mount its storage, or restart the service"


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
    """Return whether a service keeps its guests in the folder of a driver's guests."""
    return any(place.exists() for place in _marks(driver, service_host))


def _marks(driver: VirtDriver, service_host: str) -> Iterator[Path]:
    if isinstance(driver, KeepsHomes):
        yield driver.homes.folder / SERVICES / service_host.replace("/", "_")


@cache
def _first(folder: Path) -> str:
    """Return the name that a folder has when this process first reads it."""
    return _read(folder) or _named(folder)


def _read(folder: Path) -> str:
    with suppress(FileNotFoundError):
        return (folder / NAME).read_text(encoding="ascii").strip()
    return ""


def _named(folder: Path) -> str:
    """Name a folder; where another service does it at the same time, both read one name."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = folder / f"{NAME}.{uuid4()}"
    draft.write_text(f"{uuid4()}\n", encoding="ascii")
    try:
        with suppress(FileExistsError):
            os.link(draft, folder / NAME)
    finally:
        draft.unlink()
    return _read(folder)
