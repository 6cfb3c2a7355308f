"""Leases, their hosts, and their history."""

from typing import NotRequired, TypedDict


class ReservationPart(TypedDict):
    """Part of a reservation in a child zone or cell."""

    zone: NotRequired[str]
    cell: NotRequired[str]
    state: str
    hosts: int
    lease_id: str | None
    reservation_id: str | None


class HeldReservation(TypedDict):
    """A reservation of a lease; its plugin defines the keys that only some have."""

    id: str
    lease_id: str
    resource_id: str | None
    resource_type: str
    status: str
    missing_resources: bool
    resources_changed: bool
    min: NotRequired[int]
    max: NotRequired[int]
    amount: NotRequired[int]
    size_gb: NotRequired[int]
    preemptible: NotRequired[bool]
    held_hosts: NotRequired[int]
    preemption_at: NotRequired[str]
    parts: NotRequired[list[ReservationPart]]
    created_at: str
    updated_at: str | None


class LeaseEvent(TypedDict):
    """An event of a lease."""

    id: str
    lease_id: str
    event_type: str
    time: str
    status: str
    created_at: str
    updated_at: str | None


class Waiting(TypedDict):
    """A place in the waiting list; lists have no estimate."""

    until: str
    place: NotRequired[int]
    estimate: NotRequired[str | None]
    reason: NotRequired[str]
    fits_from: NotRequired[str]


class Sharing(TypedDict):
    """Ids of the projects and users with whom a lease is shared."""

    projects: list[str]
    viewers: list[str]
    extenders: list[str]


class ParentLease(TypedDict):
    """The lease of which a sub-lease has its hosts."""

    lease_id: str
    project_id: str


class Sublease(TypedDict):
    """A sub-lease, with the number of its hosts."""

    id: str
    hosts: int


class Lease(TypedDict):
    """A lease with its reservations and events."""

    id: str
    name: str
    user_id: str
    project_id: str
    start_date: str
    end_date: str
    trust_id: str | None
    status: str
    status_reason: NotRequired[str]
    hold_until: NotRequired[str]
    waiting: NotRequired[Waiting]
    degraded: bool
    series_id: NotRequired[str]
    sharing: NotRequired[Sharing]
    parent: NotRequired[ParentLease]
    subleases: NotRequired[list[Sublease]]
    created_at: str
    updated_at: str | None
    reservations: list[HeldReservation]
    events: list[LeaseEvent]


class ListedEvent(TypedDict):
    """An event with its attempts, as administrators list it."""

    id: str
    lease_id: str
    project_id: str
    event_type: str
    status: str
    outcome: str | None
    reason: str | None
    attempts: int
    due_at: str
    run_at: str
    updated_at: str | None


class LeaseAnswer(TypedDict):
    """A lease in its envelope; the answer of a dry run has further keys."""

    lease: Lease


class LeaseServer(TypedDict):
    """A server on a host of a lease."""

    id: str
    name: str
    status: str


class LeaseHost(TypedDict):
    """A host of a lease; the servers are null for who may not know them."""

    name: str
    reservation_id: str
    properties: dict[str, object]
    servers: list[LeaseServer] | None


class Actor(TypedDict, total=False):
    """The author of an entry of a history."""

    user_id: str
    project_id: str


class FactPeriod(TypedDict):
    """The period of a lease or of an allocation."""

    start: str
    end: str


class FactEvent(TypedDict):
    """An event in the entry of a new lease."""

    id: str
    kind: str


class FactReservation(TypedDict):
    """A reservation in the entry of a new lease."""

    id: str
    resource_type: str


class Allocation(TypedDict):
    """A host, a number of its slots, or an address that a reservation has."""

    during: FactPeriod
    slots: NotRequired[int | None]


class LeaseFact(TypedDict, total=False):
    """The content of an entry; its kind says which keys it has."""

    name: str
    period: FactPeriod
    events: list[FactEvent]
    reservations: list[FactReservation]
    sharing: Sharing | None
    event_id: str
    reservation_id: str
    resource_type: str
    sublease_id: str
    holds: list[Allocation]
    addresses: list[Allocation]
    amounts: list[object]
    missing: int
    hosts: int
    start: str
    until: str
    run_at: str
    take_at: str
    outcome: str | None
    reason: str | None


class LeaseEntry(TypedDict):
    """An entry of the history of a lease."""

    version: int
    kind: str
    at: str
    actor: Actor
    request_id: str
    body: LeaseFact


class StoredEntry(LeaseEntry):
    """An entry as the journal has it."""

    recorded_at: str


class Decision(TypedDict):
    """An entry of the history of limits or of a pool's settings; a key of the body has the values."""

    version: int
    at: str
    actor: Actor
    request_id: str
    body: dict[str, dict[str, object]]
