"""Tables, plugins, packages and commands that README.md and docs/ name are those of the code."""

import re
from pathlib import Path

import pytest

from climate import plugin
from tests.generated_pages import TABLES, between_marks

ROOT = Path(__file__).parent.parent
README, TYPES, MAP = (
    (ROOT / page).read_text(encoding="utf-8")
    for page in ("README.md", "docs/resource-types.md", "docs/architecture.md")
)


@pytest.mark.parametrize("name", TABLES)
def test_the_table_is_what_the_code_says(name: str) -> None:
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    shown = between_marks(name).search(page)
    assert shown is not None
    assert shown[2] == TABLES[name], "run `make docs`"


@pytest.mark.parametrize("resource_type", plugin.load())
def test_every_plugin_is_described(resource_type: str) -> None:
    assert f"## `{resource_type}`" in TYPES


def test_every_room_is_on_the_map() -> None:
    rooms = {path.name for path in (ROOT / "climate").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert {room for room in rooms if f"`climate/{room}/`" not in MAP} <= {"cli"}


@pytest.mark.parametrize("command", re.findall(r"^make (\w+)", README, re.MULTILINE))
def test_every_make_target_exists(command: str) -> None:
    assert re.search(f"^{command}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
