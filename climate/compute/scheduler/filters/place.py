"""Filters by where a node is, and whether it is there at all (cloud.md C.4)."""

import numpy as np

from climate.compute.host import DEFAULT_ZONE
from climate.compute.request import Placement
from climate.compute.scheduler.snapshot import Hosts, Mask


def not_tried_yet(hosts: Hosts, place: Placement) -> Mask:
    """Not a node on which making the server has failed before."""
    return ~np.isin(hosts.ids, np.array(place.tried, dtype=np.int64))


def in_zone(hosts: Hosts, place: Placement) -> Mask:
    """In the availability zone asked for; nodes that name none are in the default one."""
    if place.zone is None:
        return np.ones(len(hosts), dtype=np.bool_)
    zones = np.where(hosts.zones == "", DEFAULT_ZONE, hosts.zones)
    return np.asarray(zones == place.zone, dtype=np.bool_)


def service_up(hosts: Hosts, place: Placement) -> Mask:
    """Its compute service is enabled and was heard of lately."""
    return hosts.up


def forced(hosts: Hosts, place: Placement) -> Mask:
    """The node that an administrator named by service host, node or both."""
    mask = np.ones(len(hosts), dtype=np.bool_)
    if place.force_host is not None:
        mask &= np.asarray(
            (hosts.service_hosts == place.force_host) | (hosts.names == place.force_host), dtype=np.bool_
        )
    if place.force_node is not None:
        mask &= np.asarray(hosts.names == place.force_node, dtype=np.bool_)
    return mask
