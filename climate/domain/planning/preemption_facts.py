"""Facts about preemptible leases, whose hosts are taken when an ordinary lease needs them.

`needed_by` is the lease that needs the host. It belongs to another project, so only administrators see it.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from climate.domain.period import Period


@dataclass(frozen=True, slots=True)
class PreemptionPlanned:
    """Plan to take a host from a preemptible reservation. `during` is the time for which it still holds the host.

    The owner is warned at `warn_at`, and the host is taken at `take_at`. A later plan for the same host replaces it.
    """

    reservation_id: UUID
    at: datetime
    host: int
    during: Period
    warn_at: datetime
    take_at: datetime
    needed_by: UUID


@dataclass(frozen=True, slots=True)
class PreemptionWarned:
    """Warning to the owner of a preemptible reservation that the hosts `to_take` are about to be taken.

    `replaced` are those for which the reservation has others already.
    """

    reservation_id: UUID
    at: datetime
    to_take: tuple[int, ...]
    replaced: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class HostPreempted:
    """End of the hold of a preemptible reservation on a host, which an ordinary lease needs."""

    reservation_id: UUID
    at: datetime
    host: int
    needed_by: UUID


@dataclass(frozen=True, slots=True)
class LeasePreempted:
    """End of a preemptible lease, because a reservation of it would have fewer hosts than its minimum.

    A lease that was not started holds nothing any more. For one that was, a LeaseRescheduled with its end follows.
    """

    at: datetime
    reason: str
    needed_by: UUID


PreemptionFact = PreemptionPlanned | PreemptionWarned | HostPreempted | LeasePreempted
