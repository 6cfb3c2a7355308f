"""Release of kept amounts of storage when their owners have deleted the volumes."""

from dataclasses import replace

from climate.cloud.volumes import CloudVolume
from climate.context import Climate
from climate.domain.facts import AmountHold, KeptAmountsReleased
from climate.service.host_operations.round_settings import AUTHOR
from climate.service.round_steps import RoundSteps
from climate.service.transaction import run
from climate.store import inventories as inventory_pools
from climate.store.allocation import inventories
from climate.store.allocation.inventories import Kept
from climate.store.leases import event_claims, leases


def release(climate: Climate) -> int:
    """Release the amounts of deleted volumes; return the number of reservations that released some."""
    kept = run(climate, inventories.retained)
    if not kept:
        return 0
    there = climate.cloud.volumes([str(one.reservation_id) for one in kept])
    steps, released = RoundSteps("kept storage not released"), 0
    for one in kept:
        with steps.item(reservation_id=str(one.reservation_id)):
            released += _released(climate, one, [v for v in there if v.pool == str(one.reservation_id)])
    return released


def _released(climate: Climate, one: Kept, there: list[CloudVolume]) -> bool:
    """Record the amounts that a reservation still keeps, if they have decreased."""
    with climate.engine.begin() as conn:
        lease = leases.holding(conn, one.end_event)
        holds = lease.reservation(one.reservation_id).amounts
        backends = inventory_pools.backends(conn, {hold.number for hold in holds})
        left = tuple(_remaining(hold, backends[hold.number], there) for hold in holds)
        if left == holds:
            return False
        present = tuple(hold for hold in left if hold.amount)
        leases.record(conn, AUTHOR, lease, KeptAmountsReleased(one.reservation_id, climate.now(conn), present))
        event_claims.wake_poller(conn)  # a lease may be waiting for them
        return True


def _remaining(hold: AmountHold, backend: str, there: list[CloudVolume]) -> AmountHold:
    """Return the remaining amounts, at most those that were held."""
    return replace(hold, amount=min(hold.amount, sum(v.size_gb for v in there if v.backend == backend)))
