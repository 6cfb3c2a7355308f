"""What docs/operation.md tells is so."""

import re
from pathlib import Path

import pytest

from climate.cli.reference import render
from climate.cli.root import root
from climate.settings import Settings

HERE = Path(__file__).parent.parent
PAGE = (HERE / "docs" / "operation.md").read_text(encoding="utf-8")


def test_the_settings_it_names_exist() -> None:
    named = set(re.findall(r"CLIMATE_([A-Z_]+)", PAGE))
    assert {name.lower() for name in named} <= set(Settings.__dataclass_fields__)


@pytest.mark.parametrize("command", sorted(set(re.findall(r"`climate ([a-z]+(?: [a-z]+)?)", PAGE))))
def test_the_command_exists(command: str) -> None:
    assert re.search(rf"^\| `climate {command}\b", render(root), re.MULTILINE)


@pytest.mark.parametrize("figure", sorted(set(re.findall(r"`(climate_[a-z_]+)`", PAGE))))
def test_the_figure_is_reported(figure: str) -> None:
    assert f'"{figure}"' in (HERE / "api" / "ops" / "metrics.py").read_text(encoding="utf-8")


def test_links_lead_somewhere() -> None:
    assert all((HERE / "docs" / name.partition("#")[0]).is_file() for name in re.findall(r"\]\(([^)]+)\)", PAGE))
