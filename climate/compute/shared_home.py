"""Which compute services keep their guests in one folder: on one machine, or on storage that several machines share.

Each service leaves a file with its name in its home.  Whoever finds the file of
another service in its own home finds that service's disks there too.
"""

from pathlib import Path

from climate.compute.context import Compute

FOLDER = "services"


def mark(compute: Compute) -> None:
    """Say that this service keeps its guests in this home."""
    _file(compute, compute.service_host).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _file(compute, compute.service_host).touch()


def has(compute: Compute, service_host: str) -> bool:
    """Whether the disks of that service's guests are in this home."""
    return service_host == compute.service_host or _file(compute, service_host).exists()


def _file(compute: Compute, service_host: str) -> Path:
    return compute.home / FOLDER / service_host.replace("/", "_")
