"""Filters by what is free (cloud.md C.4)."""

import numpy as np

from climate.compute.request import Placement
from climate.compute.scheduler.snapshot import Hosts, Mask


def enough_ram(hosts: Hosts, place: Placement) -> Mask:
    """Memory may be promised `ram_ratio` times, but one server never gets more than there is."""
    usable = hosts.ram_mb * hosts.ram_ratio - hosts.used_ram_mb
    return np.asarray((hosts.ram_mb >= place.ram_mb) & (usable >= place.ram_mb), dtype=np.bool_)


def enough_vcpus(hosts: Hosts, place: Placement) -> Mask:
    """CPUs may be promised `cpu_ratio` times, but one server never gets more than there are."""
    usable = hosts.vcpus * hosts.cpu_ratio - hosts.used_vcpus
    return np.asarray((hosts.vcpus >= place.vcpus) & (usable >= place.vcpus), dtype=np.bool_)


def enough_disk(hosts: Hosts, place: Placement) -> Mask:
    """Disk may be promised `disk_ratio` times."""
    return np.asarray(hosts.disk_mb * hosts.disk_ratio - hosts.used_disk_mb >= place.disk_mb, dtype=np.bool_)
