"""Complexity of functions, with the branches that hide in comprehensions, conditions and lambdas.

The linter counts statements only, up to 10 in a function. The measure here is the one of radon, up to 15. The functions
of `complex_functions.txt` exceed it, and that list may only get shorter.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LISTED = Path(__file__).with_name("complex_functions.txt").read_text(encoding="utf-8").splitlines()
TREES = ("climate", "api", "workers", "plugins")
SOURCES = sorted(path for tree in TREES for path in (ROOT / tree).rglob("*.py"))
MOST = 15

EXEMPTION = re.compile(r"#\s*(ruff|flake8):.*noqa|#\s*noqa\s*($|:\s*[A-Z0-9, ]*\b(C90|PLR09))", re.MULTILINE)
"""Comments that would let a function pass the linter's limits, or a line pass all its rules."""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def own(node: ast.AST) -> int:
    """Return the branches that a node adds by itself."""
    if isinstance(node, ast.If | ast.IfExp | ast.Assert | ast.Lambda):
        return 1
    if isinstance(node, ast.For | ast.AsyncFor | ast.While):
        return 1 + bool(node.orelse)
    if isinstance(node, ast.Try | ast.TryStar):
        return len(node.handlers) + bool(node.orelse)
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    if isinstance(node, ast.comprehension):
        return 1 + len(node.ifs)
    return len(node.cases) if isinstance(node, ast.Match) else 0


def complexity(function: ast.AST) -> int:
    """Return one more than the number of branches of a function, those of its nested functions included."""
    return 1 + sum(own(node) for node in ast.walk(function))


def complex_functions(path: Path) -> Iterator[str]:
    """Return the functions of a source file that exceed the limit, as `path::name`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, FUNCTIONS) and complexity(node) > MOST:
            yield f"{path.relative_to(ROOT)}::{node.name}"


def test_no_further_function_exceeds_the_limit() -> None:
    beyond = {one for path in SOURCES for one in complex_functions(path)}
    assert beyond - set(LISTED) == set(), f"a complexity above {MOST}: name steps of the function, and call them"
    assert set(LISTED) - beyond == set(), "take these lines out of complex_functions.txt"


def test_no_comment_lets_a_function_pass_the_linter() -> None:
    assert [str(path.relative_to(ROOT)) for path in SOURCES if EXEMPTION.search(path.read_text("utf-8"))] == []


@pytest.mark.parametrize(
    ("source", "number"),
    [
        ("def f(): return 1", 1),
        ("def f(a): return [x for x in a if x and x > 1]", 4),
        ("def f(a):\n    for x in a:\n        if x: return x\n    else: return 0", 4),
        ("def f(a):\n    try: a()\n    except OSError: pass\n    except ValueError: pass", 3),
        ("def f(a): return sorted(a, key=lambda x: 1 if x else 2)", 3),
        ("def f(a):\n    match a:\n        case 1: return 1\n        case _: return 2", 3),
    ],
)
def test_branches_are_counted_wherever_they_are(source: str, number: int) -> None:
    assert complexity(ast.parse(source)) == number


@pytest.mark.parametrize(
    ("comment", "is_exemption"),
    [
        ("def f():  # noqa: C901", True),
        ("def f():  # noqa: S603, PLR0913", True),
        ("def f():  # noqa", True),
        ("# ruff: noqa", True),
        ("subprocess.run(argv)  # noqa: S603", False),
        ("match = one  # noqa: N802 - the name of the protocol", False),
    ],
)
def test_exemptions_are_recognized(comment: str, is_exemption: bool) -> None:
    assert bool(EXEMPTION.search(comment)) is is_exemption
