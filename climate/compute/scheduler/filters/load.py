"""Filters by the load of a node: its servers, and the operations on them."""

from collections.abc import Callable

import numpy as np

from climate.compute.models.request import Spec
from climate.compute.scheduler.filters.capacity import least
from climate.compute.scheduler.hosts.table import Hosts, Mask, Numbers
from climate.compute.scheduler.scheduler_parts import Again, Filter, Options, Weigh


def fewer_filter(
    name: str, has: Callable[[Hosts], Numbers], most: Weigh, what: str, limited: str | None = None
) -> Filter:
    """Return a filter for fewer than `most` of something; `limited`: name of the limit for a claim, if any."""

    def keep(hosts: Hosts, spec: Spec, options: Options) -> Mask:
        return has(hosts) < most(hosts, spec, options)

    def why(hosts: Hosts, spec: Spec, options: Options, index: int) -> str:
        row = hosts.row(index)
        return f"has {has(row)[0]:.0f} {what}, and the maximum is {most(row, spec, options)[0]:.0f}."

    def limit(hosts: Hosts, spec: Spec, options: Options) -> Numbers:
        return np.ceil(most(hosts, spec, options))

    return Filter(name, keep, Again.ROW, why, (limited, limit) if limited else None)


def _io_ops(hosts: Hosts) -> Numbers:
    return hosts.io_ops


def _servers(hosts: Hosts) -> Numbers:
    return hosts.servers


def _most_io_ops(hosts: Hosts, spec: Spec, options: Options) -> Numbers:
    return np.full(len(hosts), float(options.max_io_ops_per_host))


def _most_servers(hosts: Hosts, spec: Spec, options: Options) -> Numbers:
    return np.full(len(hosts), float(options.max_instances_per_host))


def _of_aggregate(key: str, otherwise: Weigh) -> Weigh:
    return lambda hosts, spec, options: least(hosts, key, otherwise(hosts, spec, options))


IO_OPS = fewer_filter("IoOpsFilter", _io_ops, _most_io_ops, "io ops")
NUM_INSTANCES = fewer_filter("NumInstancesFilter", _servers, _most_servers, "instances", "servers")
AGGREGATE_IO_OPS = fewer_filter(
    "AggregateIoOpsFilter", _io_ops, _of_aggregate("max_io_ops_per_host", _most_io_ops), "io ops"
)
AGGREGATE_NUM_INSTANCES = fewer_filter(
    "AggregateNumInstancesFilter",
    _servers,
    _of_aggregate("max_instances_per_host", _most_servers),
    "instances",
    "servers",
)
