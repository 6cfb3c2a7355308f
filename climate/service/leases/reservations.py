"""The reservations of a new lease: their plugins, and their allocation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache, partial
from uuid import UUID

from marshmallow import Schema
from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.errors import InvalidInput
from climate.domain.events import event_transitions
from climate.domain.facts import PlannedPart, PlannedReservation
from climate.domain.lease import Reservation
from climate.domain.period import Period
from climate.domain.planning.preemption import is_preemptible
from climate.domain.policy import Caller
from climate.plugin import Allocation, ResourcePlugin, ResourceRequest
from climate.service.leases import joint_allocation, shortages
from climate.service.leases.joint_allocation import AllocationRequest, Settled
from climate.time_ordered_ids import time_ordered_id

NO_SPLITS: Mapping[int, "Split"] = {}


@dataclass(frozen=True, slots=True)
class Split:
    """Split of a reservation of hosts: a number here, the rest in child zones and cells."""

    hosts: int
    """Number of hosts in this deployment."""
    parts: tuple[PlannedPart, ...]


@dataclass(frozen=True, slots=True)
class Requested:
    """Requested reservation, with the plugin of its type."""

    plugin: ResourcePlugin
    spec: Mapping[str, object]
    split: Split | None = None
    """Split over this deployment and children; None: all of it is here."""
    id: UUID | None = None
    """Id of the reservation, if it exists already without resources."""


def requested(
    climate: Climate, reservations: Sequence[Mapping[str, object]], splits: Mapping[int, Split] = NO_SPLITS
) -> list[Requested]:
    """Return the reservations of an order; raise InvalidInput for an unknown resource type."""
    result = []
    for index, given in enumerate(reservations):
        resource_type = given.get("resource_type")
        if resource_type not in climate.plugins:
            known = ", ".join(sorted(climate.plugins))
            raise InvalidInput(f"The {resource_type} resource type is not supported; known are: {known}")
        spec = {name: value for name, value in given.items() if name != "resource_type"}
        result.append(Requested(climate.plugins[str(resource_type)], spec, splits.get(index)))
    if len({is_preemptible(item.spec) for item in result}) > 1:
        raise InvalidInput(
            "preemptible must be true for all reservations of a lease, or for none: a lease gives way as a whole"
        )
    return result


def checked(climate: Climate, caller: Caller, requested: Sequence[Requested], until: datetime) -> list[Requested]:
    """Return the reservations with data from the cloud. Call it before any transaction, because the cloud may be slow.

    The answer does not depend on exact times.
    """
    nominal = Period(until - timedelta(seconds=1), until)
    known = []
    for item in requested:
        with shortages.of_the_cloud():
            result = item.plugin.check(climate.cloud, ResourceRequest(item.spec, nominal, caller, climate.settings))
        known.append(replace(item, spec={**item.spec, **(result or {})}))
    return known


def with_terms(
    request: ResourceRequest, agreed: Mapping[str, object], requested: Sequence[Requested]
) -> ResourceRequest:
    """Return the request under the terms of the pool: the lease has the longest grace time of its reservations."""
    return replace(request, terms=agreed, grace_of_lease=longest_grace(agreed, requested))


def longest_grace(agreed: Mapping[str, object], requested: Sequence[Requested]) -> timedelta:
    """Return the longest grace time of the reservations of a lease under the terms of the pool."""
    return event_transitions.grace(
        [{**agreed, **item.spec} for item in requested if _knows_grace(item.plugin.spec_schema)]
    )


@cache
def _knows_grace(schema: type[Schema]) -> bool:
    return "grace_period" in schema().fields


def reserve(
    conn: Connection, requested: Sequence[Requested], common: ResourceRequest, liked: Callable[[int], tuple[int, ...]]
) -> tuple[PlannedReservation, ...]:
    """Allocate all reservations of a new lease: in turn if that succeeds at once, otherwise together.

    `common` is the same for all; `liked` are the preferred hosts by index.
    """

    def allocation_request(index: int) -> AllocationRequest[PlannedReservation]:
        item = requested[index]
        own_id = item.id or time_ordered_id()
        ask, split = replace(common, new_id=own_id, liked=liked(index), spec=item.spec), item.split
        if split and not split.hosts:
            spec = {**ask.terms, **item.spec}
            nothing = PlannedReservation(ask.new_id, item.plugin.resource_type, spec, parts=split.parts)
            return AllocationRequest(lambda: item.plugin, ask, lambda got: nothing, Settled(nothing))
        here_only = here(ask, split.hosts) if split else ask
        return AllocationRequest(lambda: item.plugin, here_only, partial(_planned, item, ask))

    return tuple(
        joint_allocation.allocate(conn, [allocation_request(index) for index in range(len(requested))], _beside)
    )


def _beside(request: ResourceRequest, planned: Sequence[PlannedReservation]) -> ResourceRequest:
    """Return the request without what was chosen before it, which is not in the database yet."""
    if not planned:
        return request
    return replace(
        request,
        taken=(*request.avoided, *(hold.host for one in planned for hold in one.holds)),
        taken_addresses=tuple(hold.number for one in planned for hold in one.addresses),
        taken_amounts=tuple(hold for one in planned for hold in one.amounts),
        beside=tuple(Reservation(one.id, one.resource_type, one.spec, holds=one.holds) for one in planned),
    )


def _planned(item: Requested, request: ResourceRequest, got: Allocation) -> PlannedReservation:
    spec = {**got.spec, "min": request.spec["min"], "max": request.spec["max"]} if item.split else got.spec
    return PlannedReservation(
        id=request.new_id,
        resource_type=item.plugin.resource_type,
        spec=spec,
        resource_id=got.resource_id,
        holds=got.holds,
        exists_before_start=got.exists_before_start,
        addresses=got.addresses,
        amounts=got.amounts,
        parts=item.split.parts if item.split else (),
    )


def here(request: ResourceRequest, hosts: int) -> ResourceRequest:
    """Return the request for the hosts of a reservation that lie in this deployment."""
    return replace(request, spec={**request.spec, "min": hosts, "max": hosts})
