"""Estimates: cost of each server of a request on the node that the scheduler would choose.

Zones compare estimates, so costs are absolute, and lower is better. The scheduler `least_cost` has its own costs, which
are 1 for all nodes under `host_filter`, `chance` and `availability_zone`. Under `simple` the cost is the number of used
cores. Under `filter` and third-party schedulers it is the allocated share of the node's memory with the new server,
from 0 to 1. It is the remaining share if the RAM weigher stacks servers. Under `multi` it is that of the scheduler for
new servers.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from climate.compute.errors import NoValidHost
from climate.compute.models.request import Spec
from climate.compute.scheduler.chance import availability_zone, chance
from climate.compute.scheduler.decisions import notifications
from climate.compute.scheduler.decisions.notifications import Tell, silent
from climate.compute.scheduler.distributed import least_cost
from climate.compute.scheduler.distributed.costs import NOOP
from climate.compute.scheduler.hosts.table import Hosts
from climate.compute.scheduler.placement_plan import Plan, Schedule
from climate.compute.scheduler.scheduler_parts import Options, Rules
from climate.compute.scheduler.simple import simple

Rows = NDArray[np.int64]
Costs = NDArray[np.float64]
Asked = tuple[Spec, Options]

CostOf = Callable[[Hosts, Rows, Rows, Asked], Costs]
"""Function that returns the costs of servers on the nodes in these rows, given the earlier picks of each node."""


def estimate(schedule: Schedule, hosts: Hosts, spec: Spec, count: int, rules: Rules, tell: Tell = silent) -> Plan:
    """Return the picks for `count` servers, or as many as fit, cheapest first; `weight` is the cost.

    Each server is counted on its node before the next is placed. `hosts` is unchanged. Raise BadRequest for an invalid
    request.
    """
    if schedule is least_cost.least_cost:
        return _placed(least_cost.select, hosts, spec, (count, rules), tell)
    if schedule is least_cost.host_filter:
        return _placed(least_cost.select, hosts, spec, (count, replace(rules, costs=(NOOP,))), tell)
    return _priced(
        _placed(schedule, hosts, spec, (count, rules), tell), hosts, spec, (COSTS.get(schedule, memory), rules)
    )


def _placed(schedule: Schedule, hosts: Hosts, spec: Spec, asked: tuple[int, Rules], tell: Tell) -> Plan:
    count, rules = asked
    try:
        return notifications.run(schedule, hosts.copy(), spec, asked, tell)
    except NoValidHost as reason:
        if not 0 < reason.found < count:
            return Plan((), reason.trail)
        return Plan(notifications.run(schedule, hosts.copy(), spec, (reason.found, rules), tell).picks, reason.trail)


def _priced(plan: Plan, hosts: Hosts, spec: Spec, by: tuple[CostOf, Rules]) -> Plan:
    cost, rules = by
    nodes = np.array([pick.node_id for pick in plan.picks], dtype=hosts.ids.dtype)
    indexes = np.searchsorted(hosts.ids, nodes)
    weights = cost(hosts, indexes, _before(indexes), (spec, rules.options)).tolist()
    picks = [replace(pick, weight=weight) for pick, weight in zip(plan.picks, weights, strict=True)]
    return replace(plan, picks=tuple(sorted(picks, key=lambda pick: pick.weight)))


def _before(indexes: Rows) -> Rows:
    """Return the number of earlier picks of the same node, for each pick."""
    order = np.argsort(indexes, kind="stable")
    begins = np.flatnonzero(np.diff(indexes[order], prepend=-1))
    counts = np.diff(np.append(begins, len(indexes)))
    result = np.empty(len(indexes), dtype=np.int64)
    result[order] = np.arange(len(indexes)) - np.repeat(begins, counts)
    return result


def memory(hosts: Hosts, indexes: Rows, before: Rows, asked: Asked) -> Costs:
    """Return the share of a node's memory that is allocated with this server, or the remaining share."""
    spec, options = asked
    most = hosts.ram_mb[indexes] * hosts.ram_ratio[indexes]
    used = hosts.used_ram_mb[indexes] + spec.ram_mb * (before + 1)
    part = np.divide(used, most, out=np.ones(len(indexes)), where=most > 0)
    return part if options.ram_multiplier >= 0 else 1.0 - part


def _cores(hosts: Hosts, indexes: Rows, before: Rows, asked: Asked) -> Costs:
    spec, _ = asked
    return (hosts.used_vcpus[indexes] + spec.vcpus * before).astype(float)


def _one(hosts: Hosts, indexes: Rows, before: Rows, asked: Asked) -> Costs:
    return np.ones(len(indexes))


COSTS: Mapping[Schedule, CostOf] = {simple: _cores, chance: _one, availability_zone: _one}
