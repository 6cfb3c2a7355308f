"""Servers as containers: processes under bubblewrap, with their own root, process ids and host name.

The root is the image; an image without programs gets the system's own, read-only. A rescued container has its own
root in `/rescued`. The container runs the image's
`/sbin/init`, or a shell that waits. Memory and CPUs are not limited. The network is the namespace of the guest's
interfaces; there is none if networks are only recorded.
"""

import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from climate.compute.errors import VirtError
from climate.compute.linux import netns, processes
from climate.compute.models.hostnames import hostname
from climate.compute.virt import Guest, archive, config_drive, dhcp_client
from climate.compute.virt.containers import bind_mounts, seccomp_filter
from climate.compute.virt.guest_folders import Homes, image_of, marks
from climate.compute.virt.guest_kinds import Kind, of_programs
from climate.compute.virt.guest_volumes import FOLDER
from climate.compute.virt.process import BANNER, DISK, PAUSE_SECONDS, boot_disk

PROGRAM = "bwrap"
START_SECONDS = 10.0
"""Seconds for bubblewrap to set up a container."""

_STEP_SECONDS = 0.005
_MOST_LINKS = 40
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_WALLS = (
    *("--unshare-user", "--unshare-pid", "--unshare-uts", "--unshare-ipc", "--unshare-cgroup-try"),
    *("--uid", "0", "--gid", "0", "--cap-drop", "ALL", "--disable-userns", "--clearenv"),
)
_ALONE = ("--unshare-net",)
# A guest of a root driver has root's uid without its capabilities, so /proc must be read-only.
_PROC = ("--proc", "/proc", "--remount-ro", "/proc")
_MOUNTS = (*_PROC, "--dev", "/dev", "--tmpfs", "/run", "--tmpfs", "/tmp")  # noqa: S108  (the guest's own)
_MOUNTED = ("proc", "dev", "run", "tmp")
_BORROWED = ("usr", "bin", "lib", "lib32", "lib64", "libx32", "sbin")
_BANNER = f"/run/climate/{BANNER}"
CONFIG = "/run/climate/config"
"""Path of the config drive's files inside a container."""
_RESCUED = "rescued"
"""Folder of a rescued container with its own root."""

# As process 1 of the container it only receives signals that it handles.
_PAYLOAD = f"""
trap 'exit 0' TERM
while IFS= read -r line; do printf '%s\\n' "$line"; done < {_BANNER}
if [ "$1" = own ] && [ -x /sbin/init ]; then exec /sbin/init; fi
while :; do read -r _; done
"""


