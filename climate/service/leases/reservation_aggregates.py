"""Aggregates of reservations, which exist from the allocation on: empty, with the request as metadata.

A cloud with tables in the engine's database creates the aggregate in the transaction of the allocation. Any
other is asked after it, and all are when the allocation is changed or released. No allocation fails because
of it. If the cloud was unreachable or the process died, `reconcile` repeats the request.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

import structlog
from sqlalchemy import Connection

from climate.cloud import CloudError, LeasePool
from climate.context import Climate
from climate.database.connections import Insert
from climate.domain.errors import UnreadableLease
from climate.domain.lease import Lease, Reservation
from climate.domain.period import Period
from climate.domain.status import ReservationStatus
from climate.service.round_steps import RoundSteps
from climate.service.transaction import run
from climate.store.leases import lease_pools
from climate.store.leases.lease_pools import PooledReservation

log = structlog.get_logger(__name__)

LONGEST = 255
"""Maximum length of a text in the metadata of an aggregate."""


def announce(climate: Climate, lease: Lease, *, new: bool = False) -> Lease:
    """Create the aggregates of a pending lease; return the lease with their ids.

    Sends one request to the cloud for each such reservation, and runs one statement. With `new`, only aggregates
    that were not created with the lease.
    """
    if new and all(reservation.aggregate_id is not None for reservation in lease.reservations):
        return lease
    wishes = _wishes(climate, lease)
    if new:
        wishes = {
            reservation.id: wishes[reservation.id]
            for reservation in lease.reservations
            if reservation.id in wishes and reservation.aggregate_id is None
        }
    result = _promised(climate, wishes)
    if not result:
        return lease
    run(climate, lease_pools.note, result)
    return replace(lease, reservations=tuple(_known(reservation, result) for reservation in lease.reservations))


def aggregate_insert(conn: Connection, climate: Climate, lease: Lease) -> Insert | None:
    """Return the SQL that creates a new lease's aggregates in its transaction; None if the cloud has to be asked."""
    wishes = {str(number): wish for number, wish in _wishes(climate, lease).items()}
    return climate.cloud.pool_insert(conn, wishes) if wishes else None


def _wishes(climate: Climate, lease: Lease) -> dict[UUID, Mapping[str, str]]:
    """Return the metadata of the aggregates of a lease; none for a lease that is not pending."""
    if lease.held or lease.waits or lease.gone or lease.reservation_status is not ReservationStatus.PENDING:
        return {}
    own = [
        reservation
        for reservation in lease.reservations
        if _describe(climate, reservation.resource_type) and not reservation.lies_elsewhere
    ]
    return {one.id: _metadata(climate, lease.id, one.resource_type, one.spec, lease.period) for one in own}


def with_aggregate_ids(conn: Connection, lease: Lease) -> Lease:
    """Return a lease from the journal with the ids of its present aggregates."""
    result = lease_pools.of(conn, [reservation.id for reservation in lease.reservations])
    return replace(lease, reservations=tuple(_known(reservation, result) for reservation in lease.reservations))


def withdraw(climate: Climate, lease: Lease) -> None:
    """Delete the aggregates of a lease that is gone and was never started."""
    if not lease.gone:
        return
    for reservation in lease.reservations:
        if _describe(climate, reservation.resource_type) and not reservation.lies_elsewhere:
            _forget(climate, str(reservation.id))


def reconcile(climate: Climate) -> int:
    """Correct aggregates that differ from the database; return the number created, changed or deleted.

    The cloud is read before the database: a reservation that is created meanwhile gets its aggregate twice, which
    is harmless. Only notes older than this read of the database are deleted.
    """
    seen = climate.cloud.lease_pools()
    types = [name for name in climate.plugins if _describe(climate, name)]
    noted, wanted = run(climate, _read, types)
    steps = RoundSteps("reservation aggregate not compared")
    lacking: dict[UUID, Mapping[str, str]] = {}
    for one in wanted:
        with steps.item(lease_id=str(one.lease_id), reservation_id=str(one.id)):
            if wish := _lacks(climate, one, seen.get(str(one.id))):
                lacking[one.id] = wish
    made = _promised(climate, lacking)
    deleted = _delete_strays(climate, seen, {str(one.id) for one in wanted})
    there = {one.id: pool.id for one in wanted if (pool := seen.get(str(one.id)))} | made
    news = {one.id: there[one.id] for one in wanted if one.id in there and there[one.id] != one.aggregate_id}
    stale = noted - there.keys()
    if news or stale:
        run(climate, _note, news, stale)
    return len(made) + deleted


def _delete_strays(climate: Climate, seen: Mapping[str, LeasePool], known: Collection[str]) -> int:
    """Delete empty aggregates without a reservation; return their number."""
    strays = [name for name, pool in seen.items() if pool.wanted is not None and name not in known]
    return sum(_forget(climate, name) for name in strays)


def _read(conn: Connection, types: Sequence[str]) -> tuple[set[UUID], list[PooledReservation]]:
    return lease_pools.noted(conn), lease_pools.reservations_of(conn, types)


def _note(conn: Connection, news: Mapping[UUID, int], stale: set[UUID]) -> None:
    lease_pools.note(conn, news)
    lease_pools.forget(conn, stale)


def _lacks(climate: Climate, one: PooledReservation, pool: LeasePool | None) -> Mapping[str, str] | None:
    """Return the metadata that its aggregate lacks; None if it is complete or has hosts."""
    if not one.pending or (pool is not None and pool.wanted is None):
        return None
    if not isinstance(one.spec, dict):
        raise UnreadableLease(one.lease_id)
    wish = _metadata(climate, one.lease_id, one.resource_type, one.spec, one.period)
    return wish if pool is None or pool.wanted != wish else None


def _promised(climate: Climate, wishes: Mapping[UUID, Mapping[str, str]]) -> dict[UUID, int]:
    """Return the ids of the aggregates that the cloud created."""
    result: dict[UUID, int] = {}
    for number, wish in wishes.items():
        try:
            result[number] = climate.cloud.promise_pool(str(number), wish)
        except CloudError as error:
            log.warning("reservation aggregate not created yet", reservation_id=str(number), reason=str(error))
    return result


def _forget(climate: Climate, pool: str) -> bool:
    try:
        climate.cloud.forget_pool(pool)
    except CloudError as error:
        log.warning("reservation aggregate not deleted yet", reservation_id=pool, reason=str(error))
        return False
    return True


def _known(one: Reservation, aggregates: Mapping[UUID, int]) -> Reservation:
    return replace(one, aggregate_id=aggregates[one.id]) if one.id in aggregates else one


def _describe(climate: Climate, resource_type: str) -> Callable[[Mapping[str, object]], Mapping[str, str]] | None:
    """Return the hook of a plugin whose reservations have aggregates of their own; None for the others."""
    return getattr(climate.plugins.get(resource_type), "pool_metadata", None)


def _metadata(
    climate: Climate, lease_id: UUID, resource_type: str, spec: Mapping[str, object], period: Period
) -> Mapping[str, str]:
    describe = _describe(climate, resource_type)
    own = describe(spec) if describe else {}
    dates = {"start_date": f"{period.start:%Y-%m-%dT%H:%M:%SZ}", "end_date": f"{period.end:%Y-%m-%dT%H:%M:%SZ}"}
    said = {"lease_id": str(lease_id), **dates, **own}
    return {key: value[:LONGEST] for key, value in said.items() if value}
