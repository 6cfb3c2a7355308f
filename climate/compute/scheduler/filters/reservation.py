"""Filter that protects nodes of reservations and of the reservation pool."""

import numpy as np

from climate.compute.models.aggregate import NAMED
from climate.compute.models.node import FREEPOOL
from climate.compute.models.request import Slots, Spec
from climate.compute.scheduler.hosts.table import Grouping, Hosts, Mask, Pool
from climate.compute.scheduler.scheduler_parts import Again, Filter, Options

FOR = "filter_tenant_id"
"""Aggregate metadata key: the project of the reservation."""


def in_reservation(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    """Return the nodes that a request may use with regard to reservations.

    With the hint `reservation`: the nodes of the named pools, if they are lent to the project and not closed. With a
    reservation's flavor: nodes of the reservation pool with a free slot of it. Otherwise: nodes in neither the
    reservation pool nor a lent one.
    """
    flavor = spec.flavor
    if flavor is not None and flavor.reservation is not None:
        shared = hosts.pool.where(_is_free)
        return shared & (_in_slots(hosts, spec.slots) if spec.slots else _named(hosts, spec, flavor.reservation))
    if not spec.pools:
        return hosts.pool.where(lambda pool: pool is None)

    def open_to(pool: Pool | None) -> bool:
        return pool is not None and pool.name in spec.pools and pool.admits(spec.project_id) and not pool.closed

    return hosts.pool.where(open_to)


def _is_free(pool: Pool | None) -> bool:
    return pool is not None and pool.name == FREEPOOL


def _in_slots(hosts: Hosts, slots: Slots) -> Mask:
    """Return the nodes with fewer servers than slots of the reservation."""
    known = np.array(sorted(slots.most), dtype=np.int64)
    most = np.zeros(len(hosts))
    indexes = np.searchsorted(hosts.ids, known)
    there = indexes < len(hosts)
    there[there] = hosts.ids[indexes[there]] == known[there]
    most[indexes[there]] = [slots.most[node] for node in known[there].tolist()]
    return np.asarray(hosts.servers < most, dtype=np.bool_)


def _named(hosts: Hosts, spec: Spec, reservation: str) -> Mask:
    """Return the nodes that an external service assigned to the reservation; that service counts their use."""

    def fits(grouping: Grouping) -> bool:
        return reservation in grouping.words(NAMED) and spec.project_id in grouping.words(FOR)

    return hosts.grouping.where(fits)


def _why(hosts: Hosts, spec: Spec, options: Options, index: int) -> str:
    pool = hosts.pool.row(index).values[0]
    if spec.flavor is not None and spec.flavor.reservation is not None and _is_free(pool):
        return f"has no free slot of the reservation {spec.flavor.reservation}."
    if pool is None:
        return "is in no reservation."
    if pool.owner is None:
        return f"belongs to the pool {pool.name}, which is for leases."
    if pool.name not in spec.pools:
        return f"is lent to the reservation {pool.name}."
    if not pool.admits(spec.project_id):
        return f"is lent to another project, for the reservation {pool.name}."
    return f"is lent to the reservation {pool.name}, which is ending."


def _counted(spec: Spec) -> bool:
    return spec.slots is not None


RESERVATION = Filter("ReservationFilter", in_reservation, Again.ROW, _why, when=_counted)
"""Reservation filter; never skipped, not even for an administrator's forced host."""
