"""States of leases, reservations, events and holds, as tables."""

from collections.abc import Mapping
from enum import StrEnum


class EventKind(StrEnum):
    """Kind of event, in the order in which the events of a lease run, whatever their times."""

    WAIT_OVER = "expire_wait"  # ends a lease that got nothing in the waiting list; while it is open, no other runs
    EXPIRE = "expire_hold"  # ends a held lease that was not confirmed; while it is open, no other runs
    SYNC = "sync_parts"  # sends the lease's dates to its parts in child zones
    PREPARE = "prepare_lease"  # switches the hosts on before the lease starts
    START = "start_lease"
    ADJUST = "adjust_lease"  # hands over additions to a running lease
    ADDITIONAL = "additional"  # named by the client, any number: notifies plugins and owner, waits for no other event
    BEFORE_END = "before_end_lease"
    CLOSE = "close_lease"  # begins the grace period: no new servers, the end follows
    END = "end_lease"


class EventStatus(StrEnum):
    UNDONE = "UNDONE"  # not begun, or put back to be retried
    IN_PROGRESS = "IN_PROGRESS"  # claimed by a worker, or about to be
    DONE = "DONE"  # its work is done, or no longer needed
    ERROR = "ERROR"  # failed: it waits for an operator


class LeaseStatus(StrEnum):
    """Status of a lease, derived by `LEASE_STATUS` and `HELD_STATUS`, never set."""

    HELD = "HELD"  # a hold with an expiry: nothing of it starts unless it is confirmed
    PENDING = "PENDING"
    STARTING = "STARTING"
    ACTIVE = "ACTIVE"
    TERMINATING = "TERMINATING"
    TERMINATED = "TERMINATED"
    DELETING = "DELETING"  # instead of any other status but ERROR, once its deletion was requested
    ERROR = "ERROR"


class ReservationStatus(StrEnum):
    PENDING = "pending"
    ACTIVE = "active"
    DELETED = "deleted"
    ERROR = "error"


class HoldState(StrEnum):
    """State of a hold: held until the lease starts, active until its hosts are back, then released."""

    HELD = "held"
    ACTIVE = "active"
    RELEASED = "released"


class PartState(StrEnum):
    """State of a share of a reservation in a child zone."""

    PLANNED = "planned"  # the child may have been asked for it
    HELD = "held"
    CONFIRMED = "confirmed"
    RELEASED = "released"


CANCELLED, SKIPPED = "CANCELLED", "SKIPPED"
"""Outcomes of events that are DONE without having run."""

RENEWED = "RENEWED"
"""Outcome of the open event that ends a hold, once the hold was renewed."""

MISSED = "MISSED"
"""Outcome of a start in ERROR whose lease is over."""

UNDONE, IN_PROGRESS, DONE, ERROR = EventStatus

EVENT_MOVES: Mapping[EventStatus, frozenset[EventStatus]] = {
    UNDONE: frozenset({IN_PROGRESS, DONE}),  # DONE: skipped or cancelled
    IN_PROGRESS: frozenset({DONE, ERROR, UNDONE}),
    DONE: frozenset({UNDONE}),  # to be run again, because its time was moved into the future
    ERROR: frozenset({UNDONE}),  # requeued by an operator
}

HELD_STATUS: Mapping[EventStatus, LeaseStatus] = {UNDONE: LeaseStatus.HELD, IN_PROGRESS: LeaseStatus.HELD}
"""Event that ends the hold -> lease. Once that event is DONE, `LEASE_STATUS` applies."""

LEASE_STATUS: Mapping[tuple[EventStatus, EventStatus], LeaseStatus] = {
    (UNDONE, UNDONE): LeaseStatus.PENDING,
    (IN_PROGRESS, UNDONE): LeaseStatus.STARTING,
    (DONE, UNDONE): LeaseStatus.ACTIVE,
    (DONE, IN_PROGRESS): LeaseStatus.TERMINATING,
    (DONE, DONE): LeaseStatus.TERMINATED,
    (DONE, ERROR): LeaseStatus.ERROR,
    (ERROR, UNDONE): LeaseStatus.ERROR,
    (ERROR, IN_PROGRESS): LeaseStatus.TERMINATING,
    (ERROR, DONE): LeaseStatus.TERMINATED,
    (ERROR, ERROR): LeaseStatus.ERROR,
}
"""(start event, end event) -> lease. A pair that is not listed cannot happen."""
