"""Servers as containers: processes behind bubblewrap, with a root, processes and names of their own.

The root is what the image holds; where that has no programs, the system's own
are there to be read.  Behind the walls runs the image's `/sbin/init`, or else a
shell that waits.  Neither memory nor CPUs are limited.  Their network is the
namespace that their interfaces are in; where networks are not real they have none.
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
from climate.compute.virt import Guest, archive, config_drive, dhcp_client
from climate.compute.virt.containers import bind_mounts
from climate.compute.virt.guest_folders import Homes, image_of, marks
from climate.compute.virt.guest_kinds import Kind, of_programs
from climate.compute.virt.guest_volumes import FOLDER
from climate.compute.virt.process import BANNER, DISK, PAUSE_SECONDS

PROGRAM = "bwrap"
START_SECONDS = 10.0
"""Longest time that bubblewrap may take to build its walls."""

_STEP_SECONDS = 0.005
_MOST_LINKS = 40
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_WALLS = (
    *("--unshare-user", "--unshare-pid", "--unshare-uts", "--unshare-ipc", "--unshare-cgroup-try"),
    *("--uid", "0", "--gid", "0", "--cap-drop", "ALL", "--disable-userns", "--clearenv"),
)
_ALONE = ("--unshare-net",)
# Where the driver runs as root, so does the guest, without a root's rights: what /proc says must not be written to.
_PROC = ("--proc", "/proc", "--remount-ro", "/proc")
_MOUNTS = (*_PROC, "--dev", "/dev", "--tmpfs", "/run", "--tmpfs", "/tmp")  # noqa: S108  (the guest's own)
_MOUNTED = ("proc", "dev", "run", "tmp")
_BORROWED = ("usr", "bin", "lib", "lib32", "lib64", "libx32", "sbin")
_BANNER = f"/run/climate/{BANNER}"
CONFIG = "/run/climate/config"
"""Where a container finds the files of its config drive."""

# As the first process behind the walls it gets only the signals that it asks for.
_PAYLOAD = f"""
trap 'exit 0' TERM
while IFS= read -r line; do printf '%s\\n' "$line"; done < {_BANNER}
if [ "$1" = own ] && [ -x /sbin/init ]; then exec /sbin/init; fi
while :; do read -r _; done
"""


@dataclass(frozen=True)
class Bubble:
    """The body of a guest behind walls; its process is the first one behind them."""

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
        return f"{PROGRAM} cannot work here: {tried.stderr.strip()}" if tried.returncode else None

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
        kind = "own" if _has_programs(home / DISK) else "borrowed"
        walls = _walls(guest, home)
        told, tells = (FileIO(number, mode) for number, mode in zip(os.pipe(), "rw", strict=True))
        with told, tells, homes.open_log(guest.id) as log:
            argv = [_program(), *walls, "--info-fd", str(tells.fileno()), "--as-pid-1", "--"]
            argv += ["/bin/sh", "-c", _PAYLOAD, "climate-server", kind]
            environment = {"PATH": _PATH, **marks(home)}
            netns.inside(
                guest.netns, lambda: processes.spawn(argv, environment, source, log.fileno(), [tells.fileno()])
            )
            tells.close()
            try:
                return homes.started(guest.id, _child(told))
            except VirtError as error:
                raise VirtError(f"{error}{homes.last_words(guest.id)}") from error

    def attach(self, home: Path, guest: Guest, pid: processes.Pid | None) -> None:
        """Bind its volumes into a container that runs; one that starts finds them there."""
        if pid is None:
            return
        there = _bound(pid)
        wanted = {one.id: one for one in guest.volumes}
        for volume_id in sorted(there - set(wanted)):
            bind_mounts.bind(pid.number, f"/{FOLDER}/{volume_id}", None)
        for volume_id in sorted(set(wanted) - there):
            bind_mounts.bind(pid.number, f"/{FOLDER}/{volume_id}", wanted[volume_id].folder())

    def begun(self, pid: processes.Pid) -> None:
        deadline = time.monotonic() + START_SECONDS
        while _program_of(pid) in (None, PROGRAM):
            if processes.state(pid) is None:
                raise VirtError("the container ended at once")
            if time.monotonic() > deadline:
                raise VirtError(f"the container is not there after {START_SECONDS:g} s")
            time.sleep(_STEP_SECONDS)

    def freeze(self, pid: processes.Pid, *, stopped: bool) -> bool:
        deadline = time.monotonic() + PAUSE_SECONDS
        number = signal.SIGSTOP if stopped else signal.SIGCONT
        # Once is not enough: what is being stopped may be making another process.
        while others := [
            one for one in processes.behind(pid) if (processes.state(one) in processes.STOPPED) is not stopped
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
    """The options for the walls of a guest; VirtError when its root would lead something out of it."""
    disk = home / DISK
    options = [*_WALLS, *(_ALONE if guest.netns is None else ())]
    options += ["--hostname", f"server-{guest.id[:8]}", "--bind", str(disk), "/"]
    if not _has_programs(disk):
        options += _borrowed(disk)
    _check_mounted(disk)
    environment = {"PATH": _PATH, "HOME": "/root", **marks(home)}
    options += [word for name, value in environment.items() for word in ("--setenv", name, value)]
    options += [*_MOUNTS, "--ro-bind", str(home / BANNER), _BANNER, "--chdir", "/"]
    if (home / config_drive.FOLDER).is_dir():
        options += ["--ro-bind", str(home / config_drive.FOLDER), CONFIG]
    options += _volumes(guest, disk)
    return options if guest.netns is None else [*options, *_name_servers(home)]


def _check_root(disk: Path) -> None:
    """Return when walls can be built around a root and its shell be run; VirtError tells why they cannot."""
    _check_mounted(disk)
    if _has_programs(disk) and not _has_shell(disk):
        raise VirtError("the image has programs, but no /bin/sh that can be run")


def _check_mounted(disk: Path) -> None:
    """Have the folders that something is mounted on; VirtError when anything else is in their places."""
    for place in (disk / name for name in _MOUNTED):
        if place.is_symlink():
            raise VirtError(f"the image has a link where /{place.name} belongs")
        if place.exists() and not place.is_dir():
            raise VirtError(f"the image has a file where the folder /{place.name} belongs")
        place.mkdir(exist_ok=True)


def _has_shell(disk: Path) -> bool:
    """Whether /bin/sh is a program in a root, with links followed as the guest follows them."""
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
    """The options for the volumes of a guest; VirtError where its root would lead them elsewhere."""
    folder = disk / FOLDER
    if guest.volumes and any(place.is_symlink() for place in (folder, *(folder / one.id for one in guest.volumes))):
        raise VirtError(f"there is a link where /{FOLDER} belongs")
    return [word for one in guest.volumes for word in ("--bind", str(one.folder()), f"/{FOLDER}/{one.id}")]


def _bound(pid: processes.Pid) -> set[str]:
    """The volumes that a container has."""
    lines = Path(f"/proc/{pid.number}/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    places = [Path(line.split(" ")[4]) for line in lines]
    return {place.name for place in places if place.parent == Path("/", FOLDER)}


def _name_servers(home: Path) -> list[str]:
    """The options for what a guest asks about names; none where its root leads /etc/resolv.conf elsewhere."""
    folder = home / DISK / "etc"
    if folder.is_symlink() or (folder / "resolv.conf").is_symlink():
        return []
    return ["--ro-bind", str(dhcp_client.resolv(home)), "/etc/resolv.conf"]


def _borrowed(disk: Path) -> list[str]:
    """The system's programs, to be read; its links are made anew."""
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
    """Whether a root can stand on its own; where programs are borrowed these folders stay empty."""
    places = (disk / "usr", disk / "bin")
    return any(place.is_dir() and not place.is_symlink() and any(place.iterdir()) for place in places)


def _child(told: FileIO) -> int:
    """The number of the first process behind the walls, as bubblewrap tells it."""
    poll = select.poll()
    poll.register(told, select.POLLIN)
    said, deadline = b"", time.monotonic() + START_SECONDS
    while b"}" not in said:
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise VirtError(f"{PROGRAM} says nothing for {START_SECONDS:g} s")
        block = told.read(4096)
        if not block:
            raise VirtError(f"{PROGRAM} ended at once")
        said += block
    return int(json.loads(said)["child-pid"])


def _program() -> str:
    found = shutil.which(PROGRAM)
    if found is None:
        raise VirtError(f"{PROGRAM} is not installed (Debian: bubblewrap)")
    return found


def _program_of(pid: processes.Pid) -> str | None:
    try:
        return Path(f"/proc/{pid.number}/exe").readlink().name
    except OSError:
        return None
