"""What the README says is so."""

import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import pytest

from climate import plugin
from climate.cli.reference import render
from climate.cli.root import root
from climate.settings import Settings

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def settings_table() -> str:
    spelled = {
        f.name: str(f.default).lower() if isinstance(f.default, bool) else str(f.default) for f in fields(Settings)
    }
    defaults = {name: f"`{text}`" if text else "" for name, text in spelled.items()}
    rows = [f"| `CLIMATE_{f.name.upper()}` | {defaults[f.name]} | {f.metadata['says']} |" for f in fields(Settings)]
    return "\n".join(["| variable | default | what it is |", "|---|---|---|", *rows]) + "\n"


TABLES: Mapping[str, str] = {"settings": settings_table(), "commands": render(root)}


@pytest.mark.parametrize("name", TABLES)
def test_the_table_is_what_the_code_says(name: str) -> None:
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    shown = re.search(f"<!-- {name}: [^\n]*-->\n(.*?)<!-- /{name} -->", page, re.DOTALL)
    assert shown is not None
    assert shown[1] == TABLES[name], f"write this between the marks:\n{TABLES[name]}"


@pytest.mark.parametrize("resource_type", plugin.load())
def test_every_plugin_is_described(resource_type: str) -> None:
    assert f"### `{resource_type}`" in README


def test_every_room_is_on_the_map() -> None:
    rooms = {path.name for path in (ROOT / "climate").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert {room for room in rooms if f"`climate/{room}/`" not in README} <= {"cli"}


@pytest.mark.parametrize("command", re.findall(r"^make (\w+)", README, re.MULTILINE))
def test_every_make_target_exists(command: str) -> None:
    assert re.search(f"^{command}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
