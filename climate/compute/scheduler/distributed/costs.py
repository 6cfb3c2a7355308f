"""Named cost functions: lower is better, and a node's cost is the weighted sum, as in Nova's least_cost.

Settings can name each installed entry point of the group `climate.scheduler_costs`; the bundled ones are loaded the
same way as third-party ones.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from climate.compute.errors import SchedulerCostFunctionNotFound
from climate.compute.models.request import Spec
from climate.compute.scheduler import installed_parts
from climate.compute.scheduler.hosts.table import Hosts, Numbers
from climate.compute.scheduler.scheduler_parts import Cost, Sees

GROUP = "climate.scheduler_costs"


def noop_cost_fn(hosts: Hosts, spec: Spec) -> Numbers:
    """Return the same cost for every node."""
    return np.ones(len(hosts))


def compute_fill_first_cost_fn(hosts: Hosts, spec: Spec) -> Numbers:
    """Return the unallocated memory in MB: the fullest node with enough room is the cheapest."""
    return hosts.free_ram_mb


def compute_same_user_cost_fn(hosts: Hosts, spec: Spec) -> Numbers:
    """Return the number of servers of the requesting user, so that a failed node hits few of them."""
    return np.zeros(len(hosts)) if spec.occupants is None else spec.occupants.count(hosts.ids, user_id=spec.user_id)


SAME_USER = Cost("compute_same_user_cost_fn", compute_same_user_cost_fn, sees=Sees.OWN)
NOOP = Cost("noop_cost_fn", noop_cost_fn)


def normalised(costs: Numbers) -> Numbers:
    """Return `costs` divided by their maximum if that is above zero, else unchanged."""
    greatest = costs.max(initial=0.0)
    return costs / greatest if greatest > 0 else costs


def total(costs: Sequence[Cost], columns: Sequence[Numbers]) -> Numbers:
    """Return the cost of each node: the sum of its normalised costs times their weights."""
    parts = [cost.weight * column for cost, column in zip(costs, columns, strict=True)]
    return np.asarray(np.sum(parts, axis=0), dtype=np.float64)


def load(chosen: Sequence[tuple[str, float]]) -> tuple[Cost, ...]:
    """Return the costs for the configured (name, weight) pairs.

    Raise SchedulerCostFunctionNotFound with all missing names and the installed ones.
    """
    result = installed_parts.named(GROUP, "Cost functions", [name for name, _ in chosen], SchedulerCostFunctionNotFound)
    wrong = [name for name, part in result.items() if not isinstance(part, Cost) and not callable(part)]
    if wrong:
        raise SchedulerCostFunctionNotFound(f"Cost functions {', '.join(wrong)} are installed, but are not functions")
    return tuple(_cost(name, result[name], weight) for name, weight in chosen)


def _cost(name: str, part: Any, weight: float) -> Cost:
    return replace(part, name=name, weight=weight) if isinstance(part, Cost) else Cost(name, part, weight)
