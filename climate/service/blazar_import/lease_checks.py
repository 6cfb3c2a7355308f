"""Checks of single leases of Blazar, and their conversion."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from climate.domain.errors import ClimateError, InvalidInput
from climate.domain.hosts.shared_capacity import Size
from climate.domain.period import Period
from climate.domain.status import LEASE_STATUS, EventStatus
from climate.plugin import not_loaded
from climate.service.blazar_import import reservation_conversion
from climate.service.blazar_import.records import (
    BEFORE_END,
    DONE,
    END,
    ERROR,
    IN_PROGRESS,
    SERVERS,
    STABLE,
    START,
    UNDONE,
    BlazarHost,
    BlazarLease,
)
from climate.service.blazar_import.reservation_conversion import ConvertedReservation

EARLIEST, LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2199, 12, 31, tzinfo=UTC)
"""Bounds of the periods that climate stores."""

WAIT = "wait until Blazar is done with it, or repair it there; then import again"
REPAIR = "correct or delete it in Blazar"


class NotKept(ClimateError):
    """Something that climate cannot keep: the reason, and what to do about it."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.reason, self.remedy = reason, remedy


@dataclass(frozen=True, slots=True)
class ConvertedLease:
    """A lease that climate can keep, as far as can be seen without others."""

    blazar: BlazarLease
    id: UUID
    period: Period
    reservations: tuple[ConvertedReservation, ...]

    @property
    def is_active(self) -> bool:
        """Return whether Blazar has started it, and has not begun to end it."""
        return (self.blazar.states(START), self.blazar.states(END)) == ((DONE,), (UNDONE,))


def convert(lease: BlazarLease, types: AbstractSet[str], *, has_groups: bool = True) -> ConvertedLease:
    """Convert a lease; raise NotKept for one that climate cannot keep. `types` are those that have a plugin."""
    try:
        number = reservation_conversion.uuid_of(lease.id, "lease")
        for event in lease.events:
            reservation_conversion.uuid_of(event.id, "event")
    except InvalidInput as error:
        raise NotKept(str(error), REPAIR) from None
    _check_status(lease)
    _check_events(lease)
    if not lease.project_id:
        raise NotKept("it has no project", REPAIR)
    if not EARLIEST <= lease.start < lease.end <= LATEST:
        raise NotKept(f"its dates {lease.start:%Y-%m-%d %H:%M} and {lease.end:%Y-%m-%d %H:%M} are no period", REPAIR)
    for reservation in lease.reservations:
        if reservation.resource_type not in types:
            remedy = f"{not_loaded(reservation.resource_type)}; or let the lease end in Blazar"
            raise NotKept(f"climate has no plugin for its resource type {reservation.resource_type!r}", remedy)
    try:
        reservations = tuple(map(reservation_conversion.convert, lease.reservations))
    except InvalidInput as error:
        raise NotKept(str(error), REPAIR) from None
    if not has_groups and not lease.is_over and not lease.has_begun:
        _check_affinity(reservations)
    return ConvertedLease(lease, number, Period(lease.start, lease.end), reservations)


def _check_status(lease: BlazarLease) -> None:
    if lease.status not in STABLE:
        raise NotKept(f"Blazar is working on it: its status is {lease.status or 'empty'}", WAIT)
    if any(event.status == IN_PROGRESS for event in lease.events):
        raise NotKept("Blazar is working on it: an event is IN_PROGRESS", WAIT)


def _check_events(lease: BlazarLease) -> None:
    """Refuse events that climate does not have, or that contradict each other."""
    unknown = sorted({event.kind for event in lease.events} - {START, BEFORE_END, END})
    if unknown:
        raise NotKept(f"its event {unknown[0]!r} is none of Blazar's", REPAIR)
    start, end, before = lease.states(START), lease.states(END), lease.states(BEFORE_END)
    if (len(start), len(end)) != (1, 1) or len(before) > 1:
        raise NotKept(f"it has {len(start)} events {START}, {len(end)} {END} and {len(before)} {BEFORE_END}", REPAIR)
    strange = sorted({*start, *end, *before} - {UNDONE, DONE, ERROR})
    if strange:
        raise NotKept(f"an event has the status {strange[0] or 'empty'}", REPAIR)
    if (EventStatus(start[0]), EventStatus(end[0])) not in LEASE_STATUS:
        raise NotKept(f"its events contradict each other: {START} is {start[0]}, {END} is {end[0]}", REPAIR)
    promised = {"PENDING": (UNDONE, UNDONE), "ACTIVE": (DONE, UNDONE)}.get(lease.status, (start[0], end[0]))
    if promised != (start[0], end[0]) or (lease.status == "TERMINATED") != (end[0] == DONE):
        raise NotKept(f"its status {lease.status} contradicts its events: {start[0]}, {end[0]}", REPAIR)


def _check_affinity(reservations: tuple[ConvertedReservation, ...]) -> None:
    """Refuse a start that the cloud would refuse, because it has no groups with a chosen id."""
    for reservation in reservations:
        affinity = reservation.spec.get("affinity")
        if reservation.resource_type != SERVERS or affinity is None:
            continue
        if len(reservation.hosts) > 1 if affinity else sum(reservation.hosts.values()) > 1:
            reason = "OpenStack cannot start it: its servers need a server group with a chosen id"
            raise NotKept(reason, "let it start in Blazar first, or update it to affinity None there")


def capacity(host: BlazarHost) -> Size:
    """Return the size of a host, after the overcommitment that Blazar reserves with."""
    own = {"VCPU": host.vcpus, "MEMORY_MB": host.memory_mb, "DISK_GB": host.local_gb}
    return Size(*(max(amount, host.amounts.get(name, 0)) for name, amount in own.items()))
