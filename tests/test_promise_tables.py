"""Tables of promises in docs/zones.md, build-plans.md and cells.md, and those of docs/tree.md, name what there is."""

import re

import pytest

from tests.doc_pages import check_named, tables

PAGES = ("zones", "build-plans", "cells")
ROW = re.compile(r"^\| (?P<promise>.+) \| `(?P<code>[^`|]+\.py)` \| `(?P<test>[^`|]+\.py::test_\w+)` \|$")


@pytest.mark.parametrize("page", PAGES)
def test_each_promise_names_its_code_and_its_test(page: str) -> None:
    rows = tables(page, "promise", "code", "test")
    assert len(rows) > 10
    for row in rows:
        read = ROW.match(row)
        assert read is not None, f"write {row!r} as | promise | `code` | `tests/...::test_...` |"
        check_named(read["code"], read["test"])


IDS = [
    f"{letter}{number}"
    for letter, count in (("Z", 15), ("B", 16), ("C", 14), ("T", 7))
    for number in range(1, count + 1)
]
"""Requirements of zones, build plans and cells."""


def test_each_requirement_of_the_tree_has_rows_in_its_order() -> None:
    rows = tables("tree", "id", "requirement", "where", "test")
    ids = []
    for row in rows:
        number, _, rest = row.removeprefix("| ").partition(" | ")
        read = ROW.match(f"| {rest}")
        assert read is not None, f"write {row!r} as | id | requirement | `code` | `tests/...::test_...` |"
        check_named(read["code"], read["test"])
        ids.append(number)
    assert list(dict.fromkeys(ids)) == IDS
