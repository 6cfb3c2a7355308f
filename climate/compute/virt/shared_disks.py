"""Identity of guests' folders on storage that several services share.

A file in the folder holds its identity, and one marker file per service names the services that use it. Two services
that read the same identity can reach each other's disks.
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
    """Driver with a folder for each guest."""

    @property
    def homes(self) -> Homes:
        """Return the folders of its guests."""


def identity(driver: VirtDriver) -> str:
    """Return the identity of a driver's folder, created once; empty for a driver without one."""
    if not isinstance(driver, KeepsHomes):
        return ""
    folder = driver.homes.folder
    try:
        return _read(folder) or _named(folder)
    except OSError:
        return ""  # a read-only folder cannot hold disks


def mark(driver: VirtDriver, service_host: str) -> None:
    """Record that a service keeps its guests in the driver's folder."""
    for place in _marks(driver, service_host):
        if place.parent.parent.is_dir():
            place.parent.mkdir(mode=0o700, exist_ok=True)
            place.touch()


def has(driver: VirtDriver, service_host: str) -> bool:
    """Return whether a service keeps its guests in the driver's folder."""
    return any(place.exists() for place in _marks(driver, service_host))


def _marks(driver: VirtDriver, service_host: str) -> Iterator[Path]:
    if isinstance(driver, KeepsHomes):
        yield driver.homes.folder / SERVICES / service_host.replace("/", "_")


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
