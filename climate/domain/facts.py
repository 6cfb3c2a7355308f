"""What has happened to a lease, or to a host.  Facts are appended to the journal and never change.

Whatever was chosen rather than derived (ids, hosts, times) is in the fact, so
that a lease can be folded from its facts without the outside world.  A fact
only ever grows by fields with defaults.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from climate.domain.period import Period


@dataclass(frozen=True, slots=True)
class Hold:
    """A host kept for a reservation.  `during` is the lease's period, and the grace and cleaning time after it."""

    host: int
    during: Period
    slots: int = 0
    """How many servers of the reservation's size it has room for; 0: the whole host is kept."""


@dataclass(frozen=True, slots=True)
class AddressHold:
    """A floating address kept for a reservation.  `during` is the lease's period, and the grace time after it."""

    number: int
    """Of the address, among all that could ever be reserved."""
    address: str
    during: Period


FOREVER = datetime(2199, 12, 31, tzinfo=UTC)
"""The end of amounts that are kept when their lease ends."""


@dataclass(frozen=True, slots=True)
class AmountHold:
    """So much of a countable resource, held of one inventory for a reservation; in its own unit, such as GB.

    `during` is the lease's period and the grace time after it.  It ends at
    FOREVER where the reservation keeps what it has got after the lease.
    """

    number: int
    """Of the inventory, among all that there ever were."""
    amount: int
    during: Period

    @property
    def kept(self) -> bool:
        """Whether it outlasts the lease."""
        return self.during.end >= FOREVER


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """A share of a reservation that a child zone or cell is asked for.

    `id` is the key under which the child is asked, so that it gives the share
    once however often it is asked.  `zone` is the child's name at that time;
    of a cell `zone_id` is 0 and `zone` empty.
    """

    id: UUID
    zone_id: int
    zone: str
    least: int
    most: int
    cell: str = ""
    """The path of the cell; empty for a zone."""


