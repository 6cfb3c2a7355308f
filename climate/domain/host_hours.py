"""Host hours of a lease: the stretches for which its reservations had hosts, computed from its facts.

A stretch begins with the period of the lease, or later when the host was added. It ends when the host was given back,
and no later than the end was due. Time for which a late end kept a host is not the project's. Holds that were never
confirmed and leases that were given up before their start have none.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from climate.domain.facts import Fact
from climate.domain.lease import Lease, evolve
from climate.domain.period import Period
from climate.domain.status import EventKind, HoldState


@dataclass(frozen=True, slots=True)
class HostUse:
    """Time for which a reservation had a host. Its end is planned if the lease is not over."""

    reservation_id: UUID
    host: int
    during: Period
    slots: int = 0
    """Number of slots on a shared host; 0: the whole host."""


Key = tuple[UUID, int, int]
"""Reservation, host and slots."""


def stretches(facts: Iterable[Fact]) -> list[HostUse]:
    """Return the stretches of a lease with these facts, oldest first."""
    result: list[HostUse] = []
    since: dict[Key, datetime] = {}
    lease: Lease | None = None
    for fact in facts:
        before, lease = lease, evolve(lease, fact)
        now = _had(lease)
        for key in [key for key in since if key not in now]:
            assert before is not None
            result += _stretch(before, key, since.pop(key), fact.at)
        for key in sorted(now - since.keys()):
            since[key] = fact.at
    for key, begun in since.items():
        assert lease is not None
        result += _stretch(lease, key, begun, None)
    return sorted(result, key=lambda one: (one.during.start, one.host, one.reservation_id))


def _had(lease: Lease) -> set[Key]:
    """Return what the reservations have, or will have in their period."""
    if lease.held or lease.waits:
        return set()
    return {
        (reservation.id, hold.host, hold.slots)
        for reservation in lease.reservations
        if lease.hold_state_of(reservation) is not HoldState.RELEASED
        for hold in reservation.holds
    }


def _stretch(lease: Lease, key: Key, begun: datetime, ended: datetime | None) -> list[HostUse]:
    """Return the stretch, or none if it was over before the period of the lease began."""
    due = lease.event(EventKind.END).due_at
    start, end = max(begun, lease.period.start), min(ended, due) if ended else due
    reservation_id, host, slots = key
    return [HostUse(reservation_id, host, Period(start, end), slots)] if start < end else []
