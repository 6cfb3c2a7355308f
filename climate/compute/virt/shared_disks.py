"""Folders of guests that several services share: on storage that all of their machines reach.

A file in the folder names it, and another one names each service that keeps guests
there.  Two services that read the same name find each other's disks.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
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
    """Return the name of the folder of a driver's guests, which is made up once; empty for a driver without one."""
    if not isinstance(driver, KeepsHomes):
        return ""
    folder = driver.homes.folder
    try:
        return _read(folder) or _named(folder)
    except OSError:
        return ""  # a folder that cannot be written is no place for disks


def mark(driver: VirtDriver, service_host: str) -> None:
    """Record in the folder of a driver's guests that a service keeps its guests there."""
    for place in _marks(driver, service_host):
        if place.parent.parent.is_dir():
            place.parent.mkdir(mode=0o700, exist_ok=True)
            place.touch()


def has(driver: VirtDriver, service_host: str) -> bool:
    """Return whether a service keeps its guests in the folder of a driver's guests."""
    return any(place.exists() for place in _marks(driver, service_host))


def _marks(driver: VirtDriver, service_host: str) -> Iterator[Path]:
    if isinstance(driver, KeepsHomes):
        yield driver.homes.folder / SERVICES / service_host.replace("/", "_")


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