@dataclass(frozen=True, slots=True)
class PlannedReservation:
    """A reservation of a new lease, with what was chosen for it."""

    id: UUID
    resource_type: str
    spec: Mapping[str, Any]
    resource_id: str | None = None
    holds: tuple[Hold, ...] = ()
    exists_before_start: bool = False
    """Something of it is in the cloud already while the lease is pending, such as a sleeping server."""
    addresses: tuple[AddressHold, ...] = ()
    parts: tuple[PlannedPart, ...] = ()
    amounts: tuple[AmountHold, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedEvent:
    """An event of a lease, new or at a new time.  `kind` is an EventKind; `name` is the type of an additional event."""

    id: UUID
    kind: str
    due_at: datetime
    name: str = ""


@dataclass(frozen=True, slots=True)
class LeaseCreated:
    """The first fact of every lease: what was asked for was granted."""

    lease_id: UUID
    at: datetime
    name: str
    project_id: str
    user_id: str
    period: Period
    reservations: tuple[PlannedReservation, ...]
    events: tuple[PlannedEvent, ...]


@dataclass(frozen=True, slots=True)
class LeaseRenamed:
    """The lease has another name."""

    at: datetime
    name: str


@dataclass(frozen=True, slots=True)
class LeaseRescheduled:
    """The dates moved.  `events` are those whose due time changed, or that are new or wanted again."""

    at: datetime
    period: Period
    events: tuple[PlannedEvent, ...]


@dataclass(frozen=True, slots=True)
class ReservationChanged:
    """A reservation asks for other things, or holds other hosts, addresses or amounts, or holds them for another time.

    `missing` is how many hosts it was promised and lacks now; `changed`, that
    it got others than it had while it was active.  None leaves them, its
    addresses and its amounts as they are.
    """

    at: datetime
    reservation_id: UUID
    spec: Mapping[str, Any]
    holds: tuple[Hold, ...]
    missing: int | None = None
    changed: bool | None = None
    reason: str = ""
    addresses: tuple[AddressHold, ...] | None = None
    amounts: tuple[AmountHold, ...] | None = None


@dataclass(frozen=True, slots=True)
class KeptAmountsReleased:
    """Some of what a reservation keeps after its lease was given back.  `amounts` are what is left of it."""

    reservation_id: UUID
    at: datetime
    amounts: tuple[AmountHold, ...]


@dataclass(frozen=True, slots=True)
class ClaimedShare:
    """The work of an event for the reservations of one resource type, claimed under a token of its own."""

    resource_type: str
    token: int


@dataclass(frozen=True, slots=True)
class EventClaimed:
    """Its time has come, and a worker was rung for; only who knows the `token` may say how it went.

    `shares` are there where the lease has several resource types: a worker of each type is rung for.
    """

    event_id: UUID
    at: datetime
    token: int
    shares: tuple[ClaimedShare, ...] = ()


@dataclass(frozen=True, slots=True)
class EventShareSettled:
    """A share of an event will not be run again.

    `outcome` is OK, or SKIPPED, FAILED, EXHAUSTED or MISSED for a `reason`.
    """

    event_id: UUID
    at: datetime
    resource_type: str
    outcome: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class EventSharePutBack:
    """A try of one share came to nothing; another one follows at `run_at`.

    `spent` is false where it only waits.  `token` is that of its new claim, while other shares
    are under way; 0 where none is, and the event as a whole is put back.
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
    """Its work is done.  `outcome` is OK or LATE."""

    event_id: UUID
    at: datetime
    outcome: str


@dataclass(frozen=True, slots=True)
class EventSkipped:
    """It needs no work any more: CANCELLED by a deletion, or SKIPPED because its time has passed."""

    event_id: UUID
    at: datetime
    outcome: str
    reason: str


@dataclass(frozen=True, slots=True)
class EventPutBack:
    """The try came to nothing; another one follows at `run_at`.  `spent` is false where it only waits."""

    event_id: UUID
    at: datetime
    run_at: datetime
    reason: str
    spent: bool


@dataclass(frozen=True, slots=True)
class EventClaimTakenBack:
    """The event is as it was before its last claim: no worker had begun when its lease was changed.

    `token` and `first_claimed_at` are those that it had before.
    """

    event_id: UUID
    at: datetime
    token: int = 0
    first_claimed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class EventFailed:
    """There will be no other try, unless an operator asks for one.  `outcome` is FAILED, EXHAUSTED or MISSED."""

    event_id: UUID
    at: datetime
    outcome: str
    reason: str


@dataclass(frozen=True, slots=True)
class EventRequeued:
    """An operator wants another round of tries for a failed event."""

    event_id: UUID
    at: datetime


@dataclass(frozen=True, slots=True)
class HoldConfirmed:
    """The held lease is an ordinary one from now on.  `event_id` is the event that would have ended the hold.

    `key` was given by who confirmed it: the same key again is the same confirmation.
    """

    event_id: UUID
    at: datetime
    key: str = ""


@dataclass(frozen=True, slots=True)
class HoldExpired:
    """The hold was not confirmed in time.  `event_id` is the event that ended it, `outcome` OK or LATE."""

    event_id: UUID
    at: datetime
    outcome: str


@dataclass(frozen=True, slots=True)
class LeasePartHeld:
    """A child zone or cell holds a part, as a reservation of a lease of its own."""

    part_id: UUID
    at: datetime
    lease_id: UUID
    """Of the child's lease."""
    reservation_id: UUID
    """Of the child's reservation."""
    hosts: int


@dataclass(frozen=True, slots=True)
class LeasePartConfirmed:
    """The child's lease for a part was confirmed."""

    part_id: UUID
    at: datetime


@dataclass(frozen=True, slots=True)
class LeasePartReleased:
    """The child has nothing of a part any more, or never had."""

    part_id: UUID
    at: datetime


@dataclass(frozen=True, slots=True)
class DeletionRequested:
    """The lease is to be ended and then forgotten; its end event is due now."""

    at: datetime


@dataclass(frozen=True, slots=True)
class LeaseDeleted:
    """The lease holds nothing any more and is gone from lists; its history stays."""

    at: datetime


Fact = (
    LeaseCreated
    | LeaseRenamed
    | LeaseRescheduled
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
    | HoldConfirmed
    | HoldExpired
    | LeasePartHeld
    | LeasePartConfirmed
    | LeasePartReleased
    | DeletionRequested
    | LeaseDeleted
)


@dataclass(frozen=True, slots=True)
class HostEnrolled:
    """A host was registered, in this pool (`climate.domain.hosts.pools.Pool`)."""

    host: int
    at: datetime
    name: str
    pool: str
    extra: Mapping[str, Any] | None = None
    """Its extra capabilities; None in facts of a time when capabilities were none."""
    token: int = 0
    """Under which the cloud is asked to put it there."""


@dataclass(frozen=True, slots=True)
class HostDescribed:
    """Extra capabilities of a host were set; None: taken away."""

    at: datetime
    extra: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class HostPowerSet:
    """How the host is switched, anew and as a whole.  The secrets themselves are in no fact."""

    at: datetime
    driver: str
    settings: Mapping[str, Any]
    watts: int | None = None
    secrets: bool = False
    """Whether there are any."""


@dataclass(frozen=True, slots=True)
class HostPowerCleared:
    """The host is no longer switched."""

    at: datetime


class PoolCause(StrEnum):
    """Why a host is in its pool, as far as the engine acts on it; the reason beside it is for people alone."""

    OTHER = ""
    DECLARED_WELL = "declared_well"  # failed, but an administrator says that it is well
    NOT_CLEANED = "not_cleaned"  # failed, since it could not be cleaned after a lease
    WINDOW = "maintenance_window"  # in maintenance until its window is over


@dataclass(frozen=True, slots=True)
class HostMoved:
    """A host went to another pool, or stays in its own for another reason or time."""

    at: datetime
    pool: str
    reason: str
    token: int = 0
    reservation_id: UUID | None = None
    until: datetime | None = None
    cause: str = PoolCause.OTHER
    """A PoolCause.  Facts of older releases have none: see `cause_in_words`."""


def cause_in_words(pool: str, reason: str) -> PoolCause:
    """Return the cause that releases before PoolCause kept in the text of the reason."""
    if pool == "failed" and reason == "declared well":
        return PoolCause.DECLARED_WELL
    if pool == "failed" and reason.startswith("not cleaned: "):
        return PoolCause.NOT_CLEANED
    if pool == "maintenance" and reason.startswith("worked on: "):
        return PoolCause.WINDOW
    return PoolCause.OTHER


@dataclass(frozen=True, slots=True)
class HostOpened:
    """An admin says whether the host may be chosen for new promises."""

    at: datetime
    reservable: bool
    reason: str


@dataclass(frozen=True, slots=True)
class HostSwitched:
    """The host was seen to be on or off, after it had been the other way."""

    at: datetime
    on: bool
    reason: str


@dataclass(frozen=True, slots=True)
class HostRemoved:
    """The host is no longer registered; its history stays."""

    at: datetime


HostFact = (
    HostEnrolled | HostDescribed | HostMoved | HostOpened | HostSwitched | HostPowerSet | HostPowerCleared | HostRemoved
)
