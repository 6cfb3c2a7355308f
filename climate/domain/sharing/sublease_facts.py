"""Facts about sub-leases, which have hosts of another lease: four of the parent lease, and two of the sub-lease."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class ParentLease:
    """Lease of which a sub-lease has its hosts, up to `until`, the end of the holds of both."""

    lease_id: UUID
    reservation_id: UUID
    project_id: str
    until: datetime
    returned: bool = False
    """Set once the sub-lease is over and its hosts were returned."""


@dataclass(frozen=True, slots=True)
class HostsSublet:
    """Promise of the hosts `to_take` of a reservation to a sub-lease.

    Its holds on them end at `start`. A running lease loses them at `take_at`, and its owner is warned at `warn_at`.
    """

    reservation_id: UUID
    at: datetime
    sublease_id: UUID
    to_take: tuple[int, ...]
    start: datetime
    warn_at: datetime
    take_at: datetime


@dataclass(frozen=True, slots=True)
class SubletWarned:
    """Warning that the hosts of a sub-lease are about to be taken."""

    reservation_id: UUID
    at: datetime
    sublease_id: UUID


@dataclass(frozen=True, slots=True)
class SubletHostsTaken:
    """End of the holds of a reservation on the hosts of a sub-lease."""

    reservation_id: UUID
    at: datetime
    sublease_id: UUID


@dataclass(frozen=True, slots=True)
class SubletHostsReturned:
    """End of a sub-lease for its parent. A ReservationChanged follows if hosts are returned."""

    reservation_id: UUID
    at: datetime
    sublease_id: UUID
    too_late: bool = False
    """Set if the parent was over or ending, so that it got nothing back."""


@dataclass(frozen=True, slots=True)
class SubleaseProlonged:
    """Later end of the hold of a sub-lease on its hosts, because its parent lease ends later."""

    at: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class SubleaseReturned:
    """Return of the hosts of a sub-lease that is over. It holds nothing any more."""

    at: datetime


SubletFact = HostsSublet | SubletWarned | SubletHostsTaken | SubletHostsReturned
SubleaseFact = SubletFact | SubleaseProlonged | SubleaseReturned
