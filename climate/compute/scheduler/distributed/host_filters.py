"""The host filters of the distributed scheduler (cloud.md B.10): which nodes a size, or a query, asks for.

A node's capabilities are `host_memory_free` (MB, not promised), `disk_available`
(GB, not promised), and the stats that its driver gives.  In queries they stand
below `$compute`.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from climate.compute.errors import BadRequest, SchedulerHostFilterNotFound
from climate.compute.models.request import Spec
from climate.compute.scheduler import parts
from climate.compute.scheduler.distributed.json_query import Path, Query, parse
from climate.compute.scheduler.filters.location import ALL_HOSTS
from climate.compute.scheduler.hosts.table import Hosts, Mask, Numbers, Profile
from climate.compute.scheduler.scheduler_parts import Again, Filter, Options, Rules

GROUP = "climate.scheduler_host_filters"

SERVICE = "compute"
"""The service whose capabilities a query can ask for."""


def chosen(spec: Spec, rules: Rules) -> Filter:
    """The host filter that the request names, else the configured one; BadRequest for one that is not in the list."""
    return named(spec.host_filter or rules.options.host_filter, rules.host_filters or HOST_FILTERS)


def named(name: str, known: Mapping[str, Filter]) -> Filter:
    """The host filter of that name; BadRequest for one that is not in the list."""
    if name not in known:
        raise BadRequest(f"Scheduler Host Filter {name[:80]} could not be found. Known are {', '.join(known)}.")
    return known[name]


def load(names: Sequence[str]) -> Mapping[str, Filter]:
    """Return the installed host filters of these names, which are then the only ones; with none named, the bundled.

    Raises SchedulerHostFilterNotFound for names that are not installed and for what is no Filter.
    """
    if not names:
        return HOST_FILTERS
    found = parts.named(GROUP, "Scheduler Host Filter", names, SchedulerHostFilterNotFound)
    wrong = [name for name, part in found.items() if not isinstance(part, Filter)]
    if wrong:
        raise SchedulerHostFilterNotFound(f"Scheduler Host Filter {', '.join(wrong)} is installed, but it is no Filter")
    return found


def large_enough(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    """Enough memory and disk is free, and each extra spec is a stat of the node: the same value in the same type."""
    extra = {} if spec.flavor is None else spec.flavor.extra_specs
    return _roomy(hosts, spec) & hosts.profile.where(lambda profile: _has(profile, extra))


def _why_too_small(hosts: Hosts, spec: Spec, options: Options, place: int) -> str:
    """What there is too little of, else what the stats are."""
    stats = dict(hosts.profile.row(place).values[0].stats)
    return f"has the stats {stats}." if _roomy(hosts, spec)[place] else _free(hosts, place)


def _free(hosts: Hosts, place: int) -> str:
    return f"has {hosts.free_ram_mb[place]:g} MB of memory and {_free_disk_gb(hosts)[place]:g} GB of disk free."


def _has(profile: Profile, extra: Mapping[str, str]) -> bool:
    stats = profile.stats
    return all(type(stats.get(key)) is type(value) and stats[key] == value for key, value in extra.items())


def asked_by_query(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    """What the flavor asks for and what the hint `query` asks for besides.

    The flavor's part is `["and", [">=", "$compute.host_memory_free", MB],
    [">=", "$compute.disk_available", GB]]`, asked of the columns directly.
    """
    return _roomy(hosts, spec) & matching(hosts, parse(spec.hints.get("query")))


def _why_not_asked(hosts: Hosts, spec: Spec, options: Options, place: int) -> str:
    return "is not what the query asks for." if _roomy(hosts, spec)[place] else _free(hosts, place)


def _roomy(hosts: Hosts, spec: Spec) -> Mask:
    enough = (hosts.free_ram_mb >= spec.ram_mb) & (_free_disk_gb(hosts) >= spec.disk_mb / 1024)
    return np.asarray(enough, dtype=np.bool_)


def matching(hosts: Hosts, query: Query) -> Mask:
    """Which nodes have the capabilities that a query asks for."""
    return query.where(lambda path: _capability(hosts, path), len(hosts))


def _capability(hosts: Hosts, path: Path) -> Sequence[Any]:
    """The values of one capability; None where a node lacks it."""
    service, *inner = path
    if service != SERVICE:
        return [None] * len(hosts)
    if inner == ["host_memory_free"]:
        return list(hosts.free_ram_mb.tolist())
    if inner == ["disk_available"]:
        return list(_free_disk_gb(hosts).tolist())
    values = [_inside(profile.stats, inner) for profile in hosts.profile.values]
    return [values[code] for code in hosts.profile.codes]


def _inside(stats: Mapping[str, Any], path: Sequence[str]) -> Any:
    def down(value: Any, key: str) -> Any:
        return value.get(key) if isinstance(value, Mapping) else None

    return reduce(down, path, stats)


def _free_disk_gb(hosts: Hosts) -> Numbers:
    return hosts.free_disk_mb / 1024


def _disk_limit(hosts: Hosts, spec: Spec, options: Options) -> Numbers:
    return hosts.disk_mb / 1024


INSTANCE_TYPE = Filter("InstanceTypeFilter", large_enough, Again.ROW, _why_too_small, limit=("disk_gb", _disk_limit))
JSON = Filter("JsonFilter", asked_by_query, Again.ROW, _why_not_asked, limit=("disk_gb", _disk_limit))

HOST_FILTERS = {rule.name: rule for rule in (ALL_HOSTS, INSTANCE_TYPE, JSON)}
"""Those that a request can name when CLIMATE_SCHEDULER_HOST_FILTERS names none."""
