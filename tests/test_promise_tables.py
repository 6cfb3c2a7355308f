"""The tables of promises at the end of docs/zones.md, docs/build-plans.md and docs/cells.md name what there is."""

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
