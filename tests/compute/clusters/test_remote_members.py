"""The command that fences a member: an error in words, and no process of it after its time."""

import os
from pathlib import Path

import pytest

from climate.compute.clusters import remote_members
from climate.compute.errors import VirtError
from climate.processes import process_supervisor


@pytest.mark.parametrize(
    ("command", "reason"),
    [(["/nowhere/fence"], "cannot be run: FileNotFoundError"), (["/bin/sh", "-c", "exit 3"], "ended with status 3")],
)
def test_a_fence_command_that_fails_is_reported(command: list[str], reason: str) -> None:
    with pytest.raises(VirtError, match=f"the command that fences a member {reason}"):
        remote_members._fence(command)


def test_a_fence_command_that_takes_too_long_cuts_no_power_later(tmp_path: Path) -> None:
    """A command that goes on after the time-out could fence a member that has returned meanwhile."""
    late = tmp_path / "pid"
    body = f"setsid -f sh -c 'echo $$ > {late}; exec sleep 600'; exec sleep 600"
    with pytest.raises(VirtError, match="took longer than 3 seconds"):
        remote_members._fence(["/bin/sh", "-c", body], 3)
    assert process_supervisor.started_at(int(late.read_text())) == ""
    assert process_supervisor.started_at(os.getpid())
