"""Choosing nodes: filter, weigh, pick, consume; one server after the other (cloud.md C.3)."""

from dataclasses import dataclass

import numpy as np

from climate.compute.errors import NoValidHost
from climate.compute.request import Placement
from climate.compute.scheduler.filters import FILTERS, RESERVATION
from climate.compute.scheduler.filters.place import forced
from climate.compute.scheduler.snapshot import Hosts, Mask
from climate.compute.scheduler.weighers import weights

REASON = "No valid host was found. There are not enough hosts available."


@dataclass(frozen=True, slots=True)
class Pick:
    """The node chosen for one server."""

    node_id: int
    service_host: str


def select(hosts: Hosts, place: Placement, count: int) -> list[Pick]:
    """A node for each of `count` servers; NoValidHost, naming the filter that left none, when one finds none.

    The snapshot is consumed: hand in a copy to keep it.
    """
    return [_pick(hosts, place) for _ in range(count)]


def _pick(hosts: Hosts, place: Placement) -> Pick:
    mask, emptied = surviving(hosts, place)
    if emptied is not None:
        raise NoValidHost(f"{REASON} None is left after the filter '{emptied}'.")
    among = np.flatnonzero(mask)
    best = int(among[np.argsort(-weights(hosts, mask), kind="stable")[0]])
    hosts.consume(best, place.vcpus, place.ram_mb, place.disk_mb)
    return Pick(int(hosts.ids[best]), str(hosts.service_hosts[best]))


def surviving(hosts: Hosts, place: Placement) -> tuple[Mask, str | None]:
    """Which nodes pass all filters, and the name of the filter that left none, if one did.

    A forced host skips all filters but that of reservations.
    """
    mask = forced(hosts, place)
    if not mask.any():
        return mask, "forced host" if place.forced else "nodes"
    for name, keeps in (RESERVATION,) if place.forced else FILTERS:
        mask = mask & keeps(hosts, place)
        if not mask.any():
            return mask, name
    return mask, None
