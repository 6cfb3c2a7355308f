"""The commands of docs/install.md back up a running climate, and restore it in another home."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.doc_pages import blocks, section
from tests.system.api_client import Api
from tests.system.stack import Stack, await_so

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PATH = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))


def shell(stack: Stack, commands: str, backup: Path) -> str:
    """Run commands as an operator does who stops at the first that fails."""
    ran = stack.command("sh", "-euc", commands, seconds=300, more={"BACKUP": str(backup), "PATH": PATH})
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


@pytest.fixture
def stacks(tmp_path: Path) -> Iterator[tuple[Stack, Stack]]:
    """A home, and an empty one on the same port."""
    first = Stack(tmp_path / "first")
    second = Stack(tmp_path / "second", port=first.port)
    second.home.mkdir()
    try:
        yield first, second
    finally:
        first.stop()
        second.stop()
    assert first.left() == second.left() == []


def lease(stack: Stack, name: str, *words: str) -> None:
    command = ("--os-cloud", "climate-demo", "lease", "create", name, "--hosts", "1", "--for", "2h", *words)
    made = stack.run(*command)
    assert made.returncode == 0, made.stderr


def listed(stack: Stack) -> dict[str, Any]:
    """Return the status of each lease by its name, with the hosts that it has."""
    api = Api(stack.home, "climate-demo")
    try:
        found = api.read("/v1/leases")["leases"]
        return {one["name"]: (one["id"], one["status"], one["reservations"][0]["status"]) for one in found}
    finally:
        api.close()


def test_what_was_backed_up_runs_in_another_home(stacks: tuple[Stack, Stack], tmp_path: Path) -> None:
    first, second = stacks
    backup = tmp_path / "backup"
    backup.mkdir()
    online, broker = blocks(section("install", "Backup"))
    (restore,) = blocks(section("install", "Restore"))

    first.start()
    lease(first, "running", "--wait", "--timeout", "60s")
    lease(first, "later", "--start", "+1d")
    before = listed(first)
    shell(first, online, backup)
    lease(first, "after the backup", "--start", "+1d")
    assert first.stop() == 0
    shell(first, broker, backup)

    assert "the rows are what the journal says" in shell(second, restore, backup)
    second.start()
    assert listed(second) == before
    assert [*(second.home / "valkey").glob("unreadable-*")] == [], "the broker has read what was restored"
    assert {name: status for name, (_, status, _) in before.items()} == {"running": "ACTIVE", "later": "PENDING"}

    ended = second.run("--os-cloud", "climate-demo", "lease", "delete", "running", "--wait")
    assert ended.returncode == 0, ended.stderr
    await_so(lambda: [*listed(second)] == ["later"], 60, "the end of the lease")
    checked = second.run("journal", "check")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert second.stop() == 0
