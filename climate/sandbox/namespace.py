"""Private parts of a sandbox: processes, /run with the network namespaces, /dev/shm, and a loopback."""

import os
from collections.abc import Iterable
from pathlib import Path

from climate.sandbox import syscalls

RUN = Path("/run")
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where the C library puts it
MARK = RUN / "climate-sandbox"
"""File that exists only in a sandbox."""


def furnish(paths: Iterable[Path]) -> None:
    """Set up the new namespaces of this process.

    `paths` below /run or /dev/shm stay reachable.  OSError if the kernel refuses something.
    """
    needed = list(paths)
    syscalls.mount("none", "/", None, syscalls.RECURSIVE | syscalls.PRIVATE)
    syscalls.mount("proc", "/proc", "proc", syscalls.NO_SUID | syscalls.NO_DEVICES | syscalls.NO_PROGRAMS)
    _cover(RUN, "755", _kept(RUN, needed) - {"netns"})
    (RUN / "netns").mkdir()
    MARK.touch()
    # PostgreSQL's shared memory would otherwise stay on the machine after a kill.
    if SHARED_MEMORY.is_dir():
        _cover(SHARED_MEMORY, "1777", _kept(SHARED_MEMORY, needed))
    syscalls.loopback_up()


def _cover(folder: Path, mode: str, kept: Iterable[str]) -> None:
    """Mount an empty folder that vanishes with the sandbox, with these entries of the old one."""
    here = os.getcwd()
    # After the mount, only a process with this working directory reaches the old folder.
    os.chdir(folder)
    syscalls.mount("tmpfs", str(folder), "tmpfs", syscalls.NO_SUID | syscalls.NO_DEVICES, f"mode={mode}")
    for name in sorted(kept):
        target = folder / name
        target.mkdir() if Path(name).is_dir() else target.touch()
        syscalls.mount(f"./{name}", str(target), None, syscalls.BIND | syscalls.RECURSIVE)
    os.chdir(here)


def _kept(folder: Path, paths: Iterable[Path]) -> set[str]:
    """Return the entries of this folder that lead to one of these paths."""
    below = {path for given in paths for path in (given.absolute(), given.resolve()) if path.is_relative_to(folder)}
    names = {path.relative_to(folder).parts[0] for path in below if path != folder}
    return {name for name in names if (folder / name).exists()}
