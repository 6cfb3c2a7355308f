"""A command under a supervisor: its outcome in words, and no process of it that outlives the run."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from climate import process_supervisor, supervised_command
from climate.supervised_command import End, Run

PATIENCE = 60.0

CALLER = """
import sys
from climate import supervised_command
supervised_command.execute(supervised_command.Run(sys.argv[1:], 600))
"""


def await_true(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.01)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Path]:
    """A command that leaves a process in a session of its own and waits; `pid` has the number of that process."""
    path, pid = tmp_path / "command", tmp_path / "pid"
    path.write_text(
        f"#!/bin/sh\nsetsid -f sh -c 'echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 600'\n"
        f"until test -e {pid}; do sleep 0.01; done\nexec sleep 600\n"
    )
    path.chmod(0o755)
    yield path
    if pid.exists():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid.read_text()), signal.SIGKILL)


def is_left(daemon: Path) -> bool:
    return bool(process_supervisor.started_at(int(daemon.with_name("pid").read_text())))


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["true"], ""),
        (["sh", "-c", "exit 7"], "ended with status 7"),
        (["/nowhere/fence"], "cannot be run: FileNotFoundError"),
        (["sh", "-c", "kill -9 $PPID; exec sleep 600"], "was lost"),
    ],
)
def test_outcomes(command: list[str], reason: str) -> None:
    assert supervised_command.execute(Run(command, PATIENCE)).failure == reason


def test_output_is_dropped_or_written_to_a_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = ["sh", "-c", "echo one; echo two >&2"]
    with (tmp_path / "output").open("w+b") as output:
        assert supervised_command.execute(Run(command, PATIENCE, output=output.fileno())).end is End.EXITED
        output.seek(0)
        assert output.read() == b"one\ntwo\n"
    supervised_command.execute(Run(command, PATIENCE))
    assert capfd.readouterr() == ("", "")


def test_a_time_out_kills_all_that_the_command_has_started(daemon: Path) -> None:
    assert supervised_command.execute(Run([str(daemon)], 3)).failure == "took longer than 3 seconds"
    assert not is_left(daemon)


def test_nothing_outlives_a_caller_that_is_killed(daemon: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", CALLER, str(daemon)]) as caller:
        try:
            await_true(daemon.with_name("pid").exists)
            assert is_left(daemon)
        finally:
            caller.kill()
    await_true(lambda: not is_left(daemon))
