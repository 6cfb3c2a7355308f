"""Tables for people: each list with answers of a real climate, at the usual widths of a terminal."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from climate.cli.tables import UUID, Look, measure, shortened, table, wrapped
from tests.campaign import cases
from tests.cli.conftest import Cli
from tests.cli.fake_server import Wire

RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("recorded_answers.json").read_text(encoding="utf-8"))
COMMANDS: list[str] = RECORDED["commands"]
WIDTHS = (80, 120, 200)
NOW = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)
IDS = ["01a209fb-86b6-7881-8e18-1d459f33e582", "01a209fb-8b6f-7af4-abbf-e65e95032646"]


@pytest.fixture
def recorded(wire: Wire, environ: dict[str, str]) -> Wire:
    """A server with recorded answers, for a user without a home: to keep tokens takes longer than to ask for them."""
    wire.recorded = RECORDED["answers"]
    del environ["HOME"]
    return wire


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("width", cases(WIDTHS, {80, 200}))
@pytest.mark.parametrize("command", COMMANDS)
def test_no_line_of_a_list_is_wider_than_the_terminal(
    cli: Cli, environ: dict[str, str], command: str, width: int
) -> None:
    environ["COLUMNS"] = str(width)
    for options in ((), ("--long",), ("--utc",), ("--iso",)):
        ran = cli(*command.split(), *options)
        assert ran.code == 0, ran.err
        wide = [line for line in ran.out.splitlines() if measure(line) > width]
        assert wide == []


@pytest.fixture
def crowded(wire: Wire) -> Wire:
    """The recorded answers with twins, whose ids differ from the tenth character on, and whose names differ."""
    wire.recorded = {path: with_twins(answer) for path, answer in RECORDED["answers"].items()}
    return wire


def with_twins(answer: Any) -> Any:
    """Return an answer whose lists have each object twice, the second time with other ids."""
    if not isinstance(answer, dict):
        return answer
    return {key: [*rows, *map(_twin, rows)] if _is_list(rows) else rows for key, rows in answer.items()}


def _is_list(rows: Any) -> bool:
    return isinstance(rows, list) and all(isinstance(row, dict) and "id" in row for row in rows)


def _twin(thing: Any) -> Any:
    if isinstance(thing, dict):
        return {key: f"{value}-2" if key == "name" else _twin(value) for key, value in thing.items()}
    if isinstance(thing, list):
        return [_twin(one) for one in thing]
    if isinstance(thing, str) and UUID.fullmatch(thing):
        return f"{thing[:9]}{'0' if thing[9] != '0' else '1'}{thing[10:]}"
    return thing


@pytest.mark.usefixtures("crowded")
@pytest.mark.parametrize("width", cases(WIDTHS, {80, 200}))
@pytest.mark.parametrize("command", COMMANDS)
def test_each_shown_id_is_the_beginning_of_one_id_of_its_column(
    cli: Cli, environ: dict[str, str], command: str, width: int
) -> None:
    columns = _columns(cli, command)
    environ["COLUMNS"] = str(width)
    ran = cli(*command.split())
    header = ran.out.partition("\n")[0]
    for name in columns:
        place = re.search(rf"(?:^|  ){name}(?=  |$)", header)
        if place is None:
            continue
        begin = place.start() + (2 if place[0].startswith(" ") else 0)
        shown = {line[begin:].split("  ")[0].strip() for line in ran.out.splitlines()[1:]} - {""}
        for one in shown:
            assert one in columns[name] or len([whole for whole in columns[name] if whole.startswith(one)]) == 1


def _columns(cli: Cli, command: str) -> dict[str, set[str]]:
    """Return the values of the columns with ids, whole, as the CSV form has them."""
    lines = cli(*command.split(), "-f", "json").data
    rows = lines if isinstance(lines, list) else []
    names = {name for row in rows for name, value in row.items() if UUID.fullmatch(str(value))}
    return {name: {str(row[name]) for row in rows if row.get(name)} for name in names}


def test_an_id_as_a_table_shows_it_is_accepted(cli: Cli, wire: Wire, environ: dict[str, str]) -> None:
    lease = wire.add_lease("a lease whose name is long enough that the ids have to be short in this table")
    environ["COLUMNS"] = "80"
    short = lease["id"][:8]
    assert f"  {short}  " in cli("lease", "list").out
    assert cli("lease", "show", short, "-f", "value", "-c", "id").out.strip() == lease["id"]
    assert cli("lease", "show", short[:3]).code == 3


def test_a_beginning_of_two_ids_is_refused_with_both(cli: Cli, wire: Wire) -> None:
    for number in IDS:
        wire.leases[number] = {**wire.add_lease("one"), "id": number}
    ran = cli("lease", "show", "01a209fb")
    assert ran.code == 5
    assert all(number in ran.err for number in IDS)
    assert cli("lease", "show", "01a209fb-86", "-f", "value", "-c", "id").out.strip() == IDS[0]


def test_ids_are_as_long_as_it_takes_to_tell_them_apart() -> None:
    assert shortened(IDS) == ["01a209fb-86", "01a209fb-8b"]
    assert shortened(IDS[:1] * 2) == ["01a209fb"] * 2
    assert shortened(["7", "8"]) == ["7", "8"]


def test_a_name_stands_before_the_id_and_empty_columns_are_left_out() -> None:
    rows = [{"id": IDS[0], "name": "one", "status": "ACTIVE", "reason": None}]
    shown = table(["name", "id", "status", "reason"], rows, Look(80, now=NOW), str, whole=False)
    assert shown.splitlines()[0].split() == ["name", "id", "status", "reason"]
    nothing = table(["name", "reason"], rows, Look(80, now=NOW), lambda value: str(value or ""), whole=False)
    assert nothing.splitlines()[0].split() == ["name"]


@pytest.mark.parametrize(
    ("ahead", "text"),
    [
        (timedelta(hours=2), "in 2 h"),
        (-timedelta(minutes=5, seconds=10), "5 min ago"),
        (timedelta(days=3), "Fri 12:00 UTC"),
        (timedelta(days=30), "2030-01-31 12:00 UTC"),
    ],
)
def test_times_are_as_people_say_them(ahead: timedelta, text: str) -> None:
    value = (NOW + ahead).isoformat()
    assert Look(80, now=NOW, utc=True).time(value) == text
    assert Look(80, now=NOW, iso=True).time(value) is None
    assert Look(None, now=NOW).time(value) is None


def test_texts_wrap_between_words_and_wide_characters_count_twice() -> None:
    assert wrapped("three words here", 8) == ["three", "words", "here"]
    assert wrapped("x" * 10, 4) == ["xxxx", "xxxx", "xx"]
    assert [measure(line) for line in wrapped("予約予約予", 4)] == [4, 4, 2]


def test_states_have_colours_on_a_terminal_alone() -> None:
    rows = [{"name": "one", "status": "ERROR"}]
    assert "\x1b[31m" in table(["name", "status"], rows, Look(80, colour=True), str, whole=False)
    assert "\x1b" not in table(["name", "status"], rows, Look(80), str, whole=False)


def test_a_pipe_gets_everything_in_full(cli: Cli, wire: Wire) -> None:
    lease = wire.add_lease("x" * 300)
    out = cli("lease", "list").out
    assert all(text in out for text in ("x" * 300, lease["id"], "2030-01-01T12:00:00Z"))


def test_an_empty_list_says_what_creates_the_first_row(cli: Cli) -> None:
    ran = cli("lease", "list")
    assert (ran.out, ran.code) == ("", 0)
    assert "climate lease create" in ran.err
