"""Filters by the servers that are on a node already."""

from collections.abc import Collection

import numpy as np

from climate.compute.models.request import Group, Spec
from climate.compute.scheduler.filters.location import everywhere
from climate.compute.scheduler.hosts.table import Hosts, Mask, Numbers
from climate.compute.scheduler.scheduler_parts import Again, Filter, Options, Sees

AFFINITY, ANTI_AFFINITY = "affinity", "anti-affinity"


def among(hosts: Hosts, ids: Collection[int]) -> Mask:
    """Return which nodes have one of these ids."""
    if len(hosts) == 1:
        return np.array([int(hosts.ids[0]) in ids])
    return np.isin(hosts.ids, np.fromiter(ids, np.int64, len(ids)))


def members(hosts: Hosts, group: Group) -> Numbers:
    """Return the number of the group's servers on each node."""
    return np.fromiter((group.nodes.get(node, 0) for node in hosts.ids.tolist()), np.float64, len(hosts))


def apart(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    """Return the nodes with no server of the group, or fewer than its maximum per node."""
    if spec.group is None or spec.group.policy != ANTI_AFFINITY or not spec.group.nodes:
        return everywhere(hosts)
    return np.asarray(members(hosts, spec.group) < spec.group.most, dtype=np.bool_)


def together(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    """Return the nodes with a server of the group, or all nodes while the group is empty."""
    if spec.group is None or spec.group.policy != AFFINITY or not spec.group.nodes:
        return everywhere(hosts)
    return among(hosts, spec.group.nodes)


def same_host(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    """Return the nodes with one of the named servers, and the nodes without any server, as Nova does."""
    return everywhere(hosts) if spec.same_host is None else among(hosts, spec.same_host) | (hosts.servers == 0)


def different_host(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    """Return the nodes with none of the named servers."""
    return everywhere(hosts) if spec.different_host is None else ~among(hosts, spec.different_host)


def of_one_type(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    """Return the nodes without servers of another flavor."""
    return ~among(hosts, spec.other_flavors)


def without_user(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    """Return the nodes without servers of the requesting user, in any project."""
    if spec.occupants is None:
        return everywhere(hosts)
    return np.asarray(spec.occupants.count(hosts.ids, user_id=spec.user_id) == 0, dtype=np.bool_)


def _crowded(hosts: Hosts, spec: Spec, options: Options, index: int) -> str:
    most = spec.group.most if spec.group else 1
    return f"has {'a server' if most == 1 else f'{most} servers'} of the anti-affinity group already."


APART = Filter("ServerGroupAntiAffinityFilter", apart, Again.ROW, _crowded)
TOGETHER = Filter("ServerGroupAffinityFilter", together, Again.ALL, lambda *_: "has no server of the affinity group.")
SAME_HOST = Filter("SameHostFilter", same_host, why=lambda *_: "has none of the servers named by same_host.")
DIFFERENT_HOST = Filter(
    "DifferentHostFilter", different_host, why=lambda *_: "has one of the servers named by different_host."
)
TYPE_AFFINITY = Filter("TypeAffinityFilter", of_one_type, why=lambda *_: "has servers of another flavor.")
USER_APART = Filter(
    "UserAntiAffinityFilter",
    without_user,
    Again.ROW,
    lambda *_: "has a server of the same user.",
    sees=Sees.OWN,
)
