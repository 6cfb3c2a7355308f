"""Complexity of functions, with the branches that hide in comprehensions, conditions and lambdas.

ruff counts statements only, up to 10 in a function. The measure here is the one of radon, up to 14. `make lint` runs
this module.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
TREES = ("climate", "api", "workers", "plugins")
MOST = 14

EXEMPTION = re.compile(r"#\s*(ruff|flake8):.*noqa|#\s*noqa\s*($|:\s*[A-Z0-9, ]*\b(C90|PLR09))", re.MULTILINE)
"""Comments that would let a function pass the linter's limits, or a line pass all its rules."""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def sources() -> list[Path]:
    return sorted(path for tree in TREES for path in (ROOT / tree).rglob("*.py"))


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


def complaints(source: str) -> Iterator[str]:
    """Return the functions of a source text above the limit, and its comments that lift limits, each with its line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, FUNCTIONS) and complexity(node) > MOST:
            yield f"{node.lineno}: {node.name} has the complexity {complexity(node)} of at most {MOST}"
    for match in EXEMPTION.finditer(source):
        number = source.count("\n", 0, match.start())
        yield f"{number + 1}: this lifts the limits of functions: {source.splitlines()[number].strip()}"


def all_complaints() -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{one}" for path in sources() for one in complaints(path.read_text(encoding="utf-8"))
    ]


if __name__ == "__main__":
    found = all_complaints()
    print(*found, sep="\n" if found else "")
    if found:
        sys.exit("name the steps of these functions, and call them")
