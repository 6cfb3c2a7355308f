"""Who may boot on nodes that are kept for leases."""

import numpy as np

from climate.compute.request import Placement
from climate.compute.scheduler.snapshot import Hosts, Mask


def in_reservation(hosts: Hosts, place: Placement) -> Mask:
    """With the hint: the named pools' nodes, when they are lent to the project and not closed.

    Without it every node of the reservation pool or of a lent one is hidden from everybody.
    """
    if not place.pools:
        return np.asarray(hosts.pools == "", dtype=np.bool_)
    named = np.isin(hosts.pools.astype(str), np.array(place.pools, dtype=str)) & (hosts.pools != "")
    return np.asarray(named & (hosts.owners == place.project_id) & ~hosts.closed, dtype=np.bool_)
