"""Filters by free capacity.

Memory, CPUs and disk may be overcommitted by a ratio: the node's own, or in the aggregate variants the minimum of its
aggregates.
"""

import logging
from collections.abc import Callable

import numpy as np

from climate.compute.models.request import Spec
from climate.compute.scheduler.hosts import cluster_member_capacity
from climate.compute.scheduler.hosts.table import Hosts, Mask, Numbers
from climate.compute.scheduler.scheduler_parts import Again, Filter, Options

log = logging.getLogger(__name__)

Ratio = Callable[[Hosts], Numbers]


def least(hosts: Hosts, key: str, otherwise: Numbers) -> Numbers:
    """Return the minimum number that a node's aggregates have under `key`, else `otherwise`; malformed values are
    skipped.
    """

    def number(values: list[str]) -> float:
        try:
            return min((float(value) for value in values), default=np.nan)
        except ValueError:
            log.warning("Could not decode %s: '%s'", key, ", ".join(values))
            return np.nan

    named = hosts.grouping.number(lambda grouping: number(grouping.values(key)))
    return np.where(np.isnan(named), otherwise, named)


def ram_filter(name: str, ratio: Ratio) -> Filter:
    """Return a filter for enough memory; one server never gets more than the node's total, whatever the ratio.

    For a node that is a cluster, one member must have room for the whole server.
    """

    def usable(hosts: Hosts) -> Numbers:
        return hosts.ram_mb * ratio(hosts) - hosts.used_ram_mb

    def keep(hosts: Hosts, spec: Spec, options: Options) -> Mask:
        enough = (hosts.ram_mb >= spec.ram_mb) & (usable(hosts) >= spec.ram_mb)
        return enough & cluster_member_capacity.in_one_piece(hosts, spec)

    def why(hosts: Hosts, spec: Spec, options: Options, index: int) -> str:
        if not cluster_member_capacity.in_one_piece(hosts.row(index), spec)[0]:
            return cluster_member_capacity.why_not(hosts, spec, index)
        if hosts.ram_mb[index] < spec.ram_mb:
            return f"does not have {spec.ram_mb} MB usable ram before overcommit, it only has {hosts.ram_mb[index]} MB."
        only = usable(hosts.row(index))[0]
        return f"does not have {spec.ram_mb} MB usable ram, it only has {only} MB usable ram."

    return Filter(name, keep, Again.ROW, why, ("memory_mb", lambda hosts, *_: hosts.ram_mb * ratio(hosts)))


def core_filter(name: str, ratio: Ratio) -> Filter:
    """Return a filter for enough CPUs; nodes that do not report CPUs pass."""

    def keep(hosts: Hosts, spec: Spec, options: Options) -> Mask:
        known = hosts.vcpus > 0
        if not known.all():
            log.warning("VCPUs not set; assuming CPU collection broken")
        free = hosts.vcpus * ratio(hosts) - hosts.used_vcpus
        return ~known | ((hosts.vcpus >= spec.vcpus) & (free >= spec.vcpus))

    def why(hosts: Hosts, spec: Spec, options: Options, index: int) -> str:
        row = hosts.row(index)
        free = (row.vcpus * ratio(row) - row.used_vcpus)[0]
        return f"does not have {spec.vcpus} usable vcpus, it only has {min(free, row.vcpus[0])} usable vcpus."

    def limit(hosts: Hosts, spec: Spec, options: Options) -> Numbers:
        return np.where(hosts.vcpus > 0, hosts.vcpus * ratio(hosts), np.inf)

    return Filter(name, keep, Again.ROW, why, ("vcpu", limit))


def disk_filter(name: str, ratio: Ratio) -> Filter:
    """Return a filter for enough disk."""

    def usable(hosts: Hosts) -> Numbers:
        return hosts.disk_mb * ratio(hosts) - hosts.used_disk_mb

    def keep(hosts: Hosts, spec: Spec, options: Options) -> Mask:
        return usable(hosts) >= spec.disk_mb

    def why(hosts: Hosts, spec: Spec, options: Options, index: int) -> str:
        only = usable(hosts.row(index))[0]
        return f"does not have {spec.disk_mb} MB usable disk, it only has {only} MB usable disk."

    return Filter(name, keep, Again.ROW, why, ("disk_gb", lambda hosts, *_: hosts.disk_mb * ratio(hosts) / 1024))


RAM = ram_filter("RamFilter", lambda hosts: hosts.ram_ratio)
CORE = core_filter("CoreFilter", lambda hosts: hosts.cpu_ratio)
DISK = disk_filter("DiskFilter", lambda hosts: hosts.disk_ratio)
AGGREGATE_RAM = ram_filter("AggregateRamFilter", lambda hosts: least(hosts, "ram_allocation_ratio", hosts.ram_ratio))
AGGREGATE_CORE = core_filter("AggregateCoreFilter", lambda hosts: least(hosts, "cpu_allocation_ratio", hosts.cpu_ratio))
AGGREGATE_DISK = disk_filter(
    "AggregateDiskFilter", lambda hosts: least(hosts, "disk_allocation_ratio", hosts.disk_ratio)
)


def exact_filter(name: str, free: Callable[[Hosts], Numbers], wanted: Callable[[Spec], int], what: str) -> Filter:
    """Return a filter for exactly the requested free amount, so that a server gets a whole machine."""

    def why(hosts: Hosts, spec: Spec, options: Options, index: int) -> str:
        return f"does not have exactly {wanted(spec)} {what}, it has {free(hosts)[index]}."

    return Filter(name, lambda hosts, spec, options: free(hosts) == wanted(spec), Again.ROW, why)


EXACT_RAM = exact_filter("ExactRamFilter", lambda hosts: hosts.free_ram_mb, lambda spec: spec.ram_mb, "MB of ram")
EXACT_DISK = exact_filter("ExactDiskFilter", lambda hosts: hosts.free_disk_mb, lambda spec: spec.disk_mb, "MB of disk")
EXACT_CORE = exact_filter(
    "ExactCoreFilter", lambda hosts: hosts.vcpus - hosts.used_vcpus, lambda spec: spec.vcpus, "vcpus"
)
