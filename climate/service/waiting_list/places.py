"""Places of leases in the waiting list, and estimates of their starts, for their owners."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from climate.context import Climate
from climate.database.connections import reading
from climate.domain.lease import Lease
from climate.domain.planning.waiting_list import Entry
from climate.service.waiting_list.free_times import FreeTimes
from climate.store.leases import waiting_list

AHEAD = timedelta(days=90)
"""Time after the wanted start in which an estimate is searched for."""


@dataclass(frozen=True, slots=True)
class Place:
    """Place of a lease in the waiting list."""

    number: int
    """From 1 on."""
    estimate: datetime | None = None
    """Start at which it would get its resources as things stand now; None if none is known, or it was not asked for."""
    fits_from: datetime | None = None
    """First start at which it would fit, if the lease can only start before."""


def of(climate: Climate, leases: Sequence[Lease]) -> dict[UUID, Place]:
    """Return the places of those of the leases that wait."""
    ids = [lease.id for lease in leases if lease.waits]
    if not ids:
        return {}
    with reading(climate.engine) as conn:
        found = waiting_list.places(conn, ids, climate.now(conn), climate.settings.waiting_share_days)
    return {lease_id: Place(number) for lease_id, number in found.items()}


def estimated(climate: Climate, lease: Lease) -> Place | None:
    """Return the place of a lease with the estimate of its start; None for a lease that does not wait."""
    if lease.wait_until is None:
        return None
    with reading(climate.engine) as conn:
        now = climate.now(conn)
        found = waiting_list.places(conn, [lease.id], now, climate.settings.waiting_share_days)
        number = found.get(lease.id) or waiting_list.length(conn)[0] + 1
    asked = [(reservation.resource_type, dict(reservation.spec)) for reservation in lease.reservations]
    entry = Entry(lease.id, lease.project_id, lease.user_id, lease.period, lease.wait_until, lease.created_at, asked)
    latest = entry.period(now).end + AHEAD
    period = FreeTimes(climate, latest).first(entry, now, latest, frozenset())
    if period is None:
        return Place(number)
    return Place(number, period.start) if entry.may_start(period.start) else Place(number, fits_from=period.start)
