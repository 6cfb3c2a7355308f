"""The distribution has one name everywhere, and its entry points are installed once."""

import tomllib
from importlib.metadata import distributions
from pathlib import Path

from click.testing import CliRunner

from climate.cli.root import DISTRIBUTION, root

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_command_prints_the_version_of_the_distribution() -> None:
    assert PROJECT["name"] == DISTRIBUTION
    assert CliRunner().invoke(root, ["--version"]).output == f"climate {PROJECT['version']}\n"


def test_one_installed_distribution_has_the_command() -> None:
    command = PROJECT["scripts"]["climate"]
    found = [one.name for one in distributions() for entry in one.entry_points if entry.value == command]
    assert found == [DISTRIBUTION]


def test_the_lock_files_name_the_distribution() -> None:
    for lock in ("requirements.lock", "requirements-dev.lock"):
        text = (ROOT / lock).read_text(encoding="utf-8")
        owners = {line.split("#")[1].split()[-2] for line in text.splitlines() if line.endswith("(pyproject.toml)")}
        assert owners == {DISTRIBUTION}
