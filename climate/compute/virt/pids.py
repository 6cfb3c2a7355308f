"""Telling processes apart: a number is used again, a number with a start time is not."""

import contextlib
import os
import select
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_GONE = frozenset("ZX")
_STEP_SECONDS = 0.005

STOPPED = frozenset("Tt")
"""The kernel's letters for a process that was stopped."""


@dataclass(frozen=True, slots=True)
class Pid:
    """A process, known for certain."""

    number: int
    started: str

    def __str__(self) -> str:
        return f"{self.number} {self.started}"


def read(path: Path) -> Pid | None:
    """The process that a pid file names; None when there is no such file or it is damaged."""
    try:
        number, started = path.read_text(encoding="ascii").split(maxsplit=1)
        return Pid(int(number), started.strip())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None


def write(path: Path, pid: Pid) -> None:
    """Write a pid file in one step."""
    draft = path.with_suffix(".new")
    draft.write_text(f"{pid}\n", encoding="ascii")
    draft.replace(path)


def of(number: int) -> Pid | None:
    """The live process of that number."""
    found = _stat(number)
    return Pid(number, found[1]) if found and found[0] not in _GONE else None


def state(pid: Pid | None) -> str | None:
    """The kernel's letter for what the process does; None when it is gone."""
    found = _stat(pid.number) if pid else None
    if pid is None or found is None or found[1] != pid.started or found[0] in _GONE:
        return None
    return found[0]


def carrying(variable: str, value: str) -> Pid | None:
    """The live process that has `variable=value` in its environment."""
    wanted = f"{variable}={value}".encode()
    bearers = (folder for folder in _PROC.glob("[0-9]*") if wanted in _environment(folder))
    return next((pid for folder in bearers if (pid := of(int(folder.name)))), None)


def _environment(folder: Path) -> list[bytes]:
    """What a process was started with; nothing when it is gone or another user's."""
    try:
        return (folder / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def signal_group(pid: Pid, number: signal.Signals) -> None:
    """Send a signal to the process and all of its group; nothing when it is gone."""
    if state(pid) is not None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid.number, number)


def wait_gone(pid: Pid, seconds: float) -> bool:
    """Wait until the process has ended; False when it still lives after so many seconds."""
    if state(pid) is not None:
        _wait(pid, seconds)
    reap(pid)
    return state(pid) is None


def wait_stopped(pid: Pid, stopped: bool, seconds: float) -> bool:
    """Wait until the process is stopped, or not any more; False when that took too long or it has ended."""
    deadline = time.monotonic() + seconds
    while (letter := state(pid)) is not None and (letter in STOPPED) is not stopped:
        if time.monotonic() >= deadline:
            return False
        time.sleep(_STEP_SECONDS)
    return letter is not None


def reap(pid: Pid) -> None:
    """Clear away the remains of an ended process, when it was a child of this one."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid.number, os.WNOHANG)


def _wait(pid: Pid, seconds: float) -> None:
    try:
        handle = os.pidfd_open(pid.number)
    except (AttributeError, OSError):
        deadline = time.monotonic() + seconds
        while state(pid) is not None and time.monotonic() < deadline:
            time.sleep(_STEP_SECONDS)
        return
    try:
        select.select([handle], [], [], seconds)
    finally:
        os.close(handle)


def _stat(number: int) -> tuple[str, str] | None:
    if not _PROC.joinpath("self").exists():
        return _asked(number)
    try:
        # The second field is the program's name in parentheses, and may hold anything.
        fields = (_PROC / str(number) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return fields[0], fields[19]


def _asked(number: int) -> tuple[str, str] | None:
    answer = subprocess.run(  # noqa: S603  (a number is all that goes in)
        ["/bin/ps", "-o", "stat=,lstart=", "-p", str(number)], capture_output=True, text=True, check=False
    ).stdout.split(maxsplit=1)
    return (answer[0][0], answer[1].strip()) if len(answer) == 2 else None
