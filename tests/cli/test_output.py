"""Forms of the output: data on stdout, the same for every command."""

import csv
import io

import pytest
import yaml

from climate.cli.options import FORMATS
from climate.cli.output import record, records
from climate.cli.reference import render
from climate.cli.root import root
from tests.cli.conftest import Cli
from tests.cli.fake_server import Wire

ROWS = [
    {"id": "1", "name": "b", "size": 10, "tags": ["x"]},
    {"id": "2", "name": "a", "size": 9, "tags": None},
]


@pytest.mark.parametrize("form", FORMATS)
def test_an_empty_list_is_no_error_in_any_form(cli: Cli, form: str) -> None:
    ran = cli("lease", "list", "-f", form)
    assert ran.code == 0
    assert (ran.err == "") == (form != "table")
    if form in ("json", "yaml"):
        assert yaml.safe_load(ran.out) == []


def test_json_and_yaml_are_whole_records() -> None:
    assert yaml.safe_load(records(ROWS, "json", ())) == ROWS
    assert yaml.safe_load(records(ROWS, "yaml", ())) == ROWS


@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize("sign", ["\x1b]0;owned\x07", "\x7f", "\x9b31m", "\x85", "\u202e", "\u2066"])
def test_control_characters_reach_no_terminal_and_the_values_stay_whole(form: str, sign: str) -> None:
    rows = [{"name": f"a{sign}b", "note": "zwei\nZeilen: ü"}]
    written = records(rows, form, ())
    assert not set(sign) & {char for char in written if not char.isprintable()}
    assert yaml.safe_load(written) == rows
    assert "ü" in written or form == "yaml"


def test_csv_can_be_read_back() -> None:
    rows = [{"name": 'with "quotes", comma', "size": 1}]
    assert list(csv.DictReader(io.StringIO(records(rows, "csv", ())))) == [
        {"name": 'with "quotes", comma', "size": "1"}
    ]


def test_value_is_one_line_a_row_and_bare() -> None:
    assert records(ROWS, "value", ("id", "name")) == "1 b\n2 a\n"
    assert record(ROWS[0], "value", ("name",)) == "b\n"


def test_sorting_takes_numbers_as_numbers() -> None:
    assert records(ROWS, "value", ("id",), ("size",)) == "2\n1\n"
    assert records(ROWS, "value", ("id",), ("size:desc",)) == "1\n2\n"
    assert records(ROWS, "value", ("id",), ("name",)) == "2\n1\n"


def test_a_table_that_is_piped_is_not_folded_and_has_no_colour() -> None:
    table = records([{"name": "x" * 300}], "table", ())
    assert "x" * 300 in table
    assert "\x1b" not in table


@pytest.mark.parametrize("form", ["table", "csv", "value"])
def test_a_name_cannot_play_with_the_screen(form: str) -> None:
    shown = records([{"name": "evil\x1b[2J\u202e"}], form, ("name",))
    assert "\x1b" not in shown
    assert "\\x1b[2J\\u202e" in shown


@pytest.mark.parametrize("form", ["table", "csv", "value"])
def test_neither_can_a_key_or_an_inner_value(form: str) -> None:
    pairs = [{"k\x9b2J": [{"x": "\x9b2J"}]}]
    row = {"metadata": {"key\x9b2J": "value\x9b2J\u202e"}, "tags": ["tag\x9b2J"], "pairs": pairs}
    for shown in (records([row], form, ()), record(row, form, ())):
        assert "\x9b" not in shown
        assert "\u202e" not in shown
        assert "value\\x9b2J\\u202e" in shown


def test_neither_can_a_message(cli: Cli, wire: Wire) -> None:
    wire.answers = [(409, {"error_code": 409, "error_message": "the lease evil\x9b2J\x1b[2J has it"}, {})]
    assert "error: the lease evil\\x9b2J\\x1b[2J has it\n" in cli("lease", "list").err


def test_text_of_all_scripts_is_kept(cli: Cli, wire: Wire) -> None:
    wire.add_lease("дом 🏠")
    assert cli("lease", "list", "-f", "value", "-c", "name").out == "дом 🏠\n"


def test_a_column_that_is_not_there_is_a_usage_error(cli: Cli, wire: Wire) -> None:
    wire.add_lease("one")
    ran = cli("lease", "list", "-c", "colour")
    assert ran.code == 2
    assert "start_date" in ran.err


def test_every_command_is_in_the_reference() -> None:
    text = render(root)
    for command in (
        "climate lease create NAME",
        "climate host property set NAME",
        "climate journal check",
        "climate demo",
    ):
        assert f"`{command}`" in text
    assert "| 7 | timeout |" in text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_completion_script(cli: Cli, shell: str) -> None:
    ran = cli("completion", shell)
    assert ran.code == 0
    assert "_CLIMATE_COMPLETE" in ran.out
