"""Which compute services keep their guests in one folder: on one machine, or on storage that several machines share.

Each service leaves a file with its name in its home, and in the folders of its guests.
Whoever finds the file of another service there finds that service's disks there too.
"""

from pathlib import Path

from climate.compute.context import Compute
from climate.compute.virt import VirtDriver, shared_disks
from climate.compute.virt.multi_node import ClusterDriver

FOLDER = "services"


def mark(compute: Compute) -> None:
    """Say that this service keeps its guests in this home."""
    _file(compute, compute.service_host).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _file(compute, compute.service_host).touch()
    for driver in _drivers(compute):
        shared_disks.mark(driver, compute.service_host)


def has(compute: Compute, service_host: str) -> bool:
    """Whether the disks of that service's guests are in this home."""
    if service_host == compute.service_host or _file(compute, service_host).exists():
        return True
    return any(shared_disks.has(driver, service_host) for driver in _drivers(compute))


def _drivers(compute: Compute) -> list[VirtDriver]:
    own = compute.driver
    return list(own.members.values()) if isinstance(own, ClusterDriver) else [own]


def _file(compute: Compute, service_host: str) -> Path:
    return compute.home / FOLDER / service_host.replace("/", "_")
