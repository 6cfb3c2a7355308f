"""What tests of pages in docs/ have in common: tables, and what they name."""

import ast
import re
import shlex
from pathlib import Path

import click

from climate.cli.connection.session import Session
from climate.cli.root import root
from climate.settings import Settings

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def text_of(page: str) -> str:
    """Return the text of a page by its name, like `zones`."""
    return (DOCS / f"{page}.md").read_text(encoding="utf-8")


def tables(page: str, *head: str) -> list[str]:
    """Return the rows of all tables of a page whose columns have these names."""
    columns = re.escape(f"| {' | '.join(head)} |\n|{'---|' * len(head)}\n")
    found = re.findall(columns + r"((?:\|.*(?:\n|\Z))+)", text_of(page))
    return [row for rows in found for row in rows.splitlines()]


def blocks(text: str, language: str = "") -> list[str]:
    """Return the fenced blocks of a text that have this language, by default none: commands."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [block for word, block in fenced if word == language]


def section(page: str, title: str) -> str:
    """Return the text of a page below the heading `## title`, up to the next one."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text_of(page), re.DOTALL | re.MULTILINE)
    assert found is not None, f"no section {title} in {page}.md"
    return found[1]


def functions_of(path: Path) -> set[str]:
    """Return the names of the test functions of a module; none if there is no such module."""
    if not path.is_file():
        return set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def check_named(code: str, test: str) -> None:
    """Assert that the module `code` and the test `path::name` exist."""
    path, _, name = test.partition("::")
    assert (ROOT / code).is_file(), f"{code} is gone: name where it is done now"
    assert name in functions_of(ROOT / path), f"no {name} in {path}; name another"


def check_command(line: str) -> None:
    """Assert that the command line takes a line that begins with `climate`."""
    words = shlex.split(line)[1:]
    context = click.Context(root, info_name="climate", obj=Session({}))
    command: click.Command | None = root
    while isinstance(command, click.Group):
        command = command.get_command(context, words.pop(0))
    assert command is not None, line
    command.make_context(None, words, parent=context)


def unknown_settings(text: str) -> set[str]:
    """Return the variables that a text names and that no setting has."""
    known = {f"CLIMATE_{name.upper()}" for name in Settings.__dataclass_fields__}
    return set(re.findall(r"CLIMATE_[A-Z0-9_]*[A-Z0-9]", text)) - known


def broken_links(text: str) -> set[str]:
    """Return the links of a page in docs/ that lead to no file."""
    return {name for name in re.findall(r"\]\(([^):]+)\)", text) if not (DOCS / name).is_file()}
