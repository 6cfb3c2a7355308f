"""Filters and weighers chosen by name, ours and those of somebody else's package."""

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from climate.compute.errors import ComputeError, SchedulerHostFilterNotFound, SchedulerWeigherNotFound
from climate.compute.scheduler import entry_points as load
from climate.compute.scheduler.filters import FILTERS
from climate.compute.scheduler.scheduler_parts import Options
from climate.compute.scheduler.weighers import WEIGHERS
from tests.system.packages import install

STORY = """
from climate.compute.models.request import Spec
from climate.compute.scheduler.entry_points import rules
from climate.compute.scheduler.scheduler_parts import Options
from climate.compute.scheduler.filtering.scheduler import select
from tests.compute.node_tables import hosts

chosen = rules(["AwakeFilter", "RamFilter"], ["CoolWeigher"], Options())
print([rule.name for rule in chosen.filters])
table = hosts({"metrics": {"degrees": 60}}, {"metrics": {"degrees": 40}}, {"stats": {"asleep": True}})
plan = select(table, Spec("demo", 1, 512, 1024), 1, chosen)
print(plan.picks[0].node, plan.trail["filters"][1]["removed"])
try:
    rules(["NotAFilter"], [], Options())
except Exception as error:
    print(error)
"""


def test_every_filter_and_weigher_is_found_under_its_own_name() -> None:
    for group in (load.FILTER_GROUP, load.WEIGHER_GROUP):
        found = {entry.name: entry.load().name for entry in entry_points(group=group)}
        assert found
        assert all(name == own for name, own in found.items())


def test_without_names_the_default_ones_are_chosen() -> None:
    rules = load.rules((), (), Options())
    assert (rules.filters, rules.weighers) == (FILTERS, WEIGHERS)


def test_the_default_ones_are_installed() -> None:
    rules = load.rules([rule.name for rule in FILTERS], [rule.name for rule in WEIGHERS], Options())
    assert (rules.filters, rules.weighers) == (FILTERS, WEIGHERS)


def test_names_choose_and_order_and_reservations_are_always_kept() -> None:
    rules = load.rules(["DiskFilter", "RamFilter", "DiskFilter"], ["IoOpsWeigher", "RAMWeigher"], Options())
    assert [rule.name for rule in rules.filters] == ["ReservationFilter", "DiskFilter", "RamFilter"]
    assert [rule.name for rule in rules.weighers] == ["IoOpsWeigher", "RAMWeigher"]
    rules = load.rules(["RamFilter", "ReservationFilter"], [], Options())
    assert [rule.name for rule in rules.filters] == ["RamFilter", "ReservationFilter"]


def test_all_bad_names_are_listed_with_the_known_ones() -> None:
    with pytest.raises(
        SchedulerHostFilterNotFound, match=r"Filter Bad, Worse could not be found; known are .*RamFilter"
    ):
        load.rules(["Bad", "RamFilter", "Worse"], [], Options())
    with pytest.raises(SchedulerWeigherNotFound, match=r"Weigher Bad could not be found; known are .*RAMWeigher"):
        load.rules([], ["Bad"], Options())


def test_at_least_one_attempt() -> None:
    with pytest.raises(ComputeError, match="Invalid value for 'scheduler_max_attempts', must be >= 1"):
        load.rules((), (), Options(max_attempts=0))


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("idle=1", (("idle", 1.0),)),
        (" idle = 0.0001 , kernel=-1", (("idle", 0.0001), ("kernel", -1.0))),
        ("kernel", ()),
        ("kernel= 2.0t", ()),
        ("=5", ()),
        ("idle=nan, kernel=1", (("kernel", 1.0),)),
        ("", ()),
    ],
)
def test_ratios_of_metrics_and_what_is_passed_over(text: str, pairs: tuple[tuple[str, float], ...]) -> None:
    assert load.ratios(text) == pairs


def test_a_filter_and_a_weigher_of_somebody_else(tmp_path: Path) -> None:
    site, root = install("quiet", tmp_path / "site"), Path(__file__).parents[3]
    run = subprocess.run(
        [sys.executable, "-c", STORY], cwd=root, env={"PYTHONPATH": f"{site}:{root}"}, capture_output=True, text=True
    )
    assert run.stdout.splitlines() == [
        "['ReservationFilter', 'AwakeFilter', 'RamFilter']",
        "n2 [{'host': 'h', 'node': 'n3', 'why': 'is asleep.'}]",
        "Scheduler Filter NotAFilter is installed, but is not a Filter",
    ], run.stderr
