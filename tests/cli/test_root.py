"""The root command: sections of the help, commands that are imported when they are called."""

import subprocess
import sys

import click
import pytest

from climate.cli.root import SECTIONS, root
from tests.cli.conftest import Cli

PLACES = {name: places for rows in SECTIONS.values() for name, places in rows.items()}


@pytest.mark.parametrize("name", sorted(PLACES))
def test_each_place_is_a_command_of_its_name(name: str) -> None:
    command = root.get_command(click.Context(root), name)
    assert command is not None
    assert command.name == name


def test_no_command_is_no_error_and_shows_the_sections(cli: Cli) -> None:
    ran = cli()
    assert ran.code == 0
    assert all(f"{heading}:" in ran.out for heading in SECTIONS if heading)
    assert "floatingip" not in ran.out


def test_a_misspelt_command_is_refused_with_the_nearest(cli: Cli) -> None:
    ran = cli("laese", "list")
    assert ran.code == 2
    assert "lease" in ran.err


def test_the_former_name_of_a_group_is_still_a_command(cli: Cli) -> None:
    assert cli("floatingip", "list", "-f", "json").data == cli("floating", "reservable", "list", "-f", "json").data


def test_a_list_of_leases_imports_neither_the_engine_nor_rich_tables() -> None:
    code = (
        "import sys; from climate.cli import run; run(['lease', 'list', '--help'], {});"
        "print([name for name in ('sqlalchemy', 'celery', 'httpx', 'rich.table', 'climate.domain') "
        "if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "[]"
