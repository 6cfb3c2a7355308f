"""Each command has two examples in its help, which the command line takes."""

import re

from climate.cli.examples import EXAMPLES
from climate.cli.reference import walk
from climate.cli.root import root
from tests.cli.conftest import Cli
from tests.doc_pages import check_command

COMMANDS = dict(walk(root, "climate"))


def examples_in(epilog: str | None) -> list[str]:
    return [line.strip() for line in (epilog or "").splitlines()[2:]]


def test_each_command_has_two_examples_of_its_own() -> None:
    few = [name for name, command in COMMANDS.items() if len(set(examples_in(command.epilog))) < 2]
    assert few == [], "add two lines for each of them to climate/cli/examples.py"
    strange = [
        name for name, command in COMMANDS.items() if any(name not in one for one in examples_in(command.epilog))
    ]
    assert strange == []


def test_each_example_is_a_command_line() -> None:
    for line in EXAMPLES:
        inner = re.search(r"\$\((climate [^)]*)\)", line)
        check_command(inner[1] if inner else re.sub(r"^[A-Z_]+=\S+ ", "", line))


def test_no_example_is_left_without_its_command() -> None:
    shown = {line for command in COMMANDS.values() for line in examples_in(command.epilog)}
    assert set(EXAMPLES) == shown


def test_the_help_shows_the_examples_as_they_are_typed(cli: Cli) -> None:
    said = cli("lease", "create", "--help").out
    assert "  climate lease create mine --for 2h --hosts 1\n" in said
    assert """--resource '[">=", "$gpu_count", "2"]'\n""" in said
    assert "climate lease list" not in said
