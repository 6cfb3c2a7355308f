"""Operator's command that cleans a host, run under a supervisor that leaves no process of it behind."""

import os
import shlex
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from uuid import UUID

from climate import process_supervisor, supervised_command
from climate.supervised_command import PATH, Run

TOKEN = "CLIMATE_CLEANING_TOKEN"  # noqa: S105 - the name of a variable
"""Environment variable with the number of the run: each run has a higher one than those before it."""

ENVIRON = {"PATH": PATH, "LANG": "C.UTF-8"}

LOST = "the hook run was lost"
UNRECORDED = "the hook was not started, because its run could not be recorded"


@dataclass(frozen=True, slots=True)
class HookRun:
    """Run of the hook for a host, limited to `seconds`."""

    command: str
    host: str
    seconds: float
    id: UUID
    token: int


@dataclass(frozen=True, slots=True)
class HookProcess:
    """Supervisor of a run: its machine, its process id there, and its start in clock ticks since boot."""

    machine: str
    """String form of `Machine`."""
    worker: str
    """Name of the machine, for people."""
    pid: int
    started: str


@dataclass(frozen=True, slots=True)
class Machine:
    """One boot of a machine, with one PID namespace."""

    identity: str
    boot: str
    numbers: str

    def __str__(self) -> str:
        return f"{self.identity} {self.boot} {self.numbers}"

    def sees(self, recorded: str) -> bool:
        """Return whether process ids recorded there are valid here."""
        return recorded == str(self)

    def outlives(self, recorded: str) -> bool:
        """Return whether the machine was rebooted since, so that no earlier process runs."""
        identity, boot, _ = recorded.rsplit(" ", 2)
        return identity == self.identity and boot != self.boot


@cache
def this_machine() -> Machine:
    """Return the machine of this process."""
    return Machine(
        f"{socket.gethostname()}/{_read('/etc/machine-id')}",
        _read("/proc/sys/kernel/random/boot_id"),
        os.readlink("/proc/self/ns/pid") if Path("/proc/self/ns/pid").is_symlink() else "-",
    )


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").strip() or "-"
    except OSError:
        return "-"


def execute(run: HookRun, record: Callable[[HookProcess], bool]) -> str:
    """Run the command with the host's name as its last argument; return the reason of a failure, or "".

    `record` gets the process before the command starts, and returns whether it may start. No process of the run
    is left at the return. The command's output is dropped, because it may be secret and owners can read the
    reasons.
    """
    try:
        words = [*shlex.split(run.command), run.host]
    except ValueError:
        return "the hook cannot be run: ValueError"
    supervised = Run(words, run.seconds, {**ENVIRON, TOKEN: str(run.token)}, run.id)
    with supervised_command.start(supervised) as supervisor:
        began = process_supervisor.started_at(supervisor.pid)
        if not record(HookProcess(str(this_machine()), socket.gethostname(), supervisor.pid, began)):
            return UNRECORDED
        reason = supervised_command.outcome(supervised, supervisor).failure
    return f"the hook {reason}" if reason else ""
