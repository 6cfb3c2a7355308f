"""Host filters of the distributed scheduler: nodes that match a flavor or a query, as in Nova's host_filter.

A node's capabilities are `host_memory_free` (unallocated MB), `disk_available` (unallocated GB), and the stats of its
driver. Queries name them below `$compute`.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from climate.compute.errors import BadRequest, SchedulerHostFilterNotFound
from climate.compute.models.request import Spec
from climate.compute.scheduler import installed_parts
from climate.compute.scheduler.distributed.json_query import Path, Query, parse
from climate.compute.scheduler.filters.location import ALL_HOSTS
from climate.compute.scheduler.hosts.table import Hosts, Mask, Numbers, Profile
from climate.compute.scheduler.scheduler_parts import Again, Filter, Options, Rules

GROUP = "climate.scheduler_host_filters"

SERVICE = "compute"
"""Service name under which queries find capabilities."""


def chosen(spec: Spec, rules: Rules) -> Filter:
    """Return the host filter of the request, else the configured one. Raise BadRequest for an unknown one."""
    return named(spec.host_filter or rules.options.host_filter, rules.host_filters or HOST_FILTERS)


def named(name: str, known: Mapping[str, Filter]) -> Filter:
    """Return the host filter of that name. Raise BadRequest for an unknown one."""
    if name not in known:
        raise BadRequest(f"Scheduler Host Filter {name[:80]} could not be found. Known are {', '.join(known)}.")
    return known[name]


def load(names: Sequence[str]) -> Mapping[str, Filter]:
    """Return the installed host filters of these names, or the bundled ones if none is named.

    Raise SchedulerHostFilterNotFound for names that are not installed or not a Filter.
    """
    if not names:
        return HOST_FILTERS
    result = installed_parts.named(GROUP, "Scheduler Host Filter", names, SchedulerHostFilterNotFound)
    wrong = [name for name, part in result.items() if not isinstance(part, Filter)]
    if wrong:
        raise SchedulerHostFilterNotFound(f"Scheduler Host Filter {', '.join(wrong)} is installed, but is not a Filter")
    return result


def large_enough(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    """Return the nodes with enough free memory and disk whose stats equal each extra spec in value and type."""
    extra = {} if spec.flavor is None else spec.flavor.extra_specs
    return _roomy(hosts, spec) & hosts.profile.where(lambda profile: _has(profile, extra))


def _why_too_small(hosts: Hosts, spec: Spec, options: Options, index: int) -> str:
    """Return the shortage of memory and disk, else the stats."""
    stats = dict(hosts.profile.row(index).values[0].stats)
    return f"has the stats {stats}." if _roomy(hosts, spec)[index] else _free(hosts, index)


def _free(hosts: Hosts, index: int) -> str:
    return f"has {hosts.free_ram_mb[index]:g} MB of memory and {_free_disk_gb(hosts)[index]:g} GB of disk free."


def _has(profile: Profile, extra: Mapping[str, str]) -> bool:
    stats = profile.stats
    return all(type(stats.get(key)) is type(value) and stats[key] == value for key, value in extra.items())


def satisfying_query(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    """Return the nodes that satisfy the flavor and the hint `query`.

    The flavor's part is `["and", [">=", "$compute.host_memory_free", MB], [">=", "$compute.disk_available", GB]]`,
    evaluated on the columns directly.
    """
    return _roomy(hosts, spec) & matching(hosts, parse(spec.hints.get("query")))


def _why_not_asked(hosts: Hosts, spec: Spec, options: Options, index: int) -> str:
    return "does not match the query." if _roomy(hosts, spec)[index] else _free(hosts, index)


def _roomy(hosts: Hosts, spec: Spec) -> Mask:
    enough = (hosts.free_ram_mb >= spec.ram_mb) & (_free_disk_gb(hosts) >= spec.disk_mb / 1024)
    return np.asarray(enough, dtype=np.bool_)


def matching(hosts: Hosts, query: Query) -> Mask:
    """Return the nodes whose capabilities match a query."""
    return query.where(lambda path: _capability(hosts, path), len(hosts))


def _capability(hosts: Hosts, path: Path) -> Sequence[object]:
    """Return the values of one capability; None for nodes without it."""
    service, *inner = path
    if service != SERVICE:
        return [None] * len(hosts)
    if inner == ["host_memory_free"]:
        return list(hosts.free_ram_mb.tolist())
    if inner == ["disk_available"]:
        return list(_free_disk_gb(hosts).tolist())
    values = [_inside(profile.stats, inner) for profile in hosts.profile.values]
    return [values[code] for code in hosts.profile.codes]


def _inside(stats: Mapping[str, object], path: Sequence[str]) -> object:
    def down(value: object, key: str) -> Any:
        return value.get(key) if isinstance(value, Mapping) else None

    return reduce(down, path, stats)


def _free_disk_gb(hosts: Hosts) -> Numbers:
    return hosts.free_disk_mb / 1024


def _disk_limit(hosts: Hosts, spec: Spec, options: Options) -> Numbers:
    return hosts.disk_mb / 1024


INSTANCE_TYPE = Filter("InstanceTypeFilter", large_enough, Again.ROW, _why_too_small, limit=("disk_gb", _disk_limit))
JSON = Filter("JsonFilter", satisfying_query, Again.ROW, _why_not_asked, limit=("disk_gb", _disk_limit))

HOST_FILTERS = {rule.name: rule for rule in (ALL_HOSTS, INSTANCE_TYPE, JSON)}
"""Default value of CLIMATE_SCHEDULER_HOST_FILTERS: filters that a request can name."""
