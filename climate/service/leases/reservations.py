"""Allocation for the reservations of a new lease, each by its plugin."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from typing import TypeVar

from marshmallow import Schema
from sqlalchemy import Connection

from climate.context import Climate
from climate.domain import lease_events
from climate.domain.errors import ClimateError, InvalidInput, NotEnoughAddresses, NotEnoughHosts, NotEnoughStorage
from climate.domain.facts import PlannedPart, PlannedReservation
from climate.domain.lease import Reservation
from climate.domain.period import Period
from climate.domain.policy import Caller
from climate.plugin import Ask, ResourcePlugin
from climate.service.leases import shortages
from climate.time_ordered_ids import time_ordered_id

T = TypeVar("T")

NO_SHARES: Mapping[int, "Share"] = {}

MOST_ORDERS = 6
"""Maximum number of orders in which the reservations of a lease are tried before they are refused."""


@dataclass(frozen=True, slots=True)
class Share:
    """Split of a reservation of hosts: a number here, the rest in child zones and cells."""

    hosts: int
    """Number of hosts in this deployment."""
    parts: tuple[PlannedPart, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """Requested reservation, with the plugin of its type."""

    plugin: ResourcePlugin
    spec: Mapping[str, object]
    share: Share | None = None
    """Its shares in children; None: nothing."""


def parts(
    climate: Climate, reservations: Sequence[Mapping[str, object]], shares: Mapping[int, Share] = NO_SHARES
) -> list[Part]:
    """Return the reservations of an order; raise InvalidInput for an unknown resource type."""
    result = []
    for place, given in enumerate(reservations):
        resource_type = given.get("resource_type")
        if resource_type not in climate.plugins:
            known = ", ".join(sorted(climate.plugins))
            raise InvalidInput(f"The {resource_type} resource type is not supported; known are: {known}")
        spec = {name: value for name, value in given.items() if name != "resource_type"}
        result.append(Part(climate.plugins[str(resource_type)], spec, shares.get(place)))
    return result


def checked(climate: Climate, caller: Caller, asked: Sequence[Part], until: datetime) -> list[Part]:
    """Return the parts with data from the cloud. Call it before any transaction, because the cloud may be slow.

    The answer does not depend on exact times.
    """
    nominal = Period(until - timedelta(seconds=1), until)
    known = []
    for part in asked:
        with shortages.of_the_cloud():
            result = part.plugin.check(climate.cloud, Ask(part.spec, nominal, caller, climate.settings))
        known.append(replace(part, spec={**part.spec, **(result or {})}))
    return known


def under(ask: Ask, agreed: Mapping[str, object], asked: Sequence[Part]) -> Ask:
    """Return the request under the terms of the pool: the lease has the longest grace time of its parts."""
    graces = [{**agreed, **part.spec} for part in asked if _knows_grace(part.plugin.spec_schema)]
    return replace(ask, terms=agreed, grace_of_lease=lease_events.grace(graces))


@cache
def _knows_grace(schema: type[Schema]) -> bool:
    return "grace_period" in schema().fields


def in_turn(count: int, choose: Callable[[int, Sequence[T]], T]) -> list[T]:
    """Return the results of `choose(place, before)` for each place, in order of the places.

    If too little is left for one, it chooses before all others, and these choose again: a request that fits few
    hosts may come last.
    """
    order = list(range(count))
    refusal: ClimateError | None = None
    for _ in range(MOST_ORDERS):
        chosen: dict[int, T] = {}
        for place in order:
            try:
                chosen[place] = choose(place, list(chosen.values()))
            except (NotEnoughHosts, NotEnoughAddresses, NotEnoughStorage) as error:
                refusal = refusal or error
                break
        else:
            return [chosen[place] for place in range(count)]
        if place == order[0]:
            break
        order = [place, *(other for other in order if other != place)]
    assert refusal is not None
    raise refusal


def reserve(
    conn: Connection, asked: Sequence[Part], common: Ask, liked: Callable[[int], tuple[int, ...]]
) -> tuple[PlannedReservation, ...]:
    """Allocate in turn, excluding earlier choices, which are not in the database yet.

    `common` is the same for all; `liked` are the preferred hosts by index.
    """

    def choose(place: int, before: Sequence[PlannedReservation]) -> PlannedReservation:
        ask = replace(common, spec=asked[place].spec, liked=liked(place))
        return _reserved(conn, asked[place], _beside(ask, before))

    return tuple(in_turn(len(asked), choose))


def _beside(ask: Ask, planned: Sequence[PlannedReservation]) -> Ask:
    return replace(
        ask,
        taken=tuple(hold.host for one in planned for hold in one.holds),
        taken_addresses=tuple(hold.number for one in planned for hold in one.addresses),
        taken_amounts=tuple(hold for one in planned for hold in one.amounts),
        beside=tuple(Reservation(one.id, one.resource_type, one.spec, holds=one.holds) for one in planned),
        new_id=time_ordered_id(),
    )


def _reserved(conn: Connection, asked: Part, ask: Ask) -> PlannedReservation:
    plugin, share = asked.plugin, asked.share
    if share and not share.hosts:
        return PlannedReservation(ask.new_id, plugin.resource_type, {**ask.terms, **ask.spec}, parts=share.parts)
    if share:
        got = plugin.reserve(conn, here(ask, share.hosts))
        spec = {**got.spec, "min": ask.spec["min"], "max": ask.spec["max"]}
        return PlannedReservation(ask.new_id, plugin.resource_type, spec, holds=got.holds, parts=share.parts)
    got = plugin.reserve(conn, ask)
    return PlannedReservation(
        id=ask.new_id,
        resource_type=plugin.resource_type,
        spec=got.spec,
        resource_id=got.resource_id,
        holds=got.holds,
        exists_before_start=got.exists_before_start,
        addresses=got.addresses,
        amounts=got.amounts,
    )


def here(ask: Ask, hosts: int) -> Ask:
    """Return the request for the share of a reservation that lies in this deployment."""
    return replace(ask, spec={**ask.spec, "min": hosts, "max": hosts})
