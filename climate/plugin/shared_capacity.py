"""Shared functions of plugins that allocate capacity for servers: choose slots, hand them over, take them back."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

from sqlalchemy import Connection

from climate.cloud import Capacity, HostPools, NotYet, Servers, SharedCapacity
from climate.domain.availability.demands import Horizon, SharedDemand
from climate.domain.errors import Conflict
from climate.domain.facts import Hold
from climate.domain.hosts import extra_spec_requirements
from climate.domain.hosts.extra_spec_requirements import Demand
from climate.domain.hosts.requirements import Requirement
from climate.domain.hosts.shared_capacity import Size, SlotRequest, Use, group_id
from climate.domain.lease import Reservation
from climate.domain.reservation_spec import Spec
from climate.plugin import HOSTS, Allocation, Offer, ReservationContext, ResourceRequest, with_grace
from climate.store import locks
from climate.store.allocation import candidates, free_times, shared_capacity
from climate.store.allocation.resource_classes import Taken
from climate.store.allocation.shared_capacity import CapacityRequest, NotEnoughRoom
from climate.store.hosts.hosts import FLAVOR_TYPE

MOST = 2**31 - 1
"""Maximum of each number in a request."""

TERMINATE = "terminate"
"""Only action for servers at the end, because their hosts are shared and cannot move along with them."""

NO_CLASSES: Mapping[str, int] = {}


class ServersAndCapacity(HostPools, Servers, SharedCapacity, Protocol):
    """A cloud whose shared capacity is taken back together with the servers that use it."""


def reserve(
    conn: Connection, request: ResourceRequest, requirement: Requirement, classes: Mapping[str, int] = NO_CLASSES
) -> Allocation:
    """Allocate slots for `amount` servers of the spec's size. Raise NotEnoughRoom if there is no room for them.

    `classes` are amounts of resource classes per server.
    """
    spec, wanted = _request(request, requirement, classes)
    return _allocation(request, spec, shared_capacity.pick(conn, wanted, patient=request.patient))


def offer(request: ResourceRequest, requirement: Requirement, classes: Mapping[str, int] = NO_CLASSES) -> Offer:
    """Return the hosts with room for slots, instead of a choice."""
    spec, wanted = _request(request, requirement, classes)
    return Offer(
        HOSTS,
        partial(candidates.of_capacity, request=wanted),
        locks.lock_hosts,
        lambda chosen, _: _allocation(request, spec, chosen),
        NotEnoughRoom(wanted),
        partial(shared_capacity.ends, request=wanted),
    )


def _request(
    request: ResourceRequest, requirement: Requirement, classes: Mapping[str, int]
) -> tuple[Spec, CapacityRequest]:
    """Return the spec to store, and the request for slots."""
    spec = {"on_end": TERMINATE, **with_grace(request), **_client_fields(request)}
    without = _excluded(request)
    order = SlotRequest(size_of(spec), spec["amount"], spec["affinity"], _in_use(request, without))
    present = request.present.hosts if request.present else ()
    wanted = CapacityRequest(
        requirement,
        request.shared_window,
        order,
        own=request.together.union(
            one.id for one in (*request.beside, *([request.present] if request.present else []))
        ),
        beside=tuple(use for one in request.beside for use in _uses(one)),
        keep=(*present, *request.liked),
        without=without,
        grace=request.shared_window.end - request.period.end,
        soon=request.soon,
        project_id=request.owner,
        classes=classes,
        together=request.together,
        giving_way=request.giving_way,
        classes_beside=tuple(taken for one in request.beside for taken in _classes_taken(one)) if classes else (),
    )
    return spec, wanted


def _allocation(request: ResourceRequest, spec: Spec, chosen: Mapping[int, int]) -> Allocation:
    holds = tuple(Hold(host, request.shared_window, count) for host, count in sorted(chosen.items()) if count)
    return Allocation(spec=spec, holds=holds)


def demand(
    conn: Connection,
    request: ResourceRequest,
    horizon: Horizon,
    requirement: Requirement,
    classes: Mapping[str, int] = NO_CLASSES,
) -> SharedDemand:
    """Return the demand for slots as `reserve` chooses them for a new reservation."""
    spec = with_grace(request)
    order = SlotRequest(size_of(spec), spec["amount"], spec["affinity"])
    wanted = CapacityRequest(requirement, request.shared_window, order, project_id=request.owner, classes=classes)
    return free_times.of_capacity(conn, wanted, horizon, request.shared_tail)


def size_of(spec: Spec) -> Size:
    return Size(spec["vcpus"], spec["memory_mb"], spec["disk_gb"])


def refuse_changes(request: ResourceRequest, but: frozenset[str] = frozenset()) -> None:
    """Raise Conflict that names the first field with a change, except the fields in `but`."""
    if request.present:
        before = request.present.spec
        for name in sorted(set(request.spec) - but):
            if name not in before or request.spec[name] != before[name]:
                raise Conflict(f"{name} cannot be updated")


def demand_of(flavor: Mapping[str, Any]) -> Demand:
    """Return the resources of a server of a flavor, as `resource_properties` of its reservation describes it."""
    return extra_spec_requirements.of(Size(flavor["vcpus"], flavor["ram"], flavor["disk"]), flavor["extra_specs"])


def share_hosts(
    cloud: SharedCapacity, context: ReservationContext, size: Size, extra_specs: Mapping[str, str] | None = None
) -> None:
    """Let the project boot servers of that size on the hosts that are ready."""
    spec = context.reservation.spec
    granted = Capacity(
        pool=str(context.reservation.id),
        project_id=context.project_id,
        vcpus=size.vcpus,
        memory_mb=size.memory_mb,
        disk_gb=size.disk_gb,
        slots={name: context.slots[name] for name in context.hosts},
        affinity=spec["affinity"],
        group_id=spec["server_group_id"],
        extra_specs=extra_specs or {},
        shared_with=context.shared_with,
    )
    cloud.grant(granted, context.token)


def take_back(cloud: ServersAndCapacity, context: ReservationContext) -> None:
    """Delete the servers, wherever they are by now, and then the shared capacity."""
    pool = str(context.reservation.id)
    servers = cloud.servers_in(pool)
    if servers:
        cloud.close(pool, context.token)
        for server in servers:
            cloud.delete_server(server.id, context.token)
        if cloud.servers_in(pool):
            raise NotYet(f"servers are still being deleted: {len(servers)}")
    cloud.revoke(pool, context.hosts, context.token)


def _client_fields(request: ResourceRequest) -> Spec:
    """Return the fields by which Blazar's clients find the capacity; hosts are in no aggregate of their own."""
    number = request.reservation_id
    group = None if request.spec["affinity"] is None else group_id(number)
    return {"flavor_id": str(number), "server_group_id": group, "aggregate_id": None}


