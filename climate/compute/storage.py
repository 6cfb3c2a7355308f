"""The directory driver of volumes: a folder per backend, and in it a folder per volume.

A backend is a folder below `volumes` in the home of the deployment: an
operator makes it, as a mount point or as a link to one.  `local` is always
there.  In the folder of a volume is `disk.raw`, a sparse file of its size,
which a virtual machine gets as a disk.  Other servers get the folder `data`.
Where this process may mount, the file's own ext4 is mounted there, so that
nothing grows beyond the size.  Elsewhere `data` is a plain folder without a quota.
"""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from climate.compute.errors import BadRequest, VirtError

GB = 1 << 30
LOCAL = "local"
DISK, DATA, PLAIN = "disk.raw", "data", "plain"
"""`PLAIN` is there once `data` is in use as a plain folder: what is in it is never hidden below a mount."""

SECONDS = 60.0
"""Longest time for one of the system's programs."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_ID = re.compile(r"[0-9a-f-]{36}")


@dataclass(frozen=True)
class Directory:
    """Backends are the folders below `folder`."""

    folder: Path

    def capacity_gb(self, backend: str) -> int | None:
        """The size of the file system of a backend in GB; None where there is no such backend."""
        place = self._backend(backend)
        if place is None:
            return None
        found = os.statvfs(place)
        return int(found.f_frsize * found.f_blocks // GB)

    def known(self) -> list[str]:
        """The names of all backends."""
        found = [entry.name for entry in self.folder.iterdir() if entry.is_dir()] if self.folder.is_dir() else []
        return sorted({LOCAL, *(name for name in found if _NAME.fullmatch(name))})

    def make(self, backend: str, volume_id: str, size_gb: int) -> None:
        """Make a volume, or let it grow; one that is larger stays as it is.  VirtError; BadRequest for no backend."""
        home = self.home(backend, volume_id)
        try:
            home.mkdir(mode=0o700, exist_ok=True)
            with (home / DISK).open("ab") as disk:
                if os.fstat(disk.fileno()).st_size < size_gb * GB:
                    os.truncate(disk.fileno(), size_gb * GB)
        except OSError as error:
            raise VirtError(f"the volume {volume_id} cannot be made: {error.strerror or error}") from error

    def delete(self, backend: str, volume_id: str) -> None:
        """Leave nothing of a volume."""
        home = self.home(backend, volume_id)
        release(home)
        try:
            shutil.rmtree(home, ignore_errors=False)
        except FileNotFoundError:
            return
        except OSError as error:
            raise VirtError(f"the volume {volume_id} cannot be deleted: {error.strerror or error}") from error

    def home(self, backend: str, volume_id: str) -> Path:
        """The folder of a volume, there or not."""
        place = self._backend(backend)
        if place is None:
            raise BadRequest(f"There is no storage backend {backend!r} here; known are {', '.join(self.known())}")
        if not _ID.fullmatch(volume_id):
            raise BadRequest(f"{volume_id!r} is not the id of a volume")
        return place / volume_id

    def _backend(self, name: str) -> Path | None:
        if not _NAME.fullmatch(name):
            return None
        place = self.folder / name
        if name == LOCAL:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        return place if place.is_dir() else None


def data(home: Path) -> Path:
    """The folder that servers without disks get of the volume in `home`; mounted where this process may do that."""
    folder = home / DATA
    folder.mkdir(mode=0o700, exist_ok=True)
    if os.path.ismount(folder) or (home / PLAIN).exists():
        return folder
    if not _mounted(home / DISK, folder):
        (home / PLAIN).touch()
    return folder


def disk(home: Path) -> Path:
    """The file that a virtual machine gets of the volume in `home` as a disk; VirtError for one that is a folder."""
    if (home / PLAIN).exists():
        raise VirtError(f"the volume {home.name} is a folder already: it cannot be a disk of a virtual machine")
    release(home)
    return home / DISK


def release(home: Path) -> None:
    """Unmount the folder of a volume that no server has any more; VirtError while it is in use."""
    folder = home / DATA
    if os.path.ismount(folder) and not _ran("umount", str(folder)):
        raise VirtError(f"the volume {home.name} is still in use")


def _mounted(disk: Path, data: Path) -> bool:
    """Mount the file system of a disk, made where the disk is blank; False where this process cannot do that."""
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None or shutil.which("mount") is None:
        return False
    blank = disk.stat().st_blocks == 0
    if blank and not _ran("mkfs.ext4", "-q", "-F", "-m", "0", "-E", "root_owner=0:0", str(disk)):
        return False
    _ran("resize2fs", "-f", str(disk))  # it may have grown since it was last mounted
    if _ran("mount", "-o", "loop,nosuid,nodev", str(disk), str(data)):
        return True
    if blank:  # as it was: a virtual machine that gets it finds an empty disk
        size = disk.stat().st_size
        os.truncate(disk, 0)
        os.truncate(disk, size)
    return False


def _ran(*command: str) -> bool:
    try:
        done = subprocess.run(  # noqa: S603  (paths of ours)
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
