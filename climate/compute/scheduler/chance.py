"""Schedulers `chance` and `availability_zone`: any live node, or any live node of a zone, at random.

Both are the filter scheduler with few filters and no weigher, which chooses at random among the remaining nodes.
"""

from collections.abc import Sequence
from dataclasses import replace

from climate.compute.errors import NoValidHost
from climate.compute.models.request import Spec
from climate.compute.scheduler.filtering.scheduler import REASON, select
from climate.compute.scheduler.filters.location import AVAILABILITY_ZONE
from climate.compute.scheduler.filters.mandatory import MANDATORY_FILTERS
from climate.compute.scheduler.hosts.table import Hosts
from climate.compute.scheduler.placement_plan import Plan
from climate.compute.scheduler.scheduler_parts import Filter, Rules

NONE_UP = (
    "No valid host was found. Scheduler was unable to locate a host for this request. "
    "Is the appropriate service running?"
)
ALL_IGNORED = "No valid host was found. Could not find another compute."


def chance(hosts: Hosts, spec: Spec, count: int, rules: Rules) -> Plan:
    """Return a random node for each server. Raise NoValidHost if there is none."""
    return _any_of(hosts, spec, count, rules, ())


def availability_zone(hosts: Hosts, spec: Spec, count: int, rules: Rules) -> Plan:
    """Return a random node of the requested zone for each server; without a zone, of all nodes. Raise NoValidHost."""
    return _any_of(hosts, spec, count, rules, (AVAILABILITY_ZONE,))


def _any_of(hosts: Hosts, spec: Spec, count: int, rules: Rules, more: Sequence[Filter]) -> Plan:
    options = replace(rules.options, host_subset_size=max(1, len(hosts)))
    asked = replace(rules, filters=(*MANDATORY_FILTERS, *more), weighers=(), options=options)
    try:
        return select(hosts, spec, count, asked)
    except NoValidHost as refused:
        reason = ALL_IGNORED if spec.ignore_hosts or spec.tried else NONE_UP
        raise NoValidHost(str(refused).replace(REASON, reason), trail=refused.trail, found=refused.found) from None
