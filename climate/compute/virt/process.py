"""Servers as plain processes: each in a session of its own, a RESERVED one held at its gate.

A folder per server: `pid` (number and start time), `gate` (a FIFO, there while
it is held), `banner`, `console.log`.  The process holds its gate open itself,
for reading and writing: it waits on through the death of whoever made it, and
any process can open the gate.
"""

import contextlib
import os
import shutil
import signal
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

from climate.compute.errors import VirtError
from climate.compute.host import NodeSpec
from climate.compute.virt import Guest, State, pids

_P = ParamSpec("_P")
_R = TypeVar("_R")

PAUSE_SECONDS = 5.0
"""Longest time that the system may take to stop a process or let it go on."""

CONSOLE_BYTES = 100 * 1024
MARK = "CLIMATE_SERVER"

# Fixed and harmless: nothing of a user's is ever run, only printed.  It neither forks nor replaces itself, so that
# it can be paused and recognised at any moment.  Its input is a FIFO that it holds open itself: it never ends.
_PROGRAM = """
cd "$1" || exit 1
if [ -p gate ]; then read -r _; fi
while IFS= read -r line; do printf '%s\\n' "$line"; done < banner
while :; do read -r _; done
"""

_NOT_IN_IMAGES = frozenset({"pid", "pid.new", "gate"})


