"""All nodes at one moment, as columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Numbers = NDArray[np.float64]
Texts = NDArray[np.object_]


@dataclass(frozen=True, slots=True)
class Hosts:
    """One row per node: columns of equal length.  Sizes: MB; a pool, owner or zone that is not there is ""."""

    ids: NDArray[np.int64]
    names: Texts
    service_hosts: Texts
    vcpus: Numbers
    ram_mb: Numbers
    disk_mb: Numbers
    used_vcpus: Numbers
    used_ram_mb: Numbers
    used_disk_mb: Numbers
    ram_ratio: Numbers
    cpu_ratio: Numbers
    disk_ratio: Numbers
    zones: Texts
    pools: Texts
    owners: Texts
    closed: Mask
    up: Mask

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def free_ram_mb(self) -> Numbers:
        """Memory that is not promised; below zero when more is promised than is there."""
        return self.ram_mb - self.used_ram_mb

    def copy(self) -> "Hosts":
        """The same moment, to be consumed by one request."""
        return replace(
            self,
            used_vcpus=self.used_vcpus.copy(),
            used_ram_mb=self.used_ram_mb.copy(),
            used_disk_mb=self.used_disk_mb.copy(),
        )

    def consume(self, place: int, vcpus: int, ram_mb: int, disk_mb: int) -> None:
        """Count one more server on the node at `place`."""
        self.used_vcpus[place] += vcpus
        self.used_ram_mb[place] += ram_mb
        self.used_disk_mb[place] += disk_mb


def take(rows: Sequence[Mapping[str, Any]]) -> Hosts:
    """The columns of node rows (store.nodes.columns)."""

    def numbers(name: str) -> Numbers:
        return np.array([row[name] for row in rows], dtype=np.float64)

    def texts(name: str) -> Texts:
        return np.array([row[name] or "" for row in rows], dtype=object)

    def flags(name: str) -> Mask:
        return np.array([row[name] for row in rows], dtype=np.bool_)

    return Hosts(
        ids=np.array([row["id"] for row in rows], dtype=np.int64),
        names=texts("name"),
        service_hosts=texts("service_host"),
        vcpus=numbers("vcpus"),
        ram_mb=numbers("memory_mb"),
        disk_mb=numbers("local_gb") * 1024,
        used_vcpus=numbers("used_vcpus"),
        used_ram_mb=numbers("used_ram_mb"),
        used_disk_mb=numbers("used_disk_mb"),
        ram_ratio=numbers("ram_ratio"),
        cpu_ratio=numbers("cpu_ratio"),
        disk_ratio=numbers("disk_ratio"),
        zones=texts("zone"),
        pools=texts("pool"),
        owners=texts("owner"),
        closed=flags("closed"),
        up=flags("up"),
    )
