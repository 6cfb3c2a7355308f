"""Tables of nodes for tests of the scheduler: ordinary nodes, each with the changes that matter."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from climate.compute.scheduler.hosts.snapshot import ValueCodes
from climate.compute.scheduler.hosts.table import Coded, Grouping, Hosts, Mask, Numbers, Pool, Profile, Texts

ROW: dict[str, Any] = {
    "id": 1,
    "name": "a",
    "service_host": "h",
    "host_ip": "127.0.0.1",
    "vcpus": 8,
    "memory_mb": 8192,
    "local_gb": 100,
    "used_vcpus": 0,
    "used_ram_mb": 0,
    "used_disk_mb": 0,
    "used_servers": 0,
    "reserved_ram_mb": 0,
    "reserved_disk_mb": 0,
    "disk_least_gb": None,
    "io_ops": 0,
    "ram_ratio": 1.5,
    "cpu_ratio": 16.0,
    "disk_ratio": 1.0,
    "zone": None,
    "labels": (),
    "pool": None,
    "owner": None,
    "closed": False,
    "shared": None,
    "present": True,
    "up": True,
    "disabled": False,
    "hypervisor_type": "climate",
    "hypervisor_version": 1000000,
    "cpu_info": "",
    "supported": (),
    "stats": {},
    "metrics": {},
}


def hosts(*changes: dict[str, Any]) -> Hosts:
    """The nodes n1, n2, …, ordinary but for the changes."""
    return table([ROW | {"id": number, "name": f"n{number}"} | change for number, change in enumerate(changes, 1)])


def table(rows: Sequence[Mapping[str, Any]]) -> Hosts:
    """The columns of such rows."""

    def numbers(name: str) -> Numbers:
        return np.array([row[name] for row in rows], dtype=np.float64)

    def texts(name: str) -> Texts:
        return np.array([row[name] for row in rows], dtype=object)

    def flags(name: str) -> Mask:
        return np.array([row[name] for row in rows], dtype=np.bool_)

    pools = [Pool(row["pool"], row["owner"], row["closed"], row["shared"]) if row["pool"] else None for row in rows]
    return Hosts(
        ids=np.array([row["id"] for row in rows], dtype=np.int64),
        names=texts("name"),
        service_hosts=texts("service_host"),
        host_ips=texts("host_ip"),
        vcpus=numbers("vcpus"),
        ram_mb=numbers("memory_mb"),
        disk_mb=numbers("local_gb") * 1024,
        used_vcpus=numbers("used_vcpus"),
        used_ram_mb=numbers("used_ram_mb") + numbers("reserved_ram_mb"),
        used_disk_mb=np.array([_used_disk_mb(row) for row in rows], dtype=np.float64),
        servers=numbers("used_servers"),
        io_ops=numbers("io_ops"),
        ram_ratio=numbers("ram_ratio"),
        cpu_ratio=numbers("cpu_ratio"),
        disk_ratio=numbers("disk_ratio"),
        present=flags("present"),
        up=flags("up"),
        disabled=flags("disabled"),
        pool=_coded(pools),
        grouping=_coded([Grouping(row["zone"], row["labels"]) for row in rows]),
        profile=_coded([_profile(row) for row in rows]),
        metrics=texts("metrics"),
    )


def _used_disk_mb(row: Mapping[str, Any]) -> int:
    total = 1024 * int(row["local_gb"])
    free = total - int(row["used_disk_mb"]) - int(row["reserved_disk_mb"])
    return total - (free if row["disk_least_gb"] is None else min(free, 1024 * int(row["disk_least_gb"])))


def _profile(row: Mapping[str, Any]) -> Profile:
    supported = tuple((arch, kind, mode) for arch, kind, mode in row["supported"])
    return Profile(row["hypervisor_type"], row["hypervisor_version"], row["cpu_info"], supported, row["stats"])


def _coded(values: Sequence[Any]) -> Coded[Any]:
    empty: ValueCodes[Any] = ValueCodes()
    return empty.knowing(values, lambda value: value).column(values)
