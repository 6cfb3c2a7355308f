"""Weights of candidate nodes, cached between the servers of a build."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from climate.compute.errors import ComputeHostMetricNotFound
from climate.compute.models.request import Spec
from climate.compute.scheduler.decisions.record import Weighed
from climate.compute.scheduler.hosts.table import Hosts, Mask, Numbers
from climate.compute.scheduler.scheduler_parts import Again, Rules, Weigher

Places = NDArray[np.intp]
"""Ascending row indexes of a table of hosts."""


@dataclass(slots=True)
class Weights:
    """Raw weights of each candidate node, normalised to 0…1 over the remaining nodes for each pick."""

    rules: Rules
    raw: list[Numbers]
    ranges: list[tuple[float, float]] = field(default_factory=list)
    """(minimum, span) of each weigher at the last pick."""

    def totals(self, count: int) -> Numbers:
        """Return the weight of each of the `count` nodes. Raise ComputeHostMetricNotFound if a weigher has no value."""
        self.ranges = [self._range(number) for number in range(len(self.raw))]
        total = np.zeros(count)
        for rule, values, (low, span) in zip(self.rules.weighers, self.raw, self.ranges, strict=True):
            if span:
                part = values - low
                part /= span
                part *= rule.multiplier(self.rules.options)
                total += part
        return total

    def _range(self, number: int) -> tuple[float, float]:
        rule = self.rules.weighers[number]
        if self.ranges and rule.again is Again.NEVER and not self.ranges[number][1]:
            return self.ranges[number]  # constant values stay constant when nodes are removed
        return _range(rule, self.raw[number])

    def of(self, at: int, total: float) -> Weighed:
        """Return the parts of the last total of one node."""
        raw = [float(values[at]) for values in self.raw]
        parts = [(value - low) / span if span else 0.0 for value, (low, span) in zip(raw, self.ranges, strict=True)]
        return raw, parts, total

    def keep(self, stays: Mask) -> None:
        """Remove the nodes outside the mask."""
        self.raw = [values[stays] for values in self.raw]

    def renew(self, at: int | None, row: Hosts, hosts: Hosts, among: Places, spec: Spec) -> None:
        """Recompute the weights that another server on the node at `at` changes; None: the node was removed."""
        for number, rule in enumerate(self.rules.weighers):
            if rule.again is Again.ALL:
                self.raw[number] = rule.weigh(hosts, spec, self.rules.options)[among]
            elif rule.again is Again.ROW and at is not None:
                self.raw[number][at] = rule.weigh(row, spec, self.rules.options)[0]


def weights(hosts: Hosts, among: Places, spec: Spec, rules: Rules) -> Weights:
    """Return the weights of the candidate nodes, computed for the first time."""
    return Weights(rules, [rule.weigh(hosts, spec, rules.options)[among] for rule in rules.weighers])


def _range(rule: Weigher, values: Numbers) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ComputeHostMetricNotFound(f"The weigher '{rule.name}' requires a metric that a host does not report.")
    low = low if rule.floor is None else min(low, rule.floor)
    high = high if rule.ceiling is None else max(high, rule.ceiling)
    return low, high - low


def best(totals: Numbers, size: int) -> Sequence[int]:
    """Return the indexes of the `size` largest totals, largest first; equals keep their order."""
    if size == 1:
        return [int(totals.argmax())]
    if totals.min() == totals.max():
        return range(size)
    least = np.partition(totals, -size)[-size]
    enough = np.flatnonzero(totals >= least)
    order = np.argsort(-totals[enough], kind="stable")[:size]
    return [int(at) for at in enough[order]]
