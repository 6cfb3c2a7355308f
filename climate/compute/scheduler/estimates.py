"""Estimates: what each server of a request would cost on the node that the scheduler would choose for it.

Zones compare them, so they are absolute and the lower is the better.  The
scheduler `least_cost` has costs of its own, which are 1 for all nodes under
`host_filter`, `chance` and `availability_zone`.  Under `simple` a node costs the
cores that are in use on it.  Under `filter` it costs the part of its memory that
is promised with the new server, from 0 to 1, or what is left of it where the
RAM weigher stacks servers.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from climate.compute.errors import NoValidHost
from climate.compute.request import Spec
from climate.compute.scheduler import least_cost
from climate.compute.scheduler.chance import availability_zone, chance
from climate.compute.scheduler.costs import NOOP
from climate.compute.scheduler.hosts import Hosts
from climate.compute.scheduler.plan import Plan, Schedule
from climate.compute.scheduler.rules import Options, Rules
from climate.compute.scheduler.simple import simple

CostAt = Callable[[Hosts, int, Spec, Options], float]
"""The cost of one more server on the node in a row."""


def estimate(schedule: Schedule, hosts: Hosts, spec: Spec, count: int, rules: Rules) -> Plan:
    """The picks for `count` servers or for as many as there is room for, cheapest first; `weight` is the cost.

    Each server is counted on its node before the next one is placed.  `hosts`
    stays as it is.  Raises BadRequest for a request that the scheduler does not
    understand.
    """
    if schedule is least_cost.least_cost:
        return least_cost.select(hosts.copy(), spec, count, rules)
    if schedule is least_cost.host_filter:
        return least_cost.select(hosts.copy(), spec, count, replace(rules, costs=(NOOP,)))
    return _priced(
        _placed(schedule, hosts, spec, count, rules), hosts.copy(), spec, (COSTS.get(schedule, memory), rules)
    )


def _placed(schedule: Schedule, hosts: Hosts, spec: Spec, count: int, rules: Rules) -> Plan:
    try:
        return schedule(hosts.copy(), spec, count, rules)
    except NoValidHost as reason:
        if not reason.found:
            return Plan((), reason.trail)
        return Plan(schedule(hosts.copy(), spec, reason.found, rules).picks, reason.trail)


def _priced(plan: Plan, hosts: Hosts, spec: Spec, by: tuple[CostAt, Rules]) -> Plan:
    cost, rules = by
    picks = []
    for pick in plan.picks:
        place = int(np.searchsorted(hosts.ids, pick.node_id))
        picks.append(replace(pick, weight=cost(hosts, place, spec, rules.options)))
        hosts.consume(place, spec)
    return replace(plan, picks=tuple(sorted(picks, key=lambda pick: pick.weight)))


def memory(hosts: Hosts, place: int, spec: Spec, options: Options) -> float:
    """The part of a node's memory that is promised with this server, or what is left of it."""
    most = float(hosts.ram_mb[place] * hosts.ram_ratio[place])
    part = float(hosts.used_ram_mb[place] + spec.ram_mb) / most if most > 0 else 1.0
    return part if options.ram_multiplier >= 0 else 1.0 - part


def _cores(hosts: Hosts, place: int, spec: Spec, options: Options) -> float:
    return float(hosts.used_vcpus[place])


def _one(hosts: Hosts, place: int, spec: Spec, options: Options) -> float:
    return 1.0


COSTS: Mapping[Schedule, CostAt] = {simple: _cores, chance: _one, availability_zone: _one}
