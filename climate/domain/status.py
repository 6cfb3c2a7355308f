"""The states of leases, reservations, events and holds, and how they follow from one another: tables, no branches."""

from collections.abc import Mapping
from enum import StrEnum


class EventKind(StrEnum):
    """In the order in which the events of a lease run, whatever their times."""

    EXPIRE = "expire_hold"  # ends a lease that is only held and was not confirmed; while it is open, no other runs
    SYNC = "sync_parts"  # gives the lease's dates to its parts in child zones
    PREPARE = "prepare_lease"  # has the hosts up when the lease starts
    START = "start_lease"
    ADJUST = "adjust_lease"  # hands over what was added to a lease that had started
    ADDITIONAL = "additional"  # named by the client, any number: tells plugins and owner, waits for no other event
    BEFORE_END = "before_end_lease"
    CLOSE = "close_lease"  # begins the grace period: nobody boots any more, the end follows
    END = "end_lease"


class EventStatus(StrEnum):
    UNDONE = "UNDONE"  # not begun, or put back to be tried again
    IN_PROGRESS = "IN_PROGRESS"  # claimed: some worker has it, or will
    DONE = "DONE"  # its work is done, or not needed any more
    ERROR = "ERROR"  # given up: it waits for an operator


class LeaseStatus(StrEnum):
    """Nobody sets it: `LEASE_STATUS` and `HELD_STATUS` say what it is."""

    HELD = "HELD"  # a promise with an expiry: nothing of it starts unless it is confirmed
    PENDING = "PENDING"
    STARTING = "STARTING"
    ACTIVE = "ACTIVE"
    TERMINATING = "TERMINATING"
    TERMINATED = "TERMINATED"
    DELETING = "DELETING"  # whatever it would be else but ERROR, once its deletion was asked for
    ERROR = "ERROR"


class ReservationStatus(StrEnum):
    PENDING = "pending"
    ACTIVE = "active"
    DELETED = "deleted"
    ERROR = "error"


class HoldState(StrEnum):
    """Held until the lease starts, active until its hosts are back, then released."""

    HELD = "held"
    ACTIVE = "active"
    RELEASED = "released"


class PartState(StrEnum):
    """Of a share of a reservation that lies in a child zone."""

    PLANNED = "planned"  # the child may have been asked for it
    HELD = "held"
    CONFIRMED = "confirmed"
    RELEASED = "released"


CANCELLED, SKIPPED = "CANCELLED", "SKIPPED"
"""Outcomes of events that are DONE without having been run."""

MISSED = "MISSED"
"""Outcome of a start in ERROR that came when its lease was over."""

UNDONE, IN_PROGRESS, DONE, ERROR = EventStatus

EVENT_MOVES: Mapping[EventStatus, frozenset[EventStatus]] = {
    UNDONE: frozenset({IN_PROGRESS, DONE}),  # DONE: skipped or cancelled
    IN_PROGRESS: frozenset({DONE, ERROR, UNDONE}),
    DONE: frozenset({UNDONE}),  # wanted again, as its time was moved into the future
    ERROR: frozenset({UNDONE}),  # an operator's requeue
}

HELD_STATUS: Mapping[EventStatus, LeaseStatus] = {UNDONE: LeaseStatus.HELD, IN_PROGRESS: LeaseStatus.HELD}
"""Event that ends the hold -> lease.  Once that event is DONE, the lease is as `LEASE_STATUS` says."""

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
"""(start event, end event) -> lease.  A pair that is not listed cannot happen."""
