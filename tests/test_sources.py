"""docs/sources.md names what there is, for each requirement of the sources."""

import re

import pytest

from tests.doc_pages import ROOT, broken_links, check_command, check_named, tables, text_of, unknown_settings

PAGE = text_of("sources")
HEAD = ("requirement", "where", "test", "note")
ROWS = tables("sources", *HEAD)

DOCUMENTS, POINTS = 5, 15
SEEN = re.compile(r"`(climate |make |python -m |openstack |CLIMATE_)[^`]*`|The same")
"""A command or a setting in a note, or a reference to those of the row above."""
ROW = re.compile(r"^\| (?P<requirement>[^|]+) \| (?P<where>[^|]+) \| (?P<test>[^|]*?) ?\| (?P<note>[^|]*?) ?\|$")
CODE, TEST = re.compile(r"`([^`]+\.py)`"), re.compile(r"`(tests/[^`]+\.py::test_\w+)`")
COMMANDS = sorted(set(re.findall(r"`(climate [^`]+)`", PAGE)))

KINDS = (
    "| requirement | `module.py` | `tests/...::test_...` | note |, "
    "| requirement | not built | | note | or | requirement | other | | reason |"
)


def test_every_line_of_a_table_is_a_requirement() -> None:
    lines = [line for line in PAGE.splitlines() if line.startswith("|")]
    heads = lines.count(f"| {' | '.join(HEAD)} |")
    assert len(lines) == len(ROWS) + 2 * heads


def test_each_document_has_its_requirements() -> None:
    sections = re.findall(r"^## (\d)\. .*\n((?:(?!## ).*\n)*)", PAGE, re.MULTILINE)
    assert [int(number) for number, _ in sections] == list(range(1, DOCUMENTS + 1))
    for number, section in sections:
        assert re.search(rf"^{number}\. ", PAGE, re.MULTILINE), "the list of documents has it"
        assert len([row for row in ROWS if row in section]) > 10


def test_each_added_point_has_rows_that_say_how_it_is_seen() -> None:
    added = PAGE.partition("\n## Added points\n")[2]
    points = re.findall(r"^### Point (\d+): .*\n((?:(?!### ).*\n)*)", added, re.MULTILINE)
    assert [int(number) for number, _ in points] == list(range(1, POINTS + 1))
    for number, section in points:
        rows = [read for row in ROWS if row in section and (read := ROW.match(row)) is not None]
        assert rows, f"point {number} has no requirement"
        unseen = [row["requirement"] for row in rows if not SEEN.search(row["note"])]
        assert unseen == [], "name the command or the setting by which it is seen"


@pytest.mark.parametrize("row", ROWS)
def test_each_requirement_names_its_code_and_its_test_or_says_what_is_not_there(row: str) -> None:
    read = ROW.match(row)
    assert read is not None, f"write it as {KINDS}"
    if read["where"] in ("not built", "other"):
        assert read["test"] == ""
        assert read["note"] or read["where"] == "not built", "say why it is other"
        return
    code, test = CODE.fullmatch(read["where"]), TEST.fullmatch(read["test"])
    assert code is not None, f"write it as {KINDS}"
    assert test is not None, f"write it as {KINDS}"
    check_named(code[1], test[1])


def test_no_requirement_stands_twice() -> None:
    said = [row.split(" | ")[0] for row in ROWS]
    assert [one for one in said if said.count(one) > 1] == []


@pytest.mark.parametrize("line", COMMANDS)
def test_each_command_is_understood(line: str) -> None:
    check_command(line)


def test_settings_and_links_exist() -> None:
    assert (unknown_settings(PAGE), broken_links(PAGE)) == (set(), set())


def test_the_readme_leads_here() -> None:
    assert "(docs/sources.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
