"""The pool of a reservation exists from its promise on: empty, with what was asked for as its metadata.

A cloud whose tables are in the engine's database gets the pool in the
transaction of the promise.  Any other is asked after it, as all are when the
promise is changed or given up; no promise fails for it.  What could not be asked then, because the
cloud was away or the process died, is put right by `tend`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import Connection

from climate.cloud import CloudError, LeasePool
from climate.connections import Insert
from climate.context import Climate
from climate.domain.lease import Lease, Reservation
from climate.domain.period import Period
from climate.domain.status import ReservationStatus
from climate.service.transaction import work
from climate.store.leases import lease_pools
from climate.store.leases.lease_pools import Wanted

log = structlog.get_logger(__name__)

LONGEST = 255
"""Of a text in the metadata of an aggregate."""


def announce(climate: Climate, lease: Lease, *, new: bool = False) -> Lease:
    """Make the pools of a lease that is only promised; the lease with the ids of their aggregates.

    As many requests to the cloud as it has such reservations, and one statement.  With `new`
    only the pools that were not made with the lease.
    """
    if new and all(one.aggregate_id is not None for one in lease.reservations):
        return lease
    wishes = _wishes(climate, lease)
    if new:
        wishes = {one.id: wishes[one.id] for one in lease.reservations if one.id in wishes and one.aggregate_id is None}
    found = _promised(climate, wishes)
    if not found:
        return lease
    work(climate, lambda conn, patient: lease_pools.note(conn, found))
    return replace(lease, reservations=tuple(_known(one, found) for one in lease.reservations))


def together(climate: Climate, conn: Connection, lease: Lease) -> Insert | None:
    """Return the SQL that makes the pools of a new lease in its transaction; None where the cloud has to be asked."""
    wishes = {str(number): wish for number, wish in _wishes(climate, lease).items()}
    return climate.cloud.pool_insert(conn, wishes) if wishes else None


def _wishes(climate: Climate, lease: Lease) -> dict[UUID, Mapping[str, str]]:
    """What the pools of a lease are promised with; none are of one that is not just promised."""
    if lease.held or lease.gone or lease.reservation_status is not ReservationStatus.PENDING:
        return {}
    own = [one for one in lease.reservations if _describe(climate, one.resource_type) and not one.lies_elsewhere]
    return {one.id: _metadata(climate, lease.id, one.resource_type, one.spec, lease.period) for one in own}


def identified(conn: Connection, lease: Lease) -> Lease:
    """Return a lease that was read from the journal, with the ids of the aggregates that its pools have now."""
    found = lease_pools.of(conn, [one.id for one in lease.reservations])
    return replace(lease, reservations=tuple(_known(one, found) for one in lease.reservations))


def withdraw(climate: Climate, lease: Lease) -> None:
    """Drop the pools of a lease that is gone and was never started."""
    if not lease.gone:
        return
    for one in lease.reservations:
        if _describe(climate, one.resource_type) and not one.lies_elsewhere:
            _forget(climate, str(one.id))


def tend(climate: Climate) -> int:
    """Put right what the cloud has otherwise than the books say; how many pools were made, changed or dropped.

    The cloud is read before the books: a reservation that is made meanwhile has
    its pool promised twice, which does no harm.  Only notes that are older than the look at the books are forgotten.
    """
    seen = climate.cloud.lease_pools()
    types = [name for name in climate.plugins if _describe(climate, name)]
    noted, wanted = work(climate, lambda conn, patient: (lease_pools.noted(conn), lease_pools.wanted(conn, types)))
    lacking = {one.id: wish for one in wanted if (wish := _lacks(climate, one, seen.get(str(one.id))))}
    made = _promised(climate, lacking)
    known = {str(one.id) for one in wanted}
    strays = [name for name, pool in seen.items() if pool.wanted is not None and name not in known]
    dropped = [name for name in strays if _forget(climate, name)]
    there = {one.id: pool.id for one in wanted if (pool := seen.get(str(one.id)))} | made
    news = {one.id: there[one.id] for one in wanted if one.id in there and there[one.id] != one.aggregate_id}
    work(climate, lambda conn, patient: _note(conn, news, noted - there.keys()))
    return len(made) + len(dropped)


def _note(conn: Connection, news: Mapping[UUID, int], stale: set[UUID]) -> None:
    lease_pools.note(conn, news)
    lease_pools.forget(conn, stale)


def _lacks(climate: Climate, one: Wanted, seen: LeasePool | None) -> Mapping[str, str] | None:
    """What its pool is to be promised with, unless it is so already, or hosts were lent to it."""
    if not one.pending or (seen is not None and seen.wanted is None):
        return None
    wish = _metadata(climate, one.lease_id, one.resource_type, one.spec, one.period)
    return wish if seen is None or seen.wanted != wish else None


def _promised(climate: Climate, wishes: Mapping[UUID, Mapping[str, str]]) -> dict[UUID, int]:
    """The ids of the aggregates, as far as the cloud made them."""
    found: dict[UUID, int] = {}
    for number, wish in wishes.items():
        try:
            found[number] = climate.cloud.promise_pool(str(number), wish)
        except CloudError as error:
            log.warning("the pool of a reservation is not there yet", reservation_id=str(number), reason=str(error))
    return found


def _forget(climate: Climate, pool: str) -> bool:
    try:
        climate.cloud.forget_pool(pool)
    except CloudError as error:
        log.warning("the pool of a reservation that is gone stays for now", reservation_id=pool, reason=str(error))
        return False
    return True


def _known(one: Reservation, found: Mapping[UUID, int]) -> Reservation:
    return replace(one, aggregate_id=found[one.id]) if one.id in found else one


def _describe(climate: Climate, resource_type: str) -> Callable[[Mapping[str, Any]], Mapping[str, str]] | None:
    """The hook of a plugin whose reservations have pools of their own; None for the others."""
    return getattr(climate.plugins.get(resource_type), "pool_metadata", None)


def _metadata(
    climate: Climate, lease_id: UUID, resource_type: str, spec: Mapping[str, Any], period: Period
) -> Mapping[str, str]:
    describe = _describe(climate, resource_type)
    own = describe(spec) if describe else {}
    dates = {"start_date": f"{period.start:%Y-%m-%dT%H:%M:%SZ}", "end_date": f"{period.end:%Y-%m-%dT%H:%M:%SZ}"}
    said = {"lease_id": str(lease_id), **dates, **own}
    return {key: value[:LONGEST] for key, value in said.items() if value}