def _as_virt_error(verb: Callable[_P, _R]) -> Callable[_P, _R]:
    """The verb, with the operating system's complaints in the words of the driver's port."""

    def asked(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return verb(*args, **kwargs)
        except OSError as error:
            raise VirtError(f"{verb.__name__}: {error.strerror or error}") from error

    return asked


@dataclass(frozen=True)
class ProcessDriver:
    """Guests live in folders under `folder`; a guest that is asked to stop has `stop_seconds` to do so."""

    folder: Path
    stop_seconds: float = 10.0

    def nodes(self) -> Sequence[NodeSpec]:
        return ()

    def remembers(self, node: str) -> bool:
        return True

    @_as_virt_error
    def hold(self, guest: Guest) -> None:
        if self._state(guest.id) is not State.HELD:
            self._spawn(guest, held=True)

    @_as_virt_error
    def run(self, guest: Guest) -> None:
        state = self._state(guest.id)
        if state is State.RUNNING or (state is State.HELD and self._open_gate(guest.id)):
            return
        if state is State.PAUSED:
            self.resume(guest)
        else:
            self._spawn(guest, held=False)

    @_as_virt_error
    def stop(self, guest: Guest) -> None:
        pid = self._pid(guest.id)
        if pid is None:
            return
        pids.signal_group(pid, signal.SIGTERM)
        pids.signal_group(pid, signal.SIGCONT)
        if not pids.wait_gone(pid, self.stop_seconds):
            self._kill(pid)

    @_as_virt_error
    def suspend(self, guest: Guest) -> None:
        self._pause(guest, signal.SIGSTOP, stopped=True)

    @_as_virt_error
    def resume(self, guest: Guest) -> None:
        self._pause(guest, signal.SIGCONT, stopped=False)

    @_as_virt_error
    def snapshot(self, guest: Guest, target: Path) -> None:
        home = self._home(guest.id)
        if not home.is_dir():
            raise VirtError(f"there is nothing of server {guest.id}")
        draft = target.with_suffix(".new")
        with tarfile.open(draft, "w:gz") as archive:
            for path in sorted(home.iterdir()):
                if path.name not in _NOT_IN_IMAGES:
                    archive.add(path, arcname=path.name)
        draft.replace(target)

    @_as_virt_error
    def delete(self, server_id: str) -> None:
        home = self._home(server_id)
        if not home.is_dir():
            return
        pid = self._pid(server_id) or pids.carrying(MARK, server_id)
        if pid is not None:
            self._kill(pid)
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(home)

    def states(self) -> Mapping[str, State]:
        if not self.folder.is_dir():
            return {}
        return {home.name: self._state(home.name) or State.DEAD for home in self.folder.iterdir() if home.is_dir()}

    @_as_virt_error
    def console(self, guest: Guest, lines: int | None) -> str:
        try:
            with (self._home(guest.id) / "console.log").open("rb") as log:
                log.seek(0, os.SEEK_END)
                log.seek(max(0, log.tell() - CONSOLE_BYTES))
                text = log.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return ""
        return text if lines is None else "".join(text.splitlines(keepends=True)[-lines:] if lines > 0 else ())

    def _home(self, server_id: str) -> Path:
        return self.folder / server_id

    def _pid(self, server_id: str) -> pids.Pid | None:
        pid = pids.read(self._home(server_id) / "pid")
        return pid if pids.state(pid) else None

    def _state(self, server_id: str) -> State | None:
        home = self._home(server_id)
        pid = pids.read(home / "pid")
        if pid is None:
            return None
        letter = pids.state(pid)
        if letter is None:
            pids.reap(pid)
            return State.DEAD
        if (home / "gate").exists():
            return State.HELD
        return State.PAUSED if letter in pids.STOPPED else State.RUNNING

    def _pause(self, guest: Guest, number: signal.Signals, *, stopped: bool) -> None:
        pid = self._pid(guest.id)
        if pid is None:
            raise VirtError(f"server {guest.id} is not running")
        pids.signal_group(pid, number)
        if not pids.wait_stopped(pid, stopped, PAUSE_SECONDS):
            raise VirtError(f"process {pid.number} does not obey {number.name}")

    def _kill(self, pid: pids.Pid) -> None:
        pids.signal_group(pid, signal.SIGKILL)
        if not pids.wait_gone(pid, self.stop_seconds):
            raise VirtError(f"process {pid.number} does not end")

    def _spawn(self, guest: Guest, *, held: bool) -> None:
        home = self._home(guest.id)
        known = home.is_dir()
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Whoever made it before may have died between the start and the pid file.
        stray = (self._pid(guest.id) or pids.carrying(MARK, guest.id)) if known else None
        if stray is not None:
            self._kill(stray)
        (home / "banner").write_text(_banner(guest), encoding="utf-8")
        pid = pids.of(_start(guest.id, home, held=held))
        if pid is None:
            raise VirtError(f"the process of server {guest.id} ended at once")
        pids.write(home / "pid", pid)

    def _open_gate(self, server_id: str) -> bool:
        """Let a held guest go on; False when it has died meanwhile."""
        gate = self._home(server_id) / "gate"
        try:
            handle = os.open(gate, os.O_WRONLY | os.O_NONBLOCK)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        try:
            os.write(handle, b"\n")
        finally:
            os.close(handle)
        gate.unlink(missing_ok=True)
        return True


def _start(server_id: str, home: Path, *, held: bool) -> int:
    """Start the program, at a closed gate or past it; its process number."""
    gate = home / "gate"
    gate.unlink(missing_ok=True)
    os.mkfifo(gate, 0o600)
    source = os.open(gate, os.O_RDWR)
    if not held:
        gate.unlink()
    log = os.open(home / "console.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        return os.posix_spawn(
            "/bin/sh",
            ["sh", "-c", _PROGRAM, "climate-server", str(home)],
            {"PATH": "/usr/bin:/bin", MARK: server_id},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, source, 0),
                (os.POSIX_SPAWN_DUP2, log, 1),
                (os.POSIX_SPAWN_DUP2, log, 2),
            ],
            setsid=True,
        )
    finally:
        os.close(source)
        os.close(log)


def _banner(guest: Guest) -> str:
    lines = [f"climate: server {guest.name} ({guest.id}) starts on {guest.node}"]
    lines += [f"climate: eth{place} has address {address}" for place, address in enumerate(guest.addresses)]
    return "\n".join([*lines, "climate: boot finished", ""])
