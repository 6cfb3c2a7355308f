"""Guests' folders, each with the guest's pid file and console log."""

import contextlib
import ctypes
import hashlib
import os
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import ParamSpec, TypeVar

from climate.compute.errors import VirtError
from climate.compute.linux import folder_removal
from climate.compute.linux import processes as pids
from climate.compute.models.server import is_id
from climate.compute.virt import Guest, State

_P = ParamSpec("_P")
_R = TypeVar("_R")

CONSOLE_BYTES = 100 * 1024
LOG_BYTES = 1 << 20
"""Size in bytes above which a console log is cut."""

MARK = "CLIMATE_SERVER"
"""Environment variable with the guest's id, by which its process is found without a pid file."""

KILL_SECONDS = 10.0
"""Seconds for the kernel to end a killed process."""

KEPT_IN = "CLIMATE_SERVER_KEPT"
"""Environment variable with a digest of the path of the driver's folder."""

PID, CONSOLE = "pid", "console.log"

PREPARED = "prepared"
"""Marker file between the end of a guest's preparation and its first start."""


def as_virt_error(verb: Callable[_P, _R]) -> Callable[_P, _R]:
    """Convert OSError of a driver's method to VirtError."""

    def asked(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return verb(*args, **kwargs)
        except OSError as error:
            raise VirtError(f"{verb.__name__}: {error.strerror or error}") from error

    return asked


def image_of(guest: Guest) -> Path | None:
    """Return the image of a guest; None: none. Raise VirtError if the file is missing."""
    if guest.image is not None and not guest.image.exists():
        raise VirtError(f"the image file {guest.image.name} does not exist")
    return guest.image


def marks(home: Path) -> dict[str, str]:
    """Return the environment variables that identify a guest's process; `home` is the guest's folder."""
    return {MARK: home.name, KEPT_IN: hashlib.sha256(bytes(home.parent)).hexdigest()[:16]}


@dataclass(frozen=True)
class Homes:
    """Folders of one driver's guests, below `folder`."""

    folder: Path

    def of(self, server_id: str) -> Path:
        """Return the folder of a guest, which may not exist. Raise VirtError for an invalid id."""
        if not is_id(server_id):
            raise VirtError(f"{server_id!r} is not a server's id")
        return self.folder / server_id

    def ids(self) -> list[str]:
        """Return the ids of the guests with a folder."""
        if not self.folder.is_dir():
            return []
        return [home.name for home in self.folder.iterdir() if is_id(home.name) and home.is_dir()]

    def pid(self, server_id: str) -> pids.Pid | None:
        """Return the live process of a guest."""
        pid = pids.read(self.of(server_id) / PID)
        return pid if pids.state(pid) else None

    def prepare(self, server_id: str) -> Path:
        """Return the folder of a guest before its preparation or start; processes of an earlier start are ended."""
        home = self.of(server_id)
        known = home.is_dir()
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if known:
            self.end(server_id)
            (home / PREPARED).unlink(missing_ok=True)
        return home

    def prepared(self, server_id: str) -> None:
        """Record that a guest is prepared, synced to disk."""
        home = self.of(server_id)
        handle = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _sync_file_system(handle)
        finally:
            os.close(handle)
        (home / PREPARED).touch()

    def at_rest(self, server_id: str, disk: str) -> State:
        """Return the state of a guest without a process, PREPARED or DEAD; `disk` is the name of its disk file."""
        home = self.of(server_id)
        return State.PREPARED if (home / PREPARED).exists() and (home / disk).exists() else State.DEAD

    def started(self, server_id: str, number: int, log: str = CONSOLE) -> pids.Pid:
        """Record the process of a guest. Raise VirtError with the last line of `log` if it has exited."""
        pid = pids.of(number)
        if pid is None:
            raise VirtError(f"the process of server {server_id} exited immediately{self.last_words(server_id, log)}")
        try:
            pids.write(self.of(server_id) / PID, pid)
        except OSError:
            # Another worker deleted the guest meanwhile; its process would never be found again.
            kill([pid])
            raise
        return pid

    def end(self, server_id: str) -> None:
        """Kill the process of a guest, or processes marked as the guest's if the recorded one has ended.

        A process that runs in the folder of another service on this machine is not killed.
        """
        home = self.of(server_id)
        recorded = pids.read(home / PID)
        others = pids.carrying(marks(home)) if pids.state(recorded) is None else ()
        kill([*((recorded,) if recorded else ()), *others])

    def remove(self, server_id: str) -> None:
        """Delete a guest's folder after its processes."""
        pids.reap_ended()
        home = self.of(server_id)
        if home.is_dir():
            self.end(server_id)
            folder_removal.remove(home)

    def discard(self, server_id: str, disk: str) -> None:
        """Delete a disk, a file or a folder, of a guest that does not run."""
        path = self.of(server_id) / disk
        if path.is_dir():
            folder_removal.remove(path)
        path.unlink(missing_ok=True)

    def open_log(self, server_id: str, name: str = CONSOLE) -> FileIO:
        """Open a log in the folder of a guest for appending."""
        return FileIO(self.of(server_id) / name, "ab")

    def console(self, server_id: str, lines: int | None, name: str = CONSOLE) -> str:
        """Return the last lines of a guest's console; None: all, up to 100 KiB."""
        try:
            with (self.of(server_id) / name).open("rb") as log:
                log.seek(0, os.SEEK_END)
                log.seek(max(0, log.tell() - CONSOLE_BYTES))
                text = log.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return ""
        return text if lines is None else "".join(text.splitlines(keepends=True)[-lines:] if lines > 0 else ())

    def trim(self, *names: str) -> None:
        """Cut logs of these names that exceed LOG_BYTES to what `console` returns.

        Writers append, so they continue at the new end. Output during the cut may be lost.
        """
        for log in (self.of(server_id) / name for server_id in self.ids() for name in names):
            with contextlib.suppress(FileNotFoundError):
                if log.stat().st_size > LOG_BYTES:
                    _cut(log)

    def last_words(self, server_id: str, name: str = CONSOLE) -> str:
        """Return `: ` and the last console line, or an empty string."""
        said = self.console(server_id, 1, name).strip()
        return f": {said}" if said else ""


def _cut(log: Path) -> None:
    with FileIO(log, "rb+") as file:
        file.seek(-CONSOLE_BYTES, os.SEEK_END)
        kept = file.read(CONSOLE_BYTES)
        file.truncate(0)
    with FileIO(log, "ab") as file:
        file.write(kept)


def _sync_file_system(handle: int) -> None:
    """Sync the file system of an open file. Raise OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "syncfs"):  # syncfs exists only on Linux
        os.sync()
    elif libc.syncfs(handle) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def kill(processes: Iterable[pids.Pid]) -> None:
    """Kill processes. Raise VirtError if one does not end."""
    for pid in processes:
        pids.send(pid, signal.SIGKILL)
        if not pids.wait_gone(pid, KILL_SECONDS):
            raise VirtError(f"process {pid.number} did not end after SIGKILL")
