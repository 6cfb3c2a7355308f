"""Where guests live: a folder for each, with the process that it is and what it has printed."""

import contextlib
import ctypes
import hashlib
import os
import shutil
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import ParamSpec, TypeVar

from climate.compute.errors import VirtError
from climate.compute.linux import processes as pids
from climate.compute.models.server import is_id
from climate.compute.virt import Guest, State

_P = ParamSpec("_P")
_R = TypeVar("_R")

CONSOLE_BYTES = 100 * 1024
LOG_BYTES = 1 << 20
"""A log that has grown beyond this is cut: a guest prints what it likes, and the disk is for all of them."""

MARK = "CLIMATE_SERVER"
"""In a guest's environment: its id, so that it is found when its pid file was never written."""

KILL_SECONDS = 10.0
"""Longest time that the system may take to end a process."""

KEPT_IN = "CLIMATE_SERVER_KEPT"
"""In a guest's environment: a digest of the folder of its driver, which does not tell where that is."""

PID, CONSOLE = "pid", "console.log"

PREPARED = "prepared"
"""There from the end of a guest's preparation until its first start."""


def as_virt_error(verb: Callable[_P, _R]) -> Callable[_P, _R]:
    """The verb, with the operating system's complaints in the words of the driver's port."""

    def asked(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return verb(*args, **kwargs)
        except OSError as error:
            raise VirtError(f"{verb.__name__}: {error.strerror or error}") from error

    return asked


def image_of(guest: Guest) -> Path | None:
    """What a guest begins with; None: nothing.  VirtError when its image is not there any more."""
    if guest.image is not None and not guest.image.exists():
        raise VirtError(f"the image {guest.image.name} that it is made from is gone")
    return guest.image


def marks(home: Path) -> dict[str, str]:
    """What the environment of a guest's process says, so that it is found: `home` is the guest's folder."""
    return {MARK: home.name, KEPT_IN: hashlib.sha256(bytes(home.parent)).hexdigest()[:16]}


@dataclass(frozen=True)
class Homes:
    """The folders of one driver's guests, below `folder`."""

    folder: Path

    def of(self, server_id: str) -> Path:
        """The folder of a guest, there or not; VirtError for what is no id."""
        if not is_id(server_id):
            raise VirtError(f"{server_id!r} is not the id of a server")
        return self.folder / server_id

    def ids(self) -> list[str]:
        """The guests that there is anything of."""
        if not self.folder.is_dir():
            return []
        return [home.name for home in self.folder.iterdir() if is_id(home.name) and home.is_dir()]

    def pid(self, server_id: str) -> pids.Pid | None:
        """The live process of a guest."""
        pid = pids.read(self.of(server_id) / PID)
        return pid if pids.state(pid) else None

    def make(self, server_id: str) -> Path:
        """The folder of a guest about to be prepared or started; whatever is left of an earlier start is ended."""
        home = self.of(server_id)
        known = home.is_dir()
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if known:
            self.end(server_id)
            (home / PREPARED).unlink(missing_ok=True)
        return home

    def prepared(self, server_id: str) -> None:
        """Record that a guest has all that its first start needs, once a crash of the host cannot take it away."""
        home = self.of(server_id)
        handle = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _sync_file_system(handle)
        finally:
            os.close(handle)
        (home / PREPARED).touch()

    def at_rest(self, server_id: str, disk: str) -> State:
        """What a guest without a process is, PREPARED or DEAD; `disk` is the name of its disk in its folder."""
        home = self.of(server_id)
        return State.PREPARED if (home / PREPARED).exists() and (home / disk).exists() else State.DEAD

    def started(self, server_id: str, number: int) -> pids.Pid:
        """Record the process that a guest is from now on."""
        pid = pids.of(number)
        if pid is None:
            raise VirtError(f"the process of server {server_id} ended at once{self.last_words(server_id)}")
        try:
            pids.write(self.of(server_id) / PID, pid)
        except OSError:
            # Its folder is gone: somebody else has deleted it meanwhile, and nobody would find the process.
            kill([pid])
            raise
        return pid

    def end(self, server_id: str) -> None:
        """End the process of a guest by force, or those that look like it when the one that is recorded has ended.

        A server may run in the folder of another service of this machine: that one is let be.
        """
        home = self.of(server_id)
        recorded = pids.read(home / PID)
        others = pids.carrying(marks(home)) if pids.state(recorded) is None else ()
        kill([*((recorded,) if recorded else ()), *others])

    def remove(self, server_id: str) -> None:
        """Leave nothing of a guest."""
        pids.reap_ended()
        home = self.of(server_id)
        if home.is_dir():
            self.end(server_id)
            _remove(home)

    def open_log(self, server_id: str, name: str = CONSOLE) -> FileIO:
        """A log in the folder of a guest, to be written at its end."""
        return FileIO(self.of(server_id) / name, "ab")

    def console(self, server_id: str, lines: int | None, name: str = CONSOLE) -> str:
        """The last lines that a guest printed; None: all, up to 100 KiB."""
        try:
            with (self.of(server_id) / name).open("rb") as log:
                log.seek(0, os.SEEK_END)
                log.seek(max(0, log.tell() - CONSOLE_BYTES))
                text = log.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return ""
        return text if lines is None else "".join(text.splitlines(keepends=True)[-lines:] if lines > 0 else ())

    def trim(self, *names: str) -> None:
        """Cut the logs of these names down to what `console` tells, where they have grown beyond LOG_BYTES.

        Whoever writes them always writes at their end, wherever that is.  What is
        printed in the moment of the cut may be lost.
        """
        for log in (self.of(server_id) / name for server_id in self.ids() for name in names):
            with contextlib.suppress(FileNotFoundError):
                if log.stat().st_size > LOG_BYTES:
                    _cut(log)

    def last_words(self, server_id: str, name: str = CONSOLE) -> str:
        """`: ` and the last line that was printed; nothing when there is none."""
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
    """Write down what a file system, of which a file is open, has not written yet; OSError when that fails."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "syncfs"):  # only Linux knows it
        os.sync()
    elif libc.syncfs(handle) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def kill(processes: Iterable[pids.Pid]) -> None:
    """End processes by force; VirtError when one does not."""
    for pid in processes:
        pids.send(pid, signal.SIGKILL)
        if not pids.wait_gone(pid, KILL_SECONDS):
            raise VirtError(f"process {pid.number} does not end")


def _remove(home: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        try:
            shutil.rmtree(home)
        except PermissionError:
            _unlock(home)
            shutil.rmtree(home)


def _unlock(home: Path) -> None:
    """Open folders that a guest has locked against everybody."""
    for place, names, _ in os.walk(home):
        for folder in (Path(place, name) for name in names):
            if not folder.is_symlink():
                folder.chmod(0o700)
