"""Cost functions by the vectors of the specification; a stranger's is found as ours are."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from climate.compute.errors import SchedulerCostFunctionNotFound
from climate.compute.models.request import Spec
from climate.compute.scheduler.distributed import costs
from climate.compute.scheduler.distributed.costs import compute_fill_first_cost_fn, noop_cost_fn, normalised, total
from climate.compute.scheduler.hosts.table import Hosts, Numbers
from climate.compute.scheduler.scheduler_parts import Cost
from tests.compute.node_tables import hosts
from tests.system.packages import install

SPEC = Spec("demo", 1, 512, 1024)
THREE = hosts({"memory_mb": 512, "io_ops": 100}, {"memory_mb": 256, "io_ops": 400}, {"memory_mb": 512, "io_ops": 100})


def io_ops(table: Hosts, spec: Spec) -> Numbers:
    return table.io_ops


def weighed(table: Hosts, *chosen: Cost) -> list[float]:
    return list(total(chosen, [normalised(cost.of(table, SPEC)) for cost in chosen]).tolist())


def test_costs_are_normalised_each_and_summed_by_weight() -> None:
    assert weighed(THREE, Cost("free", compute_fill_first_cost_fn), Cost("io", io_ops, 2.0)) == [1.5, 2.5, 1.5]


@pytest.mark.parametrize("weight", [1.0, 2.0])
def test_noop_costs_its_weight_everywhere(weight: float) -> None:
    assert weighed(THREE, Cost("noop_cost_fn", noop_cost_fn, weight)) == [weight] * 3
    assert weighed(hosts(), Cost("noop_cost_fn", noop_cost_fn, weight)) == []


@pytest.mark.parametrize(
    ("raw", "is_"), [([0, 0], [0, 0]), ([-1, -2], [-1, -2]), ([0, 5, 10], [0, 0.5, 1]), ([-5, 10], [-0.5, 1])]
)
def test_only_a_maximum_above_zero_normalises(raw: list[float], is_: list[float]) -> None:
    assert normalised(np.array(raw, dtype=np.float64)).tolist() == is_


def test_functions_are_found_by_name_and_all_unknown_ones_are_named() -> None:
    (found,) = costs.load([("compute_fill_first_cost_fn", 3.0)])
    assert (found.of, found.weight) == (compute_fill_first_cost_fn, 3.0)
    with pytest.raises(
        SchedulerCostFunctionNotFound, match=r"first, second could not be found; known are .*noop_cost_fn"
    ):
        costs.load([("first", 1.0), ("noop_cost_fn", 1.0), ("second", 1.0)])


STORY = """
from climate.compute.models.request import Spec
from climate.compute.scheduler.distributed import costs
from climate.compute.scheduler.distributed.least_cost import least_cost
from climate.compute.scheduler.scheduler_parts import Rules
from tests.compute.node_tables import hosts

table = hosts({"metrics": {"degrees": 60}}, {"metrics": {"degrees": 40}}, {"metrics": {"degrees": 50}})
plan = least_cost(table, Spec("demo", 1, 512, 1024), 1, Rules((), (), costs=costs.load([("compute_degrees", 3.0)])))
print(plan.picks[0].node, plan.picks[0].weight)
try:
    costs.load([("not_a_cost", 1.0)])
except Exception as error:
    print(error)
"""


def test_a_cost_function_of_somebody_else(tmp_path: Path) -> None:
    site, root = install("quiet", tmp_path / "site"), Path(__file__).parents[3]
    run = subprocess.run(
        [sys.executable, "-c", STORY], cwd=root, env={"PYTHONPATH": f"{site}:{root}"}, capture_output=True, text=True
    )
    assert run.stdout.splitlines() == [
        "n2 2.0",
        "Cost functions not_a_cost are installed, but are not functions",
    ], run.stderr
