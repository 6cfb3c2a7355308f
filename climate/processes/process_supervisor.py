"""Supervisor of one command: ends all of its processes when the caller or the time limit ends.

Run as a file, hence with the standard library only: `python -I process_supervisor.py RUN_ID SECONDS COMMAND...`. The
environment has that id of the run in CLIMATE_RUN_ID, and every process that the command starts inherits it. The
standard input is a pipe: a line starts the command, and the end of the pipe is the end of the caller. The standard
output gets one line when no process of the run is left: `ended STATUS`, `timeout`, `abandoned` or `failed REASON`. The
command writes to the standard error.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

RUN_ID = "CLIMATE_RUN_ID"
"""Environment variable that all processes of a run have."""

_PROC = Path("/proc")
_PR_SET_CHILD_SUBREAPER = 36
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.01, 0.5
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)


def started_at(pid: int) -> str:
    """Return the start time of a living process in clock ticks since boot; empty when it has ended.

    Process ids are reused; an id with this time is unique.
    """
    fields = _fields(pid)
    return fields[19] if fields and fields[0] not in "ZX" else ""


def carriers(run_id: str) -> Iterator[int]:
    """Return the living processes of a run, its supervisor among them."""
    wanted = f"{RUN_ID}={run_id}".encode()
    for pid in _pids():
        with contextlib.suppress(OSError):
            if wanted in (_PROC / str(pid) / "environ").read_bytes().split(b"\0") and started_at(pid):
                yield pid


def kill_run(run_id: str, seconds: float) -> bool:
    """Kill all processes of a run; return whether none is left after so many seconds."""
    return _kill_until_none(lambda: carriers(run_id), time.monotonic() + seconds)


def _kill_until_none(living: Callable[[], Iterable[int]], deadline: float) -> bool:
    pause = _SHORTEST_PAUSE
    while left := set(living()):
        for pid in left:
            # Another user's process, such as one behind sudo, cannot be killed, so the supervisor waits for it.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
    return True


def supervise(run_id: str, command: list[str], seconds: float) -> str:
    """Run a command until it, its time limit or its caller ends; return the outcome when no process is left."""
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    for number in _IGNORED:  # through a handler: a command would inherit ignored signals
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(wake_write)
    with contextlib.suppress(OSError, AttributeError):  # only Linux has it
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if not os.read(0, 1):
        return "abandoned"
    try:
        child = subprocess.Popen(  # noqa: S603 - there is no shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno(),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return f"failed {type(error).__name__}"
    outcome = _outcome(child, wake_read, time.monotonic() + seconds)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    _kill_until_none(lambda: _remaining(run_id), float("inf"))
    return outcome


def _outcome(child: "subprocess.Popen[bytes]", wake: int, deadline: float) -> str:
    while (left := deadline - time.monotonic()) > 0:
        ready, _, _ = select.select([0, wake], [], [], left)
        if wake in ready:
            os.read(wake, 4096)
        if child.poll() is not None:
            return f"ended {child.returncode}"
        if 0 in ready and not os.read(0, 4096):
            return "abandoned"
    return "timeout"


def _remaining(run_id: str) -> set[int]:
    """Return the living processes of the run except the supervisor: descendants, and those with its environment."""
    _reap()
    own = os.getpid()
    fields = {pid: result for pid in _pids() if (result := _fields(pid)) and result[0] not in "ZX"}
    family = {own}
    while more := {pid for pid, result in fields.items() if int(result[1]) in family} - family:
        family |= more
    return (family | set(carriers(run_id))) - {own}


def _reap() -> None:
    """Reap children that have ended, including adopted ones."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _pids() -> list[int]:
    return [int(folder.name) for folder in _PROC.glob("[0-9]*")]


def _fields(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on; the name before them may hold any character."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return []
    return text.rpartition(")")[2].split()


def main(arguments: list[str]) -> None:
    """Supervise the command in `arguments`, after the id of its run and its time limit in seconds."""
    outcome = supervise(arguments[0], arguments[2:], float(arguments[1]))
    with contextlib.suppress(BrokenPipeError):
        os.write(1, f"{outcome}\n".encode())


if __name__ == "__main__":
    main(sys.argv[1:])
