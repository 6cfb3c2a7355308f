"""Attributes of hosts by name: `free_ram_mb`, `hypervisor_type`, `cpu_info`, and the statistics of drivers."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from climate.compute.scheduler.distributed.json_query import Path
from climate.compute.scheduler.hosts.table import Coded, Hosts, Numbers

Column = Callable[[Hosts], Coded[object]]


def _number(of: Callable[[Hosts], Numbers], whole: bool = True) -> Column:
    """Return a column of numbers; sizes and counts are shown without a fraction."""

    def column(hosts: Hosts) -> Coded[object]:
        values, codes = np.unique(of(hosts), return_inverse=True)
        shown = [int(value) if whole and value == int(value) else value for value in values.tolist()]
        return Coded(codes.astype(np.int32), tuple(shown))

    return column


def _each(of: Callable[[Hosts], Iterable[object]]) -> Column:
    return lambda hosts: Coded(np.arange(len(hosts), dtype=np.int32), tuple(of(hosts)))


def _profile(name: str) -> Column:
    def column(hosts: Hosts) -> Coded[object]:
        return Coded(hosts.profile.codes, tuple(getattr(profile, name) for profile in hosts.profile.values))

    return column


def _service(hosts: Hosts) -> list[Mapping[str, object]]:
    rows = zip(hosts.service_hosts, hosts.disabled.tolist(), hosts.up.tolist(), strict=True)
    return [{"host": host, "disabled": disabled, "up": up} for host, disabled, up in rows]


COLUMNS: dict[str, Column] = {
    "host": _each(lambda hosts: hosts.service_hosts),
    "nodename": _each(lambda hosts: hosts.names),
    "hypervisor_hostname": _each(lambda hosts: hosts.names),
    "host_ip": _each(lambda hosts: hosts.host_ips),
    "total_usable_ram_mb": _number(lambda hosts: hosts.ram_mb),
    "free_ram_mb": _number(lambda hosts: hosts.free_ram_mb),
    "total_usable_disk_gb": _number(lambda hosts: hosts.disk_mb / 1024),
    "free_disk_mb": _number(lambda hosts: hosts.free_disk_mb),
    "disk_mb_used": _number(lambda hosts: hosts.used_disk_mb),
    "vcpus_total": _number(lambda hosts: hosts.vcpus),
    "vcpus_used": _number(lambda hosts: hosts.used_vcpus),
    "num_instances": _number(lambda hosts: hosts.servers),
    "num_io_ops": _number(lambda hosts: hosts.io_ops),
    "ram_allocation_ratio": _number(lambda hosts: hosts.ram_ratio, whole=False),
    "cpu_allocation_ratio": _number(lambda hosts: hosts.cpu_ratio, whole=False),
    "disk_allocation_ratio": _number(lambda hosts: hosts.disk_ratio, whole=False),
    "hypervisor_type": _profile("hypervisor_type"),
    "hypervisor_version": _profile("hypervisor_version"),
    "cpu_info": _profile("cpu_info"),
    "supported_instances": _profile("supported"),
    "stats": _profile("stats"),
    "capabilities": _profile("stats"),
    "metrics": _each(lambda hosts: hosts.metrics),
    "service": _each(_service),
}
"""Attributes with few different values, stored once per value."""


def at(hosts: Hosts, path: Path) -> Coded[object]:
    """Return each host's value at a path; None if it has none. Texts with a subpath are parsed as JSON."""
    first, *rest = path
    known = COLUMNS[first](hosts) if first in COLUMNS else Coded(np.zeros(len(hosts), dtype=np.int32), (None,))
    return Coded(known.codes, tuple(_below(value, rest) for value in known.values))


def at_or_stats(hosts: Hosts, path: Path) -> Coded[object]:
    """Return each host's value as `at` does, else from its driver's statistics (ComputeCapabilitiesFilter)."""
    if path[0] not in COLUMNS:
        return at(hosts, ("stats", *path))
    own = at(hosts, path[:1])
    if all(value is not None for value in own.values):
        return at(hosts, path)
    rows, stats = at(hosts, path), at(hosts, ("stats", *path))
    missing = own.where(lambda value: value is None)
    codes = np.where(missing, stats.codes + len(rows.values), rows.codes).astype(np.int32)
    return Coded(codes, rows.values + stats.values)


def _below(value: object, path: Sequence[str]) -> object:
    for name in path:
        if isinstance(value, str):
            value = _read(value)
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _read(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None