@dataclass(frozen=True)
class BubblewrapContainer:
    """Container of a guest; its process is process 1 of the container."""

    def kinds(self) -> tuple[Kind, ...]:
        return of_programs("container", "lxc")

    def trouble(self) -> str | None:
        program = shutil.which(PROGRAM)
        if program is None:
            return f"{PROGRAM} is not installed (Debian: bubblewrap)"
        tried = subprocess.run(  # noqa: S603  (nothing of a user's is in it)
            [program, *_WALLS, *_ALONE, "--ro-bind", "/", "/", *_PROC, "--dev", "/dev", "true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return f"{PROGRAM} does not work here: {tried.stderr.strip()}" if tried.returncode else None

    def build(self, disk: Path, guest: Guest) -> None:
        image = image_of(guest)
        if image is not None:
            archive.unpack(image, disk, guest.disk_gb)
        if not _has_programs(disk):
            for name in ("root", "home"):
                (disk / name).mkdir(exist_ok=True)
        _check_root(disk)

    def start(self, homes: Homes, guest: Guest, source: int) -> processes.Pid:
        home = homes.of(guest.id)
        kind = "own" if _has_programs(boot_disk(home, guest)) else "borrowed"
        walls = _walls(guest, home)
        reader, writer = (FileIO(number, mode) for number, mode in zip(os.pipe(), "rw", strict=True))
        groups = FileIO(seccomp_filter.opened(), "r")
        with reader, writer, groups, homes.open_log(guest.id) as log:
            passed = [writer.fileno(), groups.fileno()]
            argv = [_program(), *walls, "--info-fd", str(passed[0]), "--seccomp", str(passed[1]), "--as-pid-1", "--"]
            argv += ["/bin/sh", "-c", _PAYLOAD, "climate-server", kind]
            environment = {"PATH": _PATH, **marks(home)}
            netns.inside(guest.netns, lambda: processes.spawn(argv, environment, source, log.fileno(), passed))
            writer.close()
            try:
                number = _child(reader)
            except VirtError as error:
                raise VirtError(f"{error}{homes.last_words(guest.id)}") from error
            return homes.started(guest.id, number)

    def attach(self, home: Path, guest: Guest, pid: processes.Pid | None) -> None:
        """Bind volumes into a running container; a starting one gets them as options."""
        if pid is None:
            return
        there = _bound(pid)
        wanted = {volume.id: volume for volume in guest.volumes}
        for volume_id in sorted(there - set(wanted)):
            bind_mounts.bind(pid.number, f"/{FOLDER}/{volume_id}", None)
        for volume_id in sorted(set(wanted) - there):
            bind_mounts.bind(pid.number, f"/{FOLDER}/{volume_id}", wanted[volume_id].folder())

    def begun(self, pid: processes.Pid) -> None:
        deadline = time.monotonic() + START_SECONDS
        while _program_of(pid) in (None, PROGRAM):
            if processes.state(pid) is None:
                raise VirtError("the container exited immediately")
            if time.monotonic() > deadline:
                raise VirtError(f"the container did not start within {START_SECONDS:g} s")
            time.sleep(_STEP_SECONDS)

    def freeze(self, pid: processes.Pid, *, stopped: bool) -> bool:
        deadline = time.monotonic() + PAUSE_SECONDS
        number = signal.SIGSTOP if stopped else signal.SIGCONT
        # Repeat, because a process that is being stopped may still fork.
        while others := [
            one for one in processes.descendants(pid) if (processes.state(one) in processes.STOPPED) is not stopped
        ]:
            if time.monotonic() > deadline:
                return False
            for one in others:
                processes.send_one(one, number)
            time.sleep(_STEP_SECONDS)
        return processes.state(pid) is not None

    def content(self, home: Path) -> Iterable[tuple[Path, str]]:
        return ((path, path.name) for path in sorted((home / DISK).iterdir()) if path.name not in _MOUNTED)


def _walls(guest: Guest, home: Path) -> list[str]:
    """Return bubblewrap's options for a guest. Raise VirtError if links in its root lead outside."""
    disk = boot_disk(home, guest)
    options = [*_WALLS, *(_ALONE if guest.netns is None else ())]
    options += ["--hostname", hostname(guest.name, guest.id), "--bind", str(disk), "/"]
    if not _has_programs(disk):
        options += _borrowed(disk)
    _check_mounted(disk)
    environment = {"PATH": _PATH, "HOME": "/root", **marks(home)}
    options += [word for name, value in environment.items() for word in ("--setenv", name, value)]
    options += [*_MOUNTS, "--ro-bind", str(home / BANNER), _BANNER, "--chdir", "/"]
    if (home / config_drive.FOLDER).is_dir():
        options += ["--ro-bind", str(home / config_drive.FOLDER), CONFIG]
    options += [*_volumes(guest, disk), *(_own_root(home, disk) if guest.rescued else ())]
    return options if guest.netns is None else [*options, *_name_servers(home, disk)]


def _check_root(disk: Path) -> None:
    """Check that bubblewrap can mount into a root and run its shell. Raise VirtError."""
    _check_mounted(disk)
    if _has_programs(disk) and not _has_shell(disk):
        raise VirtError("the image has programs, but no executable /bin/sh")


def _check_mounted(disk: Path) -> None:
    """Create the mount points. Raise VirtError if other files are in their places."""
    for place in (disk / name for name in _MOUNTED):
        if place.is_symlink():
            raise VirtError(f"the image has a link instead of the folder /{place.name}")
        if place.exists() and not place.is_dir():
            raise VirtError(f"the image has a file instead of the folder /{place.name}")
        place.mkdir(exist_ok=True)


def _has_shell(disk: Path) -> bool:
    """Return whether /bin/sh is an executable in a root, with links resolved inside the root."""
    place, left, links = disk, ["bin", "sh"], _MOST_LINKS
    while left:
        name = left.pop(0)
        if name == "..":
            place = disk if place == disk else place.parent
        elif name == "/":
            place = disk
        elif not (place / name).is_symlink():
            place /= name
        elif not (links := links - 1):
            return False
        else:
            left = [*(place / name).readlink().parts, *left]
    return place.is_file() and os.access(place, os.X_OK)


def _volumes(guest: Guest, disk: Path) -> list[str]:
    """Return the options for the volumes of a guest. Raise VirtError if links in its root lead elsewhere."""
    folder = disk / FOLDER
    if guest.volumes and any(
        place.is_symlink() for place in (folder, *(folder / volume.id for volume in guest.volumes))
    ):
        raise VirtError(f"there is a link instead of the folder /{FOLDER}")
    return [word for volume in guest.volumes for word in ("--bind", str(volume.folder()), f"/{FOLDER}/{volume.id}")]


def _own_root(home: Path, disk: Path) -> list[str]:
    """Return the options for the own root of a rescued guest. Raise VirtError if the image has a link in its place."""
    if (disk / _RESCUED).is_symlink():
        raise VirtError(f"the image has a link instead of the folder /{_RESCUED}")
    return ["--bind", str(home / DISK), f"/{_RESCUED}"] if (home / DISK).is_dir() else []


def _bound(pid: processes.Pid) -> set[str]:
    """Return the ids of the volumes bound into a container."""
    places = map(Path, processes.mount_points(pid.number))
    return {place.name for place in places if place.parent == Path("/", FOLDER)}


def _name_servers(home: Path, disk: Path) -> list[str]:
    """Return the options for /etc/resolv.conf; none if the root has a link there that leads elsewhere."""
    folder = disk / "etc"
    if folder.is_symlink() or (folder / "resolv.conf").is_symlink():
        return []
    return ["--ro-bind", str(dhcp_client.resolv(home)), "/etc/resolv.conf"]


def _borrowed(disk: Path) -> list[str]:
    """Return the options for the system's programs, read-only; its links are recreated."""
    options: list[str] = []
    for name in _BORROWED:
        ours, theirs = Path("/", name), disk / name
        if theirs.is_symlink() or theirs.is_file():
            theirs.unlink()
        if ours.is_symlink():
            theirs.symlink_to(ours.readlink())
        elif ours.is_dir():
            options += ["--ro-bind", str(ours), str(ours)]
    return options


def _has_programs(disk: Path) -> bool:
    """Return whether a root has programs of its own; otherwise these folders stay empty."""
    places = (disk / "usr", disk / "bin")
    return any(place.is_dir() and not place.is_symlink() and any(place.iterdir()) for place in places)


def _child(reader: FileIO) -> int:
    """Return the process id of the container, as reported by bubblewrap."""
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    said, deadline = b"", time.monotonic() + START_SECONDS
    while b"}" not in said:
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise VirtError(f"{PROGRAM} does not answer within {START_SECONDS:g} s")
        block = reader.read(4096)
        if not block:
            raise VirtError(f"{PROGRAM} exited immediately")
        said += block
    return int(json.loads(said)["child-pid"])


def _program() -> str:
    result = shutil.which(PROGRAM)
    if result is None:
        raise VirtError(f"{PROGRAM} is not installed (Debian: bubblewrap)")
    return result


def _program_of(pid: processes.Pid) -> str | None:
    try:
        return Path(f"/proc/{pid.number}/exe").readlink().name
    except OSError:
        return None
