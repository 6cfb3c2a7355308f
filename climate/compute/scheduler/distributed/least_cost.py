"""Distributed scheduler within one deployment: filter, compute costs, choose the cheapest node, count the server."""

import logging
from dataclasses import replace

from climate.compute.errors import NoValidHost
from climate.compute.models.request import Spec
from climate.compute.scheduler.decisions import log as decision_log
from climate.compute.scheduler.distributed.costs import NOOP
from climate.compute.scheduler.distributed.node_selection import Priced, begun
from climate.compute.scheduler.filtering.scheduler import refusal
from climate.compute.scheduler.hosts.table import Hosts
from climate.compute.scheduler.placement_plan import Plan
from climate.compute.scheduler.scheduler_parts import Rules

log = logging.getLogger(__name__)

REASON = "No valid host was found. No hosts were available."


def least_cost(hosts: Hosts, spec: Spec, count: int, rules: Rules) -> Plan:
    """Return the cheapest node for each server by the configured costs. Raise NoValidHost if one gets none."""
    build = begun(hosts, spec, count, rules)
    plan = _plan(build, count)
    if len(plan.picks) < count:
        reason = refusal(spec, count, build.record, REASON)
        raise NoValidHost(reason, trail=plan.trail, found=len(plan.picks))
    return plan


def host_filter(hosts: Hosts, spec: Spec, count: int, rules: Rules) -> Plan:
    """Return the first node that the host filter leaves, for each server; all costs are 1."""
    return least_cost(hosts, spec, count, replace(rules, costs=(NOOP,)))


def select(hosts: Hosts, spec: Spec, count: int, rules: Rules) -> Plan:
    """Return a plan, cheapest first, for `count` servers or as many as fit.

    Each pick is counted before the next. Consumes `hosts`. Raise BadRequest for an unknown host filter.
    """
    return _plan(begun(hosts, spec, count, rules), count)


def _plan(build: Priced, count: int) -> Plan:
    while len(build.picks) < count and build.mask.any():
        build.pick()
    if len(build.picks) < count:
        log.warning("Filter returned no hosts after processing %d of %d instances", len(build.picks), count)
        decision_log.all_removed(build.spec, len(build.picks), build.stages)
    build.sort()
    return Plan(tuple(build.picks), {**build.record.trail(), "scheduler": "least_cost"})
