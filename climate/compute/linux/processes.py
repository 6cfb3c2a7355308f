"""Process identity: a process id is reused, a process id with a start time is not."""

import contextlib
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_GONE = frozenset("ZX")
_STEP_SECONDS = 0.005

STOPPED = frozenset("Tt")
"""The kernel's letters for a stopped process."""

_OCTAL = re.compile(r"\\([0-7]{3})")
"""A sign in a mount point that mountinfo spells by its number, such as a blank."""

_PARENT, _SESSION = 1, 3
_ORDINARY = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGPIPE,
    signal.SIGCHLD,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
"""Signals that a worker may ignore and its guests must not."""


@dataclass(frozen=True, slots=True)
class Pid:
    """A process, identified by its number and start time."""

    number: int
    started: str

    def __str__(self) -> str:
        return f"{self.number} {self.started}"


def read(path: Path) -> Pid | None:
    """Return the process that a pid file names; None if there is no such file or it is damaged."""
    try:
        return parsed(path.read_text(encoding="ascii"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None


def parsed(text: str) -> Pid | None:
    """Return the process of a serialised text; None if the text is damaged."""
    try:
        number, started = text.split(maxsplit=1)
        return Pid(int(number), started.strip())
    except ValueError:
        return None


def write(path: Path, pid: Pid) -> None:
    """Write a pid file atomically."""
    draft = path.with_suffix(".new")
    draft.write_text(f"{pid}\n", encoding="ascii")
    draft.replace(path)


def of(number: int) -> Pid | None:
    """Return the live process of that number."""
    result = _stat(number)
    return Pid(number, result[1]) if result and result[0] not in _GONE else None


def state(pid: Pid | None) -> str | None:
    """Return the kernel's letter for the state of the process; None if it has ended."""
    result = _stat(pid.number) if pid else None
    if pid is None or result is None or result[1] != pid.started or result[0] in _GONE:
        return None
    return result[0]


def carrying(marks: Mapping[str, str]) -> Iterator[Pid]:
    """Yield the live processes that have all of these variables in their environment."""
    wanted = {f"{variable}={value}".encode() for variable, value in marks.items()}
    bearers = (folder for folder in _PROC.glob("[0-9]*") if wanted.issubset(_environment(folder)))
    return (pid for folder in bearers if (pid := of(int(folder.name))))


def spawn(argv: list[str], env: Mapping[str, str], source: int, log: int, passed: Sequence[int] = ()) -> int:
    """Start a program in a session of its own; return its process number.

    It reads `source`, writes to `log`, and inherits only the files of `passed`, under their numbers.
    """
    reap_ended()
    kept = [(os.POSIX_SPAWN_DUP2, number, number) for number in passed]
    closed = [(os.POSIX_SPAWN_CLOSE, number) for number in _inheritable() if number not in passed]
    return os.posix_spawn(
        argv[0],
        argv,
        env,
        file_actions=[
            (os.POSIX_SPAWN_DUP2, source, 0),
            (os.POSIX_SPAWN_DUP2, log, 1),
            (os.POSIX_SPAWN_DUP2, log, 2),
            *closed,
            *kept,
        ],
        setsid=True,
        setsigmask=(),
        setsigdef=_ORDINARY,
    )


def _inheritable() -> Iterator[int]:
    """Yield the files, besides the standard ones, that a child would inherit because this process inherited them."""
    for number in (int(name) for name in os.listdir("/dev/fd")):
        with contextlib.suppress(OSError):
            if number > 2 and os.get_inheritable(number):
                yield number


def _environment(folder: Path) -> list[bytes]:
    """Return the environment of a process; empty if it has ended or belongs to another user."""
    try:
        return (folder / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def send(pid: Pid, number: signal.Signals) -> None:
    """Send a signal to the process, and to its group if it leads one; nothing if it has ended."""
    if state(pid) is not None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid.number, number) if os.getpgid(pid.number) == pid.number else os.kill(pid.number, number)


def send_one(pid: Pid, number: signal.Signals) -> None:
    """Send a signal to the process alone; nothing if it has ended."""
    if state(pid) is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid.number, number)


def descendants(first: Pid) -> Iterator[Pid]:
    """Yield the processes in the pid namespace of `first`: all its descendants, even orphaned ones."""
    wanted = _numbering(first.number)
    return (pid for number in _numbers() if wanted and _numbering(number) == wanted and (pid := of(number)))


def _numbering(number: int) -> str | None:
    try:
        return os.readlink(_PROC / str(number) / "ns" / "pid")
    except OSError:
        return None


def wait_gone(pid: Pid, seconds: float) -> bool:
    """Wait until the process has ended with all of its threads; False if it still lives after so many seconds.

    The last of its threads may have its files open, and locked, after the first has ended.
    """
    result = _stat(pid.number)
    if result is not None and result[1] == pid.started:
        _wait(pid, seconds)
    reap(pid)
    return state(pid) is None


def wait_stopped(pid: Pid, stopped: bool, seconds: float) -> bool:
    """Wait until the process is stopped, or continued; False on a timeout or if it has ended."""
    deadline = time.monotonic() + seconds
    while (letter := state(pid)) is not None and (letter in STOPPED) is not stopped:
        if time.monotonic() >= deadline:
            return False
        time.sleep(_STEP_SECONDS)
    return letter is not None


def reap(pid: Pid) -> None:
    """Reap an ended process if it was a child of this one."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid.number, os.WNOHANG)


def reap_ended() -> None:
    """Reap the ended children of this process that led sessions, which are guests."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) and _leads(ended.si_pid):
            os.waitpid(ended.si_pid, os.WNOHANG)
        if ended:  # a child of another part, which hides those behind it
            for number in filter(_leads, _numbers()):
                os.waitpid(number, os.WNOHANG)


def _leads(number: int) -> bool:
    """Return whether a process is an ended child of this one that led a session."""
    result = _fields(number)
    return result is not None and (result[0], result[_PARENT], result[_SESSION]) == ("Z", str(os.getpid()), str(number))


def _numbers() -> Iterator[int]:
    return (int(folder.name) for folder in _PROC.glob("[0-9]*"))


def _wait(pid: Pid, seconds: float) -> None:
    try:
        handle = os.pidfd_open(pid.number)
    except (AttributeError, OSError):
        deadline = time.monotonic() + seconds
        while state(pid) is not None and time.monotonic() < deadline:
            time.sleep(_STEP_SECONDS)
        return
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        poll.poll(seconds * 1000)
    finally:
        os.close(handle)


def _stat(number: int) -> tuple[str, str] | None:
    if not _PROC.joinpath("self").exists():
        return _from_ps(number)
    fields = _fields(number)
    return (fields[0], fields[19]) if fields else None


def _fields(number: int) -> list[str] | None:
    """Return the kernel's fields of a process, from its state on."""
    try:
        # The second field is the program's name in parentheses, and may hold any character.
        return (_PROC / str(number) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def _from_ps(number: int) -> tuple[str, str] | None:
    answer = subprocess.run(  # noqa: S603  (a number is all that goes in)
        ["/bin/ps", "-o", "stat=,lstart=", "-p", str(number)], capture_output=True, text=True, check=False
    ).stdout.split(maxsplit=1)
    return (answer[0][0], answer[1].strip()) if len(answer) == 2 else None


def mount_points(number: int) -> list[str]:
    """Return the mount points that the process of this number sees. Raise OSError if it has ended."""
    lines = (_PROC / f"{number}/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    return [_OCTAL.sub(lambda found: chr(int(found[1], 8)), line.split(" ")[4]) for line in lines]
