"""Servers on leases whose hosts lie in child zones."""

from collections.abc import Mapping
from uuid import UUID

from climate.compute.zones.models import Parts
from climate.domain.lease import Lease
from climate.domain.status import PartState


def parts(leases: Mapping[str, Lease]) -> Parts:
    """Return child zone -> its reservations that can boot servers; `leases` by the reservation of this zone."""
    result: dict[int, tuple[str, ...]] = {}
    for reservation, lease in leases.items():
        for part in lease.reservation(UUID(reservation)).parts:
            if part.state is PartState.CONFIRMED and not part.cell:
                result[part.zone_id] = (*result.get(part.zone_id, ()), str(part.reservation_id))
    return result
