"""Weighers: higher is better."""

from collections.abc import Callable, Mapping

import numpy as np

from climate.compute.models.request import Spec
from climate.compute.scheduler.filters.affinity import members
from climate.compute.scheduler.hosts.table import Hosts, Numbers
from climate.compute.scheduler.scheduler_parts import Again, Options, Weigher


def free_ram(hosts: Hosts, spec: Spec, options: Options) -> Numbers:
    """Return the unallocated memory in MB."""
    return hosts.free_ram_mb


def io_ops(hosts: Hosts, spec: Spec, options: Options) -> Numbers:
    """Return the number of servers that are being built, imaged, resized and the like."""
    return hosts.io_ops


def metrics(hosts: Hosts, spec: Spec, options: Options) -> Numbers:
    """Return the weighted sum of the configured metrics; a node without one cannot be weighed, or gets a low value."""
    if not options.metrics:
        return np.zeros(len(hosts))
    lacking = np.nan if options.metrics_required else options.weight_of_unavailable

    def total(reported: Mapping[str, float]) -> float:
        if any(reported.get(name) is None for name, _ in options.metrics):
            return lacking
        return sum(reported[name] * ratio for name, ratio in options.metrics)

    return np.fromiter((total(reported) for reported in hosts.metrics), np.float64, len(hosts))


def near(hosts: Hosts, spec: Spec, options: Options) -> Numbers:
    """Return the number of the group's servers on each node."""
    return members(hosts, spec.group) if spec.group else np.zeros(len(hosts))


def _kept(policy: str) -> Callable[[Spec], bool]:
    """Return a condition on a request: it belongs to a group with this policy."""
    return lambda spec: spec.group is not None and spec.group.policy == policy


RAM = Weigher("RAMWeigher", free_ram, lambda options: options.ram_multiplier, floor=0.0)
IO_OPS = Weigher("IoOpsWeigher", io_ops, lambda options: options.io_ops_multiplier, floor=0.0)
METRICS = Weigher("MetricsWeigher", metrics, lambda options: options.metrics_multiplier, again=Again.NEVER)
SOFT_AFFINITY = Weigher(
    "ServerGroupSoftAffinityWeigher",
    near,
    lambda options: options.soft_affinity_multiplier,
    when=_kept("soft-affinity"),
)
SOFT_ANTI_AFFINITY = Weigher(
    "ServerGroupSoftAntiAffinityWeigher",
    lambda hosts, spec, options: -near(hosts, spec, options),
    lambda options: options.soft_anti_affinity_multiplier,
    when=_kept("soft-anti-affinity"),
)
WEIGHERS = (RAM, IO_OPS, METRICS, SOFT_AFFINITY, SOFT_ANTI_AFFINITY)
