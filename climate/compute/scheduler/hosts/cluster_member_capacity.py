"""Contiguous capacity of clusters: a node that is a cluster reports the free capacity of each member.

Allocations since the last report are counted as servers of the requested size. Two servers of one request therefore
never share a slot for one. The next report corrects the estimate. The cluster refuses servers without room, and another
node is tried.
"""

import math
from collections.abc import Mapping

import numpy as np

from climate.compute.models.request import Spec
from climate.compute.scheduler.hosts.table import Hosts, Mask

STATS = "cluster"
"""Statistic of a cluster: `slots`, (vcpus, MB, GB) free on each member, and `taken_ram_mb`."""

_GB = 1024


def in_one_piece(hosts: Hosts, spec: Spec) -> Mask:
    """Return which nodes are not clusters, or have a member with room for a server of this size."""
    kept = np.ones(len(hosts), dtype=np.bool_)
    for code, profile in enumerate(hosts.profile.values):
        offer = _offer(profile.stats)
        if offer is None:
            continue
        taken, slots = offer
        rows = hosts.profile.codes == code
        since = np.ceil(np.maximum(hosts.used_ram_mb[rows] - taken, 0) / max(spec.ram_mb, 1))
        kept[rows] = sum(_times(slot, spec) for slot in slots) > since
    return kept


def why_not(hosts: Hosts, spec: Spec, index: int) -> str:
    """Return why no member of a cluster has room for a server of this size."""
    offer = _offer(hosts.profile.values[hosts.profile.codes[index]].stats)
    most = max((slot[1] for slot in offer[1]), default=0) if offer else 0
    wanted = f"{spec.ram_mb} MB of ram, {spec.vcpus} vcpus and {spec.disk_mb} MB of disk"
    return f"has no member with {wanted} free in one piece; the most ram that one has free is {most:g} MB."


def _times(slot: tuple[float, ...], spec: Spec) -> float:
    """Return the number of servers of this size that fit into a slot."""
    wanted = (spec.vcpus, spec.ram_mb, spec.disk_mb / _GB)
    counts = [math.floor(free / need) for free, need in zip(slot, wanted, strict=True) if need]
    return max(min(counts, default=1), 0)


def _offer(stats: Mapping[str, object]) -> tuple[float, list[tuple[float, ...]]] | None:
    """Return the report of a cluster: allocated MB of memory, and the slots; None if the node is not a cluster.

    Malformed values are ignored, because an operator may use the same key for another node.
    """
    said = stats.get(STATS)
    if not isinstance(said, Mapping) or not _is_number(said.get("taken_ram_mb")):
        return None
    slots = said.get("slots")
    if not isinstance(slots, list) or not all(_is_slot(slot) for slot in slots):
        return None
    return float(said["taken_ram_mb"]), [tuple(float(part) for part in slot) for slot in slots]


def _is_slot(value: object) -> bool:
    return isinstance(value, list) and len(value) == 3 and all(_is_number(part) for part in value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
