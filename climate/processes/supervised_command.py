"""Run of a command under a supervisor, which ends with this process and leaves no process of the command behind."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from uuid import UUID, uuid4

from climate.processes import process_supervisor
from climate.processes.process_supervisor import RUN_ID

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Search path of an operator's command."""

KILL_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Run:
    """Run of a command, limited to `seconds`."""

    command: Sequence[str]
    seconds: float
    environ: Mapping[str, str] = field(default_factory=lambda: {"PATH": PATH})
    id: UUID = field(default_factory=uuid4)
    output: int = subprocess.DEVNULL
    """File descriptor for all that the command writes; it is dropped by default, because it may contain secrets."""


class End(Enum):
    """End of a run."""

    EXITED = auto()
    TIMED_OUT = auto()
    NOT_STARTED = auto()
    LOST = auto()
    """Somebody has killed its supervisor."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """End of a run, with its exit status, its limit in seconds, or the error of its start."""

    end: End
    detail: str = ""

    @property
    def failure(self) -> str:
        """Return the reason of the failure, or "" after success."""
        match self.end:
            case End.EXITED:
                return "" if self.detail == "0" else f"ended with status {self.detail}"
            case End.TIMED_OUT:
                return f"took longer than {self.detail} seconds"
            case End.NOT_STARTED:
                return f"cannot be run: {self.detail}"
        return "was lost"


def start(run: Run) -> "subprocess.Popen[bytes]":
    """Return the supervisor of a run; the command starts when `outcome` is called."""
    return subprocess.Popen(  # noqa: S603 - there is no shell
        [sys.executable, "-I", process_supervisor.__file__, str(run.id), str(run.seconds), *run.command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=run.output,
        start_new_session=True,
        env={**run.environ, RUN_ID: str(run.id)},
        cwd="/",
        bufsize=0,
    )


def outcome(run: Run, supervisor: "subprocess.Popen[bytes]") -> Outcome:
    """Start the command, and return its outcome when no process of the run is left."""
    match _answer(supervisor):
        case ["ended", status]:
            return Outcome(End.EXITED, status)
        case ["timeout"]:
            return Outcome(End.TIMED_OUT, f"{run.seconds:g}")
        case ["failed", error]:
            return Outcome(End.NOT_STARTED, error)
    # Somebody has killed only the supervisor.
    while not process_supervisor.kill_run(str(run.id), KILL_SECONDS):
        continue
    return Outcome(End.LOST)


def execute(run: Run) -> Outcome:
    """Run a command, and return its outcome."""
    with start(run) as supervisor:
        return outcome(run, supervisor)


def _answer(supervisor: "subprocess.Popen[bytes]") -> list[str]:
    if supervisor.stdin is None or supervisor.stdout is None:
        raise RuntimeError("the supervisor has no pipes")
    try:
        supervisor.stdin.write(b"\n")
    except BrokenPipeError:
        return []
    return supervisor.stdout.readline().decode().split()
