"""Scheduler `simple`: the node with the fewest used cores, below a maximum.

It is the filter scheduler with one filter and one weigher.
"""

from dataclasses import replace

import numpy as np

from climate.compute.errors import BadRequest, NoValidHost
from climate.compute.models.request import Spec
from climate.compute.scheduler.chance import NONE_UP
from climate.compute.scheduler.filtering.scheduler import REASON, select
from climate.compute.scheduler.filters.location import forced
from climate.compute.scheduler.filters.mandatory import MANDATORY_FILTERS
from climate.compute.scheduler.hosts.table import Hosts, Mask, Numbers
from climate.compute.scheduler.placement_plan import Plan
from climate.compute.scheduler.scheduler_parts import Again, Filter, Options, Rules, Weigher

TOO_MANY = "No valid host was found. All hosts have too many cores."


def simple(hosts: Hosts, spec: Spec, count: int, rules: Rules) -> Plan:
    """Return the least loaded node for each server; a host that an administrator forces is used whatever its load.

    Raise NoValidHost; BadRequest if the forced host is not alive. A disabled host that is alive may be forced. Consumes
    `hosts`.
    """
    there = _alive(hosts, spec) if spec.forced else hosts
    asked = replace(rules, filters=(*MANDATORY_FILTERS, FEW_CORES), weighers=(CORES,))
    try:
        return select(there, spec, count, asked)
    except NoValidHost as refused:
        reason = TOO_MANY if refused.trail.get("refused") == FEW_CORES.name else NONE_UP
        raise NoValidHost(str(refused).replace(REASON, reason), trail=refused.trail, found=refused.found) from None


def _alive(hosts: Hosts, spec: Spec) -> Hosts:
    """Return the nodes; those that are not alive count as absent."""
    named = forced(hosts, spec)
    if named.any() and not (named & hosts.up).any():
        raise BadRequest(f"Host {', '.join((*spec.force_hosts, *spec.force_nodes))} is not alive.")
    return replace(hosts, present=hosts.present & hosts.up)


def has_few_cores(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    """Return the nodes where used cores with this server stay within the maximum."""
    return np.asarray(hosts.used_vcpus + spec.vcpus <= options.max_cores, dtype=np.bool_)


def _why(hosts: Hosts, spec: Spec, options: Options, index: int) -> str:
    return f"has {hosts.used_vcpus[index]:g} of {options.max_cores} cores in use."


def cores(hosts: Hosts, spec: Spec, options: Options) -> Numbers:
    """Return the number of used cores."""
    return hosts.used_vcpus


def _most(hosts: Hosts, spec: Spec, options: Options) -> Numbers:
    return np.full(len(hosts), float(options.max_cores))


FEW_CORES = Filter("SimpleCoresFilter", has_few_cores, Again.ROW, _why, limit=("vcpu", _most))
CORES = Weigher("SimpleCoresWeigher", cores, lambda options: -1.0)
