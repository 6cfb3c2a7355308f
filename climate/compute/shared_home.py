"""Detection of services that share one home: on one machine, or on shared storage.

Each service leaves a file with its name in its home, and in the folders of its guests. A service that finds the file
of another one shares that service's disks.
"""

from pathlib import Path

from climate.compute.context import Compute
from climate.compute.virt import VirtDriver, shared_storage
from climate.compute.virt.multi_node import MultiNodeDriver

FOLDER = "services"


def mark(compute: Compute) -> None:
    """Write the marker of this service into its home."""
    _file(compute, compute.service_host).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _file(compute, compute.service_host).touch()
    for driver in _drivers(compute):
        shared_storage.mark(driver, compute.service_host)


def has(compute: Compute, service_host: str) -> bool:
    """Return whether the disks of that service's guests are in this home."""
    if service_host == compute.service_host or _file(compute, service_host).exists():
        return True
    return any(shared_storage.has(driver, service_host) for driver in _drivers(compute))


def _drivers(compute: Compute) -> list[VirtDriver]:
    own = compute.driver
    return list(own.members.values()) if isinstance(own, MultiNodeDriver) else [own]


def _file(compute: Compute, service_host: str) -> Path:
    return compute.home / FOLDER / service_host.replace("/", "_")
