"""The wheel alone, in an empty environment and an empty folder, runs a whole climate."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.distribution import has_pip, install
from tests.system.stack import Stack

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not has_pip(), reason="python3-pip or python3-venv is not installed"),
]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack whose commands are those of the environment, and run where the repository is not."""
    folder = tmp_path_factory.mktemp("installed")
    (folder / "empty").mkdir()
    programs = install(folder)
    more = {"HOME": str(folder), "PYTHONPATH": "", "PYTHONSAFEPATH": "1"}
    command = (str(programs / "climate"),)
    stack = Stack(folder / "empty" / "var", more, program=command, folder=folder / "empty")
    try:
        yield stack
    finally:
        stack.stop()
    assert stack.left() == []


def test_a_lease_is_made_by_the_installed_command(installed: Stack) -> None:
    installed.start()
    words = ("--hosts", "1", "--for", "1h", "--wait", "--timeout", "60s", "-f", "json")
    made = installed.run("--os-cloud", "climate-demo", "lease", "create", "packaged", *words)
    assert made.returncode == 0, made.stderr + installed.tail()
    assert json.loads(made.stdout)["status"] == "ACTIVE"

    checked = installed.run("journal", "check")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert installed.stop() == 0, installed.tail()
    assert [path.name for path in installed.folder.iterdir()] == ["var"]


def test_every_command_is_there_without_the_repository(installed: Stack) -> None:
    said = installed.run("--version")
    assert said.stdout.startswith("climate "), said.stderr
    assert installed.run("lab", "--help").returncode == 0
    where = installed.command(
        str(Path(installed.program[0]).with_name("python")), "-c", "import api, climate; print(climate.__file__)"
    )
    assert str(Path(installed.program[0]).parents[1]) in where.stdout
