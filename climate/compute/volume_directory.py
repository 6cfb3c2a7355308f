"""The directory driver of volumes: a folder per backend, and in it a folder per volume.

A backend is a folder below `volumes` in the home of the deployment; an operator creates it as a mount point or as a
link to one. `local` and `unreserved` always exist. The folder of a volume holds `disk.raw`, a sparse file of its
size, which a virtual machine gets as a disk. Other servers get the folder `data`. If this process may mount, the ext4
of the file is mounted there, so that its size is a limit. Otherwise `data` is a plain folder without a quota.
"""

import contextlib
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from threading import Event as Pause

from climate.compute.errors import BadRequest, VirtError
from climate.compute.linux import folder_removal, processes

GB = 1 << 30
LOCAL = "local"
UNRESERVED = "unreserved"
"""Backend of volumes without a lease, which has no pool: what leases were promised is on other backends."""
DISK, DATA, PLAIN = "disk.raw", "data", "plain"
"""The file `PLAIN` exists once `data` is in use as a plain folder, which must not be hidden below a mount."""

SECONDS = 60.0
"""Timeout of system programs in seconds."""

MOUNT_TRIES, MOUNT_PAUSE = 20, 0.5
"""Number of attempts to mount a disk whose former loop device is still there, and the seconds between them."""

SERVICES = ".services"
"""Folder of a backend with a file for each service that uses it."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_ID = re.compile(r"[0-9a-f-]{36}")


@dataclass(frozen=True)
class Directory:
    """The directory driver; backends are the folders below `folder`."""

    folder: Path

    def capacity_gb(self, backend: str) -> int | None:
        """Return the size of the file system of a backend in GB; None if the backend does not exist."""
        folder = self._backend(backend)
        if folder is None:
            return None
        result = os.statvfs(folder)
        return int(result.f_frsize * result.f_blocks // GB)

    def names(self) -> list[str]:
        """Return the names of all backends of leases."""
        result = [entry.name for entry in self.folder.iterdir() if entry.is_dir()] if self.folder.is_dir() else []
        return sorted({LOCAL, *(name for name in result if _NAME.fullmatch(name))} - {UNRESERVED})

    def ensure(self, backend: str, volume_id: str, size_gb: int) -> None:
        """Create or grow a volume; a larger one is not changed. VirtError; BadRequest for an unknown backend."""
        home = self.home(backend, volume_id)
        try:
            home.mkdir(mode=0o700, exist_ok=True)
            with (home / DISK).open("ab") as disk:
                if os.fstat(disk.fileno()).st_size < size_gb * GB:
                    os.truncate(disk.fileno(), size_gb * GB)
        except OSError as error:
            raise VirtError(f"the volume {volume_id} cannot be created: {error.strerror or error}") from error

    def delete(self, backend: str, volume_id: str) -> None:
        """Delete the files of a volume."""
        home = self.home(backend, volume_id)
        release(home)
        try:
            folder_removal.remove(home)
        except OSError as error:
            raise VirtError(f"the volume {volume_id} cannot be deleted: {error.strerror or error}") from error

    def mounted(self) -> dict[str, Path]:
        """Return the volumes that are mounted here: id -> folder of the volume."""
        folders = {os.path.realpath(self.folder / name): self.folder / name for name in (*self.names(), UNRESERVED)}
        places = [Path(place) for place in processes.mount_points(os.getpid()) if os.path.basename(place) == DATA]
        return {
            place.parent.name: folders[str(place.parent.parent)] / place.parent.name
            for place in places
            if str(place.parent.parent) in folders and _ID.fullmatch(place.parent.name)
        }

    def home(self, backend: str, volume_id: str) -> Path:
        """Return the folder of a volume, which need not exist."""
        folder = self._backend(backend)
        if folder is None:
            raise BadRequest(f"There is no storage backend {backend!r} here; known are {', '.join(self.names())}")
        if not _ID.fullmatch(volume_id):
            raise BadRequest(f"{volume_id!r} is not the id of a volume")
        return folder / volume_id

    def _backend(self, name: str) -> Path | None:
        if not _NAME.fullmatch(name):
            return None
        folder = self.folder / name
        if name in (LOCAL, UNRESERVED):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder if folder.is_dir() else None


def mark(home: Path, service_host: str, machine: str) -> None:
    """Record that a service uses the backend of the volume in `home` on a machine. Raise OSError."""
    marker = _marker(home.parent, service_host)
    marker.parent.mkdir(mode=0o700, exist_ok=True)
    if not marker.exists() or marker.read_text(encoding="utf-8") != machine:
        marker.write_text(machine, encoding="utf-8")


def machine(home: Path, service_host: str) -> str | None:
    """Return the machine on which a service uses the backend of the volume in `home`; None: it is not known."""
    with contextlib.suppress(OSError):
        return _marker(home.parent, service_host).read_text(encoding="utf-8") or None
    return None


def _marker(backend: Path, service_host: str) -> Path:
    return backend / SERVICES / service_host.replace("/", "_")


def data(home: Path) -> Path:
    """Return the folder of the volume in `home` for servers without disks; mounted if this process may mount."""
    folder = home / DATA
    folder.mkdir(mode=0o700, exist_ok=True)
    if os.path.ismount(folder) or (home / PLAIN).exists():
        return folder
    if not _mounted(home / DISK, folder):
        (home / PLAIN).touch()
    return folder


def disk(home: Path) -> Path:
    """Return the file of the volume in `home` as a disk; VirtError if the volume is in use as a folder."""
    if (home / PLAIN).exists():
        raise VirtError(f"the volume {home.name} is in use as a folder, so it cannot be a disk of a virtual machine")
    release(home)
    return home / DISK


def release(home: Path) -> None:
    """Unmount the folder of a volume that is detached from its server; VirtError while it is in use."""
    folder = home / DATA
    if os.path.ismount(folder) and not _ran("umount", str(folder)):
        raise VirtError(f"the volume {home.name} is still in use")


def _mounted(disk: Path, data: Path) -> bool:
    """Mount the file system of a disk, formatting a blank one; False if this process cannot mount."""
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None or shutil.which("mount") is None:
        return False
    blank = disk.stat().st_blocks == 0
    if blank and not _ran("mkfs.ext4", "-q", "-F", "-m", "0", "-E", "root_owner=0:0", str(disk)):
        return False
    _ran("resize2fs", "-f", str(disk))  # grow the file system: the file may be larger than at the last mount
    for _ in range(MOUNT_TRIES):
        if _ran("mount", "-o", "loop,nosuid,nodev", str(disk), str(data)):
            return True
        if not _is_attached(disk):
            break
        Pause().wait(MOUNT_PAUSE)
    if blank:  # leave the disk blank for a virtual machine
        size = disk.stat().st_size
        os.truncate(disk, 0)
        os.truncate(disk, size)
    return False


def _is_attached(disk: Path) -> bool:
    """Return whether a loop device still has the file: the kernel detaches it some time after it was unmounted."""
    return bool(_output("losetup", "--noheadings", "-j", str(disk)))


def _ran(*command: str) -> bool:
    return _output(*command) is not None


def _output(*command: str) -> bytes | None:
    """Return the output of a command; None if it failed."""
    try:
        done = subprocess.run(  # noqa: S603  (paths of ours)
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
