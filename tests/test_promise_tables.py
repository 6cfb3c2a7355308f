"""Tables of promises in docs/, such as zones.md and reliability.md, and of requirements, name what there is."""

import re

import pytest

from tests.doc_pages import check_named, tables

PAGES = ("zones", "build-plans", "cells", "reliability")
ROW = re.compile(r"^\| (?P<promise>.+) \| `(?P<code>[^`|]+\.py)` \| `(?P<test>[^`|]+\.py::test_\w+)` \|$")


@pytest.mark.parametrize("page", PAGES)
def test_each_promise_names_its_code_and_its_test(page: str) -> None:
    rows = tables(page, "promise", "code", "test")
    assert len(rows) > 10
    for row in rows:
        read = ROW.match(row)
        assert read is not None, f"write {row!r} as | promise | `code` | `tests/...::test_...` |"
        check_named(read["code"], read["test"])


IDS = {"tree": {"Z": 15, "B": 16, "C": 14, "T": 7}, "page-requirements": {"W": 9, "V": 5}, "planning": {"P": 9}}
"""Numbers of requirements by their letters: of zones, build plans, cells and whole trees, of pages, and of planning."""


@pytest.mark.parametrize("page", IDS)
def test_each_requirement_has_rows_in_its_order(page: str) -> None:
    rows = tables(page, "id", "requirement", "where", "test")
    ids = []
    for row in rows:
        number, _, rest = row.removeprefix("| ").partition(" | ")
        read = ROW.match(f"| {rest}")
        assert read is not None, f"write {row!r} as | id | requirement | `code` | `tests/...::test_...` |"
        check_named(read["code"], read["test"])
        ids.append(number)
    wanted = [f"{letter}{number}" for letter, most in IDS[page].items() for number in range(1, most + 1)]
    assert list(dict.fromkeys(ids)) == wanted
