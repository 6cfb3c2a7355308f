"""Facts about leases and hosts, appended to the journal and never changed.

A fact holds everything that was chosen rather than derived, such as ids, hosts and times. A lease can
therefore be folded from its facts alone. New fields of a fact have defaults, so that old journals stay
readable.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from uuid import UUID

from climate.domain.period import Period
from climate.domain.planning.preemption_facts import PreemptionFact
from climate.domain.reservation_spec import Spec
from climate.domain.sharing.sharing import Sharing, SharingChanged
from climate.domain.sharing.sublease_facts import ParentLease, SubleaseFact


@dataclass(frozen=True, slots=True)
class Hold:
    """Host held for a reservation. `during` is the lease's period plus grace and cleaning time."""

    host: int
    during: Period
    slots: int = 0
    """Number of servers of the reservation's size that fit; 0: the whole host is held."""


@dataclass(frozen=True, slots=True)
class AddressHold:
    """Floating IP held for a reservation. `during` is the lease's period plus the grace time."""

    number: int
    """Number of the address, unique among all reservable addresses."""
    address: str
    during: Period


FOREVER = datetime(2199, 12, 31, tzinfo=UTC)
"""End of amounts that are kept when their lease ends."""


@dataclass(frozen=True, slots=True)
class AmountHold:
    """Amount of a countable resource held of one inventory for a reservation, in its own unit, such as GB.

    `during` is the lease's period plus the grace time. It ends at FOREVER if the reservation keeps the amount
    after the lease.
    """

    number: int
    """Number of the inventory, unique among all inventories."""
    amount: int
    during: Period

    @property
    def kept(self) -> bool:
        """Return whether the amount outlasts the lease."""
        return self.during.end >= FOREVER


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """Share of a reservation that a child zone or cell is asked for.

    `id` is the idempotency key of the requests to the child. `zone` is the child's name at that time; for a cell,
    `zone_id` is 0 and `zone` is empty.
    """

    id: UUID
    zone_id: int
    zone: str
    least: int
    most: int
    cell: str = ""
    """Path of the cell; empty for a zone."""


