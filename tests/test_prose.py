"""Plain English on pages and in docstrings: short sentences with a subject, and no word of insiders only."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GENERATED = {"campaign.md", "commands.md", "settings.md"}
"""Their words are those of results, of commands and of settings."""
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
PAGES += sorted(page for page in (ROOT / "docs").rglob("*.md") if page.name not in GENERATED)
TREES = ("climate", "api", "workers", "plugins")
SOURCES = sorted(path for tree in TREES for path in (ROOT / tree).rglob("*.py"))

LONGEST_SENTENCE = 25
HEADLESS = re.compile(r"(What|Which|Who|Whom|How|Whether|Of)\b.*[.;]$")
"""A statement that begins with the word of a question has no subject."""
VAGUE = re.compile(r"\b(told|tells?|looked after|put right|rung|deaf|heard of)\b", re.IGNORECASE)
BLOCK = re.compile(r"^(`{3,}|~{3,}).*?^\1[^\n]*$", re.DOTALL | re.MULTILINE)
ITEM = re.compile(r"([-*]|\d+\.)\s+")
END = re.compile(r"(?<=[.!?:])(?:\*\*)?\s+(?=[A-Z*\"(0-9]|code\b|climate\b)|(?<=;)\s+")
"""Ends of sentences. The name of the project is lower-case at the beginning of one, and so is `code`."""


def paragraphs(text: str) -> Iterator[str]:
    """Return the paragraphs, list items and cells of tables of a page, without headings and code."""
    lines: list[str] = []
    for line in map(str.strip, [*BLOCK.sub("", text).splitlines(), ""]):
        is_row, item = line.startswith("|"), ITEM.match(line)
        if lines and (not line or is_row or item or line.startswith("#")):
            yield " ".join(lines)
            lines = []
        if is_row:
            yield from (cell.strip() for cell in re.split(r"(?<!\\)\|", line))
        elif line and not line.startswith("#"):
            lines.append(line[item.end() :] if item else line)


def sentences(text: str) -> Iterator[str]:
    """Return the sentences of a page; each piece of code counts as one word."""
    for paragraph in paragraphs(text):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph)
        yield from filter(None, END.split(re.sub(r"`[^`]*`", "code", plain)))


def faults(text: str) -> Iterator[str]:
    """Return the faults of the sentences of a page."""
    for sentence in sentences(text):
        words = [word for word in sentence.split() if re.search(r"\w", word)]
        if len(words) > LONGEST_SENTENCE:
            yield f"{len(words)} words: {sentence}"
        # An odd number of quotation marks: the rest of a title.
        if HEADLESS.match(sentence) and sentence.count('"') % 2 == 0:
            yield f"no subject: {sentence}"
        if vague := VAGUE.search(sentence):
            yield f"say it plainly, not {vague[0]}: {sentence}"


FIGURE = re.compile(r"^ {4}.*$", re.MULTILINE)
"""Indented lines of a docstring: a table or an example."""


def docstrings(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Return the docstrings of a module and of its public classes and functions, each with its name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = getattr(node, "name", "module")
            if not name.startswith("_") and (text := ast.get_docstring(node)):
                yield name, FIGURE.sub("", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_sentences_of_a_page_are_short_and_plain(page: Path) -> None:
    assert list(faults(page.read_text(encoding="utf-8"))) == []


def test_sentences_of_docstrings_are_short_and_plain() -> None:
    found = [
        f"{path.relative_to(ROOT)}, {name}: {fault}"
        for path in SOURCES
        for name, text in docstrings(ast.parse(path.read_text(encoding="utf-8")))
        for fault in faults(text)
    ]
    assert found == []


def test_docstrings_of_public_names_are_read_without_figures() -> None:
    source = '''"""A module."""
def one():
    """Return what is
    wanted.

        a figure of many words
    """
def _own(): """Private."""
class Two:
    """A class."""
'''
    assert [(name, text.split()) for name, text in docstrings(ast.parse(source))] == [
        ("module", ["A", "module."]),
        ("one", ["Return", "what", "is", "wanted."]),
        ("Two", ["A", "class."]),
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (f"A sentence of {'many ' * 24}words.", "28 words"),
        ("What is not recorded, is lost.", "no subject"),
        ("The owner is told of it.", "say it plainly, not told"),
        ("| a table | Which hosts are free. |", "no subject"),
        (f"- A point of {'many ' * 24}words.", "28 words"),
    ],
)
def test_each_fault_is_reported(text: str, fault: str) -> None:
    assert [found.partition(":")[0] for found in faults(text)] == [fault]


@pytest.mark.parametrize(
    "text",
    [
        "Which hosts are free?",
        f"One sentence of {'some ' * 12}words. climate has another one of {'some ' * 12}words.",
        f"```\nA block of code of {'many ' * 30}words\n```",
        f"A list of `{'many ' * 30}` in code.",
    ],
)
def test_plain_sentences_have_no_fault(text: str) -> None:
    assert list(faults(text)) == []
