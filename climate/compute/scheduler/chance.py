"""Schedulers that look at nothing but whether a node is there: any node, or any of a zone (cloud.md B.1, C.3).

They are the filter scheduler with few filters and no weigher, which chooses
among all that stay.
"""

from collections.abc import Sequence
from dataclasses import replace

from climate.compute.errors import NoValidHost
from climate.compute.models.request import Spec
from climate.compute.scheduler.filtering.scheduler import REASON, select
from climate.compute.scheduler.filters.location import AVAILABILITY_ZONE
from climate.compute.scheduler.filters.mandatory import STANDING
from climate.compute.scheduler.hosts.table import Hosts
from climate.compute.scheduler.placement_plan import Plan
from climate.compute.scheduler.scheduler_parts import Filter, Rules

NONE_UP = (
    "No valid host was found. Scheduler was unable to locate a host for this request. "
    "Is the appropriate service running?"
)
ALL_IGNORED = "No valid host was found. Could not find another compute."


def chance(hosts: Hosts, spec: Spec, count: int, rules: Rules) -> Plan:
    """Any node for each server, each as likely as the others; NoValidHost when there is none."""
    return _any_of(hosts, spec, count, rules, ())


def availability_zone(hosts: Hosts, spec: Spec, count: int, rules: Rules) -> Plan:
    """Any node of the zone that was asked for, of all nodes when none was; NoValidHost when there is none."""
    return _any_of(hosts, spec, count, rules, (AVAILABILITY_ZONE,))


def _any_of(hosts: Hosts, spec: Spec, count: int, rules: Rules, more: Sequence[Filter]) -> Plan:
    options = replace(rules.options, host_subset_size=max(1, len(hosts)))
    asked = replace(rules, filters=(*STANDING, *more), weighers=(), options=options)
    try:
        return select(hosts, spec, count, asked)
    except NoValidHost as refused:
        reason = ALL_IGNORED if spec.ignore_hosts or spec.tried else NONE_UP
        raise NoValidHost(str(refused).replace(REASON, reason), trail=refused.trail, found=refused.found) from None