@dataclass(frozen=True, slots=True)
class PlannedReservation:
    """Reservation of a new lease, with the resources that were chosen for it."""

    id: UUID
    resource_type: str
    spec: Spec
    resource_id: str | None = None
    holds: tuple[Hold, ...] = ()
    exists_before_start: bool = False
    """Set if the cloud already has some of it while the lease is pending, such as a server in status RESERVED."""
    addresses: tuple[AddressHold, ...] = ()
    parts: tuple[PlannedPart, ...] = ()
    amounts: tuple[AmountHold, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedEvent:
    """Event of a lease, new or at a new time. `kind` is an EventKind; `name` is the type of an additional event."""

    id: UUID
    kind: str
    due_at: datetime
    name: str = ""


@dataclass(frozen=True, slots=True)
class LeaseCreated:
    """Creation of a lease. First fact of every lease."""

    lease_id: UUID
    at: datetime
    name: str
    project_id: str
    user_id: str
    period: Period
    reservations: tuple[PlannedReservation, ...]
    events: tuple[PlannedEvent, ...]
    series_id: UUID | None = None
    """Series of which the lease is an occurrence."""
    sharing: Sharing | None = None
    """Further projects and users; None if there are none."""
    parent: ParentLease | None = None
    """Lease of which a sub-lease has its hosts."""


@dataclass(frozen=True, slots=True)
class LeaseRenamed:
    """New name of a lease."""

    at: datetime
    name: str


@dataclass(frozen=True, slots=True)
class LeaseRescheduled:
    """New dates of a lease. `events` are those that are new, due at another time, or to be run again."""

    at: datetime
    period: Period
    events: tuple[PlannedEvent, ...]


@dataclass(frozen=True, slots=True)
class ReservationChanged:
    """New request of a reservation, or other hosts, addresses, amounts or times for it.

    `missing` is the number of promised hosts that it lacks. `changed` is set if it got other hosts while it was
    active. None leaves hosts, addresses or amounts as they are.
    """

    at: datetime
    reservation_id: UUID
    spec: Spec
    holds: tuple[Hold, ...]
    missing: int | None = None
    changed: bool | None = None
    reason: str = ""
    addresses: tuple[AddressHold, ...] | None = None
    amounts: tuple[AmountHold, ...] | None = None


@dataclass(frozen=True, slots=True)
class KeptAmountsReleased:
    """Release of some of the amounts that a reservation keeps after its lease. `amounts` are those that remain."""

    reservation_id: UUID
    at: datetime
    amounts: tuple[AmountHold, ...]


@dataclass(frozen=True, slots=True)
class ClaimedShare:
    """Work of an event for the reservations of one resource type, claimed under its own token."""

    resource_type: str
    token: int


@dataclass(frozen=True, slots=True)
class EventClaimed:
    """Claim of a due event by a worker; only the holder of `token` may record the result.

    `shares` are set if the lease has several resource types: each share has a worker of its type.
    """

    event_id: UUID
    at: datetime
    token: int
    shares: tuple[ClaimedShare, ...] = ()


@dataclass(frozen=True, slots=True)
class EventShareSettled:
    """End of a share of an event, which does not run again.

    `outcome` is OK, or SKIPPED, FAILED, EXHAUSTED or MISSED for a `reason`.
    """

    event_id: UUID
    at: datetime
    resource_type: str
    outcome: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class EventSharePutBack:
    """Failed attempt of one share; the next one follows at `run_at`.

    `spent` is false if the share only waits. `token` is that of its new claim while other shares are in progress;
    0 if none is, and the event as a whole is put back.
    """

    event_id: UUID
    at: datetime
    resource_type: str
    run_at: datetime
    reason: str
    spent: bool
    token: int = 0


@dataclass(frozen=True, slots=True)
class EventFinished:
    """Success of an event. `outcome` is OK or LATE."""

    event_id: UUID
    at: datetime
    outcome: str


@dataclass(frozen=True, slots=True)
class EventSkipped:
    """Skipping of an event: CANCELLED by a deletion, or SKIPPED because its time has passed."""

    event_id: UUID
    at: datetime
    outcome: str
    reason: str


@dataclass(frozen=True, slots=True)
class EventPutBack:
    """Failed attempt of an event; the next one follows at `run_at`. `spent` is false if it only waits."""

    event_id: UUID
    at: datetime
    run_at: datetime
    reason: str
    spent: bool


@dataclass(frozen=True, slots=True)
class EventClaimTakenBack:
    """Withdrawal of a claim that no worker had begun when its lease was changed.

    `token` and `first_claimed_at` are those from before the claim.
    """

    event_id: UUID
    at: datetime
    token: int = 0
    first_claimed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class EventFailed:
    """Failure of an event, final unless an operator requeues it. `outcome` is FAILED, EXHAUSTED or MISSED."""

    event_id: UUID
    at: datetime
    outcome: str
    reason: str


@dataclass(frozen=True, slots=True)
class EventRequeued:
    """Requeueing of a failed event by an operator."""

    event_id: UUID
    at: datetime


@dataclass(frozen=True, slots=True)
class HoldConfirmed:
    """Confirmation of a held lease. `event_id` is the event that would have ended the hold.

    `key` is the idempotency key of the confirmation.
    """

    event_id: UUID
    at: datetime
    key: str = ""


@dataclass(frozen=True, slots=True)
class HoldRenewed:
    """Renewal of a hold. `event_id` is the event that ends the hold, which is due at `until` now."""

    event_id: UUID
    at: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class HoldExpired:
    """Expiry of a hold that was not confirmed. `event_id` is the event that ended it, `outcome` OK or LATE."""

    event_id: UUID
    at: datetime
    outcome: str


@dataclass(frozen=True, slots=True)
class LeaseGranted:
    """Grant of the resources that a lease has waited for. `event_id` is the event that would have ended the wait."""

    event_id: UUID
    at: datetime
    reservations: tuple[PlannedReservation, ...]
    """Its reservations under their own ids, with the resources that were chosen for them."""


@dataclass(frozen=True, slots=True)
class WaitExpired:
    """End of a wait in vain. `event_id` is the event that ended it, `outcome` OK or LATE."""

    event_id: UUID
    at: datetime
    outcome: str


@dataclass(frozen=True, slots=True)
class LeasePartHeld:
    """Hold of a part in a child zone or cell, as a reservation of a lease there."""

    part_id: UUID
    at: datetime
    lease_id: UUID
    """Id of the child's lease."""
    reservation_id: UUID
    """Id of the child's reservation."""
    hosts: int


@dataclass(frozen=True, slots=True)
class LeasePartConfirmed:
    """Confirmation of the child's lease for a part."""

    part_id: UUID
    at: datetime


@dataclass(frozen=True, slots=True)
class LeasePartReleased:
    """Release of a part: the child holds nothing of it any more, or never did."""

    part_id: UUID
    at: datetime


@dataclass(frozen=True, slots=True)
class DeletionRequested:
    """Request to delete a lease; its end event is due at once."""

    at: datetime


@dataclass(frozen=True, slots=True)
class LeaseDeleted:
    """Deletion of a lease, which holds nothing any more. Its history remains."""

    at: datetime


HoldFact = HoldConfirmed | HoldRenewed | HoldExpired
PartFact = LeasePartHeld | LeasePartConfirmed | LeasePartReleased
Fact = (
    LeaseCreated
    | LeaseRenamed
    | LeaseRescheduled
    | SharingChanged
    | ReservationChanged
    | KeptAmountsReleased
    | EventClaimed
    | EventShareSettled
    | EventSharePutBack
    | EventFinished
    | EventSkipped
    | EventPutBack
    | EventClaimTakenBack
    | EventFailed
    | EventRequeued
    | HoldFact
    | LeaseGranted
    | WaitExpired
    | PartFact
    | PreemptionFact
    | SubleaseFact
    | DeletionRequested
    | LeaseDeleted
)


@dataclass(frozen=True, slots=True)
class HostEnrolled:
    """Registration of a host, in a pool (`climate.domain.hosts.pools.Pool`)."""

    host: int
    at: datetime
    name: str
    pool: str
    extra: Mapping[str, str] | None = None
    """Extra capabilities; None in facts of releases without them."""
    token: int = 0
    """Fencing token of the request to the cloud to add the host to the pool."""


@dataclass(frozen=True, slots=True)
class HostDescribed:
    """New extra capabilities of a host; None removes one."""

    at: datetime
    extra: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class HostPowerSet:
    """New power settings of a host, as a whole. No fact holds the secrets themselves."""

    at: datetime
    driver: str
    settings: Mapping[str, object]
    watts: int | None = None
    secrets: bool = False
    """Set if the host has secrets."""


@dataclass(frozen=True, slots=True)
class HostPowerCleared:
    """Removal of the power settings of a host."""

    at: datetime


class PoolCause(StrEnum):
    """Cause for which a host is in its pool, for decisions of the engine. The reason beside it is for people only."""

    OTHER = ""
    DECLARED_WELL = "declared_well"  # failed, but an administrator has declared it well
    NOT_CLEANED = "not_cleaned"  # failed, because it could not be cleaned after a lease
    WINDOW = "maintenance_window"  # in maintenance until its window is over


@dataclass(frozen=True, slots=True)
class HostMoved:
    """Move of a host to another pool, or a new reason or time for staying in its pool."""

    at: datetime
    pool: str
    reason: str
    token: int = 0
    reservation_id: UUID | None = None
    until: datetime | None = None
    cause: str = PoolCause.OTHER
    """A PoolCause. Facts of older releases have none: see `fact_codec`."""


@dataclass(frozen=True, slots=True)
class HostOpened:
    """Decision of an admin about new allocations on a host."""

    at: datetime
    reservable: bool
    reason: str


@dataclass(frozen=True, slots=True)
class HostSwitched:
    """Observed change of a host's power, on or off."""

    at: datetime
    on: bool
    reason: str


@dataclass(frozen=True, slots=True)
class HostRemoved:
    """Removal of a host from the inventory. Its history remains."""

    at: datetime


HostFact = (
    HostEnrolled | HostDescribed | HostMoved | HostOpened | HostSwitched | HostPowerSet | HostPowerCleared | HostRemoved
)