def _excluded(request: ResourceRequest) -> tuple[int, ...]:
    """Return the excluded hosts; those that the lease only shares are allowed."""
    shared = {hold.host for one in request.beside for hold in one.holds if hold.slots}
    return tuple(host for host in request.taken if host not in shared or host in request.avoided)


def _in_use(request: ResourceRequest, without: tuple[int, ...]) -> Mapping[int, int]:
    """Return the slots that a running reservation keeps, since servers may use them already."""
    held = request.present.holds if request.present and request.active else ()
    return {hold.host: hold.slots for hold in held if hold.host not in without}


def _uses(one: Reservation) -> list[Use]:
    """Return the resources that a reservation of the same lease takes of each host."""
    shared = [hold for hold in one.holds if hold.slots]
    return [Use(hold.host, hold.during, size_of(one.spec).times(hold.slots)) for hold in shared]


def _classes_taken(one: Reservation) -> list[Taken]:
    """Return the resource classes that a reservation of the same lease takes."""
    if one.resource_type != FLAVOR_TYPE:
        return []
    classes = demand_of(json.loads(one.spec["resource_properties"])).classes
    shared = [hold for hold in one.holds if hold.slots]
    return [Taken(hold.host, name, hold.during, hold.slots * n) for hold in shared for name, n in classes.items()]
