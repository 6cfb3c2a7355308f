"""What docs/schedulers.md shows works, and it leaves nothing out."""

import json
import re
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from climate.compute.models.request import Spec
from climate.compute.scheduler.distributed import costs
from climate.compute.scheduler.distributed.host_filters import HOST_FILTERS, matching
from climate.compute.scheduler.distributed.json_query import OPERATORS, parse
from climate.compute.scheduler.distributed.least_cost import least_cost
from climate.compute.scheduler.scheduler_parts import Cost, Rules
from climate.configuration.scheduler import BUNDLED
from climate.settings import Settings
from tests.compute.node_tables import hosts

PAGE = (Path(__file__).parent.parent / "docs" / "schedulers.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    found = re.search(f"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def test_each_scheduler_host_filter_and_cost_function_is_reported() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    ours = [entry.name for entry in entry_points(group=costs.GROUP) if entry.value.startswith("climate.")]
    assert rows[: -len(ours)] == [*BUNDLED, *HOST_FILTERS]
    assert sorted(rows[-len(ours) :]) == sorted(ours)


def test_each_operator_is_reported_and_the_query_is_one() -> None:
    told = re.search(r"an operator \((.*?)\)", PAGE)
    assert told is not None
    assert re.findall("`(.*?)`", told[1]) == list(OPERATORS)
    query = re.search(r"'query=(.*?)'", PAGE)
    assert query is not None
    table = hosts({"stats": {"gpu": {"model": "a100"}}, "memory_mb": 9000}, {"memory_mb": 9000})
    assert list(matching(table, parse(json.dumps(json.loads(query[1]))))) == [True, False]


def test_a_cost_of_ones_own_is_what_it_shows() -> None:
    made: dict[str, Any] = {}
    exec(block("python"), made)
    rules = Rules((), (), costs=(Cost("compute_servers", made["servers"]),))
    assert least_cost(hosts({"used_servers": 3}, {}), Spec("p", 1, 1, 1), 1, rules).picks[0].node == "n2"
    assert costs.GROUP in block("toml")


def test_the_settings_it_names_exist() -> None:
    named = set(re.findall(r"CLIMATE_([A-Z_]+)", PAGE))
    assert {name.lower() for name in named} <= set(Settings.__dataclass_fields__)
