"""Named cost functions: lower is better, and a node's cost is the weighted sum (cloud.md B.11).

Every installed entry point of the group `climate.scheduler_costs` can be named
by the settings; ours are found in no other way than a stranger's.
"""

from collections.abc import Sequence
from importlib.metadata import entry_points

import numpy as np

from climate.compute.errors import SchedulerCostFunctionNotFound
from climate.compute.request import Spec
from climate.compute.scheduler.hosts import Hosts, Numbers
from climate.compute.scheduler.rules import Cost

GROUP = "climate.scheduler_costs"


def noop_cost_fn(hosts: Hosts, spec: Spec) -> Numbers:
    """The same for every node."""
    return np.ones(len(hosts))


def compute_fill_first_cost_fn(hosts: Hosts, spec: Spec) -> Numbers:
    """Memory that is not promised, in MB: the fullest node that still has room is the cheapest."""
    return hosts.free_ram_mb


NOOP = Cost("noop_cost_fn", noop_cost_fn)


def normalised(costs: Numbers) -> Numbers:
    """`costs` divided by the greatest of them when that is above zero, else as they are."""
    greatest = costs.max(initial=0.0)
    return costs / greatest if greatest > 0 else costs


def total(costs: Sequence[Cost], columns: Sequence[Numbers]) -> Numbers:
    """What each node costs: the sum of its normalised costs, each times its weight."""
    parts = [cost.weight * column for cost, column in zip(costs, columns, strict=True)]
    return np.asarray(np.sum(parts, axis=0), dtype=np.float64)


def load(chosen: Sequence[tuple[str, float]]) -> tuple[Cost, ...]:
    """The (name, weight) chosen, as costs.

    SchedulerCostFunctionNotFound names all that are not installed, and those that are.
    """
    installed = {entry.name: entry for entry in entry_points(group=GROUP)}
    missing = [name for name, _ in chosen if name not in installed]
    if missing:
        raise SchedulerCostFunctionNotFound(
            f"Cost functions {', '.join(missing)} could not be found; known are {', '.join(sorted(installed))}"
        )
    costs = tuple(Cost(name, installed[name].load(), weight) for name, weight in chosen)
    wrong = [cost.name for cost in costs if not callable(cost.of)]
    if wrong:
        raise SchedulerCostFunctionNotFound(f"Cost functions {', '.join(wrong)} are installed, but are no functions")
    return costs
