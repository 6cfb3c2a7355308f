"""Release of kept amounts of storage when their owners have deleted the volumes."""

from dataclasses import replace

import structlog

from climate.cloud.volumes import CloudVolume
from climate.context import Climate
from climate.domain.facts import AmountHold, KeptAmountsReleased
from climate.service.host_operations.round_settings import AUTHOR
from climate.service.leases import broken_leases
from climate.service.transaction import run
from climate.store import inventories as inventory_pools
from climate.store.allocation import inventories
from climate.store.allocation.inventories import Kept
from climate.store.leases import event_claims, leases

log = structlog.get_logger(__name__)


def release(climate: Climate) -> int:
    """Release the amounts of deleted volumes; return the number of reservations that released some."""
    kept = run(climate, inventories.kept)
    if not kept:
        return 0
    there = climate.cloud.volumes([str(one.reservation_id) for one in kept])
    return sum(_release_one(climate, one, [v for v in there if v.pool == str(one.reservation_id)]) for one in kept)


def _release_one(climate: Climate, one: Kept, there: list[CloudVolume]) -> bool:
    """Release the amounts of one reservation. Broken rows of its lease do not stop the others."""
    try:
        return _released(climate, one, there)
    except Exception as error:
        if not broken_leases.is_its_own(error):
            raise
        reason = str(error)[:200]
        log.warning("kept storage not released", reservation_id=str(one.reservation_id), reason=reason)
        return False


def _released(climate: Climate, one: Kept, there: list[CloudVolume]) -> bool:
    """Record the amounts that a reservation still keeps, if they have decreased."""
    with climate.engine.begin() as conn:
        lease = leases.holding(conn, one.end_event)
        holds = lease.reservation(one.reservation_id).amounts
        backends = inventory_pools.backends(conn, {hold.number for hold in holds})
        left = tuple(_left(hold, backends[hold.number], there) for hold in holds)
        if left == holds:
            return False
        present = tuple(hold for hold in left if hold.amount)
        leases.record(conn, AUTHOR, lease, KeptAmountsReleased(one.reservation_id, climate.now(conn), present))
        event_claims.wake_poller(conn)  # a lease may be waiting for them
        return True


def _left(hold: AmountHold, backend: str, there: list[CloudVolume]) -> AmountHold:
    """Return the remaining amounts, at most those that were held."""
    return replace(hold, amount=min(hold.amount, sum(v.size_gb for v in there if v.backend == backend)))
