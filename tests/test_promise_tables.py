"""The tables of promises at the end of docs/zones.md, docs/build-plans.md and docs/cells.md name what there is."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ("zones", "build-plans", "cells")
ROW = re.compile(r"^\| (?P<promise>.+) \| `(?P<code>[^`|]+\.py)` \| `(?P<file>[^`|]+\.py)::(?P<test>test_\w+)` \|$")


def table(page: str) -> list[str]:
    """Return the rows of the table of a page."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    _, _, after = text.partition("## Promises and their tests\n\n| promise | code | test |\n|---|---|---|\n")
    return after.partition("\n\n")[0].strip().splitlines()


def functions_of(path: Path) -> set[str]:
    """Return the names of the test functions of a module; none if there is no such module."""
    if not path.is_file():
        return set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


@pytest.mark.parametrize("page", PAGES)
def test_each_promise_names_its_code_and_its_test(page: str) -> None:
    rows = table(page)
    assert len(rows) > 10
    for row in rows:
        read = ROW.match(row)
        assert read is not None, f"write {row!r} as | promise | `code` | `tests/...::test_...` |"
        assert (ROOT / read["code"]).is_file(), f"{read['code']} is gone: name where the promise is kept now"
        assert read["test"] in functions_of(ROOT / read["file"]), f"no {read['test']} in {read['file']}; name another"
