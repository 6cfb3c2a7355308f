"""Tables of docs/ that are generated from the code: `make docs` writes them, tests/test_promises.py compares them."""

import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from climate.cli.reference import render
from climate.cli.root import root
from climate.settings import Settings

DOCS = Path(__file__).parent.parent / "docs"


def settings_table() -> str:
    """Return a Markdown table of all settings with their defaults."""
    spelled = {
        f.name: str(f.default).lower() if isinstance(f.default, bool) else str(f.default) for f in fields(Settings)
    }
    defaults = {name: f"`{text}`" if text else "" for name, text in spelled.items()}
    rows = [f"| `CLIMATE_{f.name.upper()}` | {defaults[f.name]} | {f.metadata['says']} |" for f in fields(Settings)]
    return "\n".join(["| variable | default | what it is |", "|---|---|---|", *rows]) + "\n"


TABLES: Mapping[str, str] = {"settings": settings_table(), "commands": render(root)}


def between_marks(name: str) -> re.Pattern[str]:
    """Return the pattern of a page's generated part: the opening mark, the table, the closing mark."""
    return re.compile(f"(<!-- {name}: [^\n]*-->\n)(.*?)(<!-- /{name} -->)", re.DOTALL)


def write() -> None:
    """Write each table between the marks of its page."""
    for name, table in TABLES.items():
        page = DOCS / f"{name}.md"
        text = page.read_text(encoding="utf-8")
        page.write_text(between_marks(name).sub(lambda m, table=table: m[1] + table + m[3], text), encoding="utf-8")


if __name__ == "__main__":
    write()
