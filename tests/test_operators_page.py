"""What docs/cloud.md shows works."""

import re
from pathlib import Path
from typing import Any

from climate.compute.models.request import Spec
from climate.compute.nodes import nodes_file
from climate.compute.scheduler.scheduler_parts import Options
from climate.settings import Settings
from tests.compute.node_tables import hosts

PAGE = (Path(__file__).parent.parent / "docs" / "cloud.md").read_text(encoding="utf-8")

CLUSTERS = {"cluster", "joins"}
"""What clusters and their members have; the chapter on clusters shows their entries."""


def block(language: str) -> str:
    found = re.search(f"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def test_the_file_of_nodes_shows_every_key_and_the_table_tells_each(tmp_path: Path) -> None:
    (tmp_path / nodes_file.FILE).write_text(block("yaml"))
    (shown,) = nodes_file.read(tmp_path)
    assert shown.name == "gpu-1"
    keys = set(re.findall(r"^(?:- |  )(\w+): ", block("yaml"), re.MULTILINE))
    assert keys | CLUSTERS == set(type(shown).__dataclass_fields__)
    told = {key for row in re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE) for key in re.findall(r"`(\w+)`", row)}
    assert keys | {"cluster", "members"} <= told


def test_a_filter_of_ones_own_is_what_it_shows() -> None:
    made: dict[str, Any] = {}
    exec(block("python"), made)
    table = hosts({"used_servers": 3}, {"used_servers": 12})
    assert list(made["QUIET"].keep(table, Spec("p", 1, 1, 1), Options())) == [True, False]
    assert "climate.scheduler_filters" in block("toml")


def test_the_settings_it_names_exist() -> None:
    named = set(re.findall(r"CLIMATE_([A-Z_]+)", PAGE))
    assert {name.lower() for name in named} <= set(Settings.__dataclass_fields__)
