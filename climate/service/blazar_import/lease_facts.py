"""Facts of an imported lease: as if climate had created it, and carried out its events when Blazar did."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from uuid import UUID

from climate.domain.events.event_share import OK
from climate.domain.facts import (
    AddressHold,
    EventClaimed,
    EventFailed,
    EventFinished,
    EventSkipped,
    Fact,
    Hold,
    LeaseCreated,
    PlannedEvent,
    PlannedReservation,
    ReservationChanged,
)
from climate.domain.status import SKIPPED
from climate.service.blazar_import.lease_checks import ConvertedLease
from climate.service.blazar_import.records import ADDRESSES, BEFORE_END, DONE, END, ERROR, START, UNDONE, BlazarEvent
from climate.service.blazar_import.reservation_conversion import ConvertedReservation
from climate.store.leases.leases import AHEAD_OF_ITS_START

FAILED = "FAILED"
IN_BLAZAR = "failed in Blazar"
TOO_LATE = "the lease was over before it could be run"

Hosts = Mapping[str, int]
"""Numbers of hosts by their ids in Blazar."""
Addresses = Mapping[str, tuple[int, str]]
"""Numbers and texts of floating IPs by their ids in Blazar."""


def tokens_needed(lease: ConvertedLease) -> int:
    """Return the number of claims of a lease."""
    return sum(event.status in (DONE, ERROR) for event in lease.blazar.events)


def facts_of(
    lease: ConvertedLease, hosts: Hosts, addresses: Addresses, tokens: Iterator[int], now: datetime
) -> list[Fact]:
    """Return the facts in order; none is later than `now`.

    Allocations of unknown hosts and addresses are left out, which only leases that are over have.
    """
    at = min(lease.blazar.created_at or lease.period.start, lease.period.start + AHEAD_OF_ITS_START, now)
    facts: list[Fact] = [_created(lease, hosts, addresses, at)]
    for event in sorted(lease.blazar.events, key=lambda event: (START, BEFORE_END, END).index(event.kind)):
        at = max(at, min(event.time, now))
        facts += _carried_out(event, at, tokens, is_over=lease.blazar.is_over)
    for reservation in lease.reservations:
        if reservation.missing or reservation.changed:
            held = _holds(lease, reservation, hosts)
            facts.append(
                ReservationChanged(
                    at, reservation.id, reservation.spec, held, missing=reservation.missing, changed=reservation.changed
                )
            )
    return facts


def _created(lease: ConvertedLease, hosts: Hosts, addresses: Addresses, at: datetime) -> LeaseCreated:
    is_pending = lease.blazar.states(START) == (UNDONE,)
    edges = {START: lease.period.start, END: lease.period.end}
    return LeaseCreated(
        lease_id=lease.id,
        at=at,
        name=lease.blazar.name,
        project_id=lease.blazar.project_id,
        user_id=lease.blazar.user_id,
        period=lease.period,
        reservations=tuple(
            PlannedReservation(
                reservation.id,
                reservation.resource_type,
                reservation.spec,
                holds=_holds(lease, reservation, hosts),
                # Blazar has created an aggregate, and for servers a flavor: a deletion has to end the lease.
                exists_before_start=is_pending and reservation.resource_type != ADDRESSES,
                addresses=_addresses(lease, reservation, addresses),
            )
            for reservation in lease.reservations
        ),
        events=tuple(
            PlannedEvent(UUID(event.id), event.kind, edges.get(event.kind) or _inside(event.time, lease))
            for event in lease.blazar.events
        ),
    )


def _holds(lease: ConvertedLease, one: ConvertedReservation, hosts: Hosts) -> tuple[Hold, ...]:
    known = sorted((hosts[number], slots) for number, slots in one.hosts.items() if number in hosts)
    return tuple(Hold(number, lease.period, slots) for number, slots in known)


def _addresses(lease: ConvertedLease, one: ConvertedReservation, addresses: Addresses) -> tuple[AddressHold, ...]:
    known = sorted(addresses[number] for number in one.addresses if number in addresses)
    return tuple(AddressHold(number, address, lease.period) for number, address in known)


def _inside(time: datetime, lease: ConvertedLease) -> datetime:
    return min(max(time, lease.period.start), lease.period.end)


def _carried_out(event: BlazarEvent, at: datetime, tokens: Iterator[int], *, is_over: bool) -> Iterator[Fact]:
    number = UUID(event.id)
    if event.status in (DONE, ERROR):
        yield EventClaimed(number, at, next(tokens))
    if event.status == DONE:
        yield EventFinished(number, at, OK)
    elif event.status == ERROR:
        yield EventFailed(number, at, FAILED, IN_BLAZAR)
    elif is_over:
        yield EventSkipped(number, at, SKIPPED, TOO_LATE)
