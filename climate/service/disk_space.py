"""Free disk space, and reports of a full disk."""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

import structlog

from climate.service.process_health import Check

TOO_LITTLE = 64 * 1024**2
"""Free bytes at CLIMATE_HOME below which its disk counts as full."""

DATABASE = "postgres"
"""Folder below CLIMATE_HOME with the data of the embedded database, which may be a file system of its own."""

REMEMBERED = 60.0
"""Seconds for which a disk counts as full after a failed write; also the time between two log lines."""

log = structlog.get_logger(__name__)


def free_at(folder: Path) -> int | None:
    """Return the free bytes on the disk of a folder, or of its nearest existing parent; None if unknown."""
    folder = folder.absolute()
    try:
        return shutil.disk_usage(next(place for place in (folder, *folder.parents) if place.is_dir())).free
    except (OSError, StopIteration):
        return None


@dataclass
class DiskWatch:
    """Remembers when a process last failed to write for lack of space."""

    home: Path
    free: Callable[[Path], int | None] = free_at
    now: Callable[[], float] = time.monotonic
    _refused: float | None = None
    _logged: float | None = None
    _what: str = ""
    _lock: Lock = field(default_factory=Lock)

    def note(self, what: str) -> None:
        """Record that a write failed; `what` is full. Logged at most once a minute."""
        now = self.now()
        with self._lock:
            self._refused, self._what = now, what
            quiet = self._logged is not None and now - self._logged < REMEMBERED
            if not quiet:
                self._logged = now
        if not quiet:
            log.error("disk full; writes fail until space is freed", disk=what)

    def check(self) -> Check:
        """Return whether there is space: no recent write failed, and no disk below CLIMATE_HOME is full.

        The disk of the embedded database is looked at too: every process then answers alike, not only the one whose
        write failed.
        """
        if self._refused is not None and self.now() - self._refused < REMEMBERED:
            ago = self.now() - self._refused
            return Check("disk", False, f"{self._what} is full, a write failed {ago:.0f} s ago: free some space")
        free = self.free(self.home)
        for name, room in (("CLIMATE_HOME", free), (f"CLIMATE_HOME/{DATABASE}", self.free(self.home / DATABASE))):
            if room is not None and room < TOO_LITTLE:
                return Check("disk", False, f"{room / 1024**2:.0f} MB are free at {name}: free some space")
        return Check("disk", True, "there is enough space" if free is None else f"{free / 1024**3:.1f} GB are free")
