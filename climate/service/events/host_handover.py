"""Handover of hosts when a lease starts, and the messages about hosts that are not ready."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from climate.cloud import NotYet
from climate.context import Climate
from climate.domain.facts import Fact, ReservationChanged
from climate.domain.hosts.pools import READY, HostPlace, Pool
from climate.domain.lease import Lease, Reservation
from climate.domain.lease_health import weight
from climate.domain.status import HoldState
from climate.service.events import host_power_on

ON_THEIR_WAY = frozenset({Pool.CLEANING, Pool.RECYCLING, Pool.LENT})
"""Pools that a host leaves by itself, because its last lease is being ended."""


def ensure_ready(
    climate: Climate, reservation: Reservation, held: Sequence[HostPlace], *, patient: bool
) -> list[HostPlace]:
    """Return the hosts to leave out for now; raise NotYet while others are not up, and as `lacking` does."""
    out = lacking(reservation, held, patient=patient)
    host_power_on.ensure_powered_on(climate, [place for place in held if place not in out])
    return out


def lacking(reservation: Reservation, held: Sequence[HostPlace], *, patient: bool) -> list[HostPlace]:
    """Return the hosts to leave out for now.

    With patience, raises NotYet while some are still busy with the lease before, or none at all is ready: others
    may be found.
    """
    waited_for = [place for place in held if place.pool in ON_THEIR_WAY and place.reservation_id != reservation.id]
    if waited_for and patient:
        raise NotYet(f"not ready yet: {count_by_pool(waited_for)}")
    out = [place for place in held if place.pool not in READY or place.removed or place in waited_for]
    if held and len(out) == len(held) and patient:
        raise NotYet(f"none of the hosts is ready: {count_by_pool(out)}")
    return out


def count_by_pool(hosts: Sequence[HostPlace]) -> str:
    """Return the number of hosts in each pool, in one line for owners, which names no host."""
    counted = Counter(place.pool for place in hosts)
    return ", ".join(f"{count} {'host' if count == 1 else 'hosts'} {pool}" for pool, count in sorted(counted.items()))


def marks(lease: Lease, without: Mapping[UUID, Sequence[HostPlace]], now: datetime) -> list[Fact]:
    """Return the facts about reservations that started short of hosts, except those recorded before."""
    if lease.hold_state is HoldState.RELEASED:
        return []
    facts: list[Fact] = []
    for number, out in without.items():
        r, absent = lease.reservation(number), {place.host for place in out}
        missing = weight(hold for hold in r.holds if hold.host in absent)
        if missing > r.missing:
            facts.append(
                ReservationChanged(now, r.id, r.spec, r.holds, missing=missing, reason=f"without {count_by_pool(out)}")
            )
    return facts
