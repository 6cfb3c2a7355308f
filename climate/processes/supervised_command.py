"""Run of a command under a supervisor, which ends with this process and leaves no process of the command behind."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID, uuid4

from climate.processes import process_supervisor
from climate.processes.process_supervisor import RUN_ID

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Search path of an operator's command."""

KILL_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Run:
    """Run of a command, limited to `seconds`. Its output is dropped, because it may contain secrets."""

    command: Sequence[str]
    seconds: float
    environ: Mapping[str, str] = field(default_factory=lambda: {"PATH": PATH})
    id: UUID = field(default_factory=uuid4)


def start(run: Run) -> "subprocess.Popen[bytes]":
    """Return the supervisor of a run; the command starts when `outcome` is called."""
    return subprocess.Popen(  # noqa: S603 - there is no shell
        [sys.executable, "-I", process_supervisor.__file__, str(run.id), str(run.seconds), *run.command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**run.environ, RUN_ID: str(run.id)},
        cwd="/",
        bufsize=0,
    )


def outcome(run: Run, supervisor: "subprocess.Popen[bytes]") -> str:
    """Start the command, and return the reason of its failure, or "", when no process of the run is left."""
    match _answer(supervisor):
        case ["ended", "0"]:
            return ""
        case ["ended", status]:
            return f"ended with status {status}"
        case ["timeout"]:
            return f"took longer than {run.seconds:g} seconds"
        case ["failed", reason]:
            return f"cannot be run: {reason}"
    # Somebody has killed only the supervisor.
    while not process_supervisor.kill_run(str(run.id), KILL_SECONDS):
        continue
    return "was lost"


def execute(run: Run) -> str:
    """Run a command, and return the reason of its failure, or ""."""
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
