"""Held leases, which expire unless they are confirmed.

A held lease has an event `expire_hold` before all its other events. None of the others may run while it is
open, and the lease is gone once it has run. A confirmation closes it, and the lease goes on like any other.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from climate.domain import facts
from climate.domain.errors import Conflict, InvalidInput
from climate.domain.events.event import Event
from climate.domain.facts import Fact, PlannedEvent
from climate.domain.lease import Lease
from climate.domain.period import Period
from climate.domain.status import RENEWED, UNDONE, PartState


def check_length(length: timedelta | None, longest: timedelta) -> None:
    """Raise InvalidInput if the hold is longer than allowed; None is no hold."""
    if length is None:
        return
    if not longest:
        raise InvalidInput("hold_seconds cannot be used: CLIMATE_HOLD_SECONDS is 0, so no lease can be held")
    if not timedelta(0) < length <= longest:
        seconds = f"{longest.total_seconds():.0f}"
        raise InvalidInput(f"hold_seconds is {length.total_seconds():.0f}: it must be between 1 and {seconds}")


def hold_until(length: timedelta | None, period: Period, now: datetime) -> datetime | None:
    """Return the expiry of a hold of that length; raise InvalidInput unless it is before the end of the lease."""
    if length is None:
        return None
    until = now + length
    if until >= period.end:
        raise InvalidInput(
            f"hold_seconds is {length.total_seconds():.0f}: the hold would last beyond the end of the lease, "
            f"{period.end:%Y-%m-%d %H:%M:%S} UTC; hold it for less"
        )
    return until


def confirm(lease: Lease, key: str, now: datetime) -> facts.HoldConfirmed:
    """Return the facts that confirm a held lease; raise Conflict if the hold has expired.

    Its parts in child zones are confirmed before it.
    """
    expiry = running(lease, now)
    if any(part.state is not PartState.CONFIRMED for part in lease.parts):
        raise Conflict(f"The lease {lease.id} is still being created: child zones have not confirmed their parts")
    return facts.HoldConfirmed(expiry.id, now, key)


def renew(lease: Lease, until: datetime, now: datetime) -> facts.HoldRenewed:
    """Return the facts that renew a hold; raise Conflict if it has expired or was renewed before."""
    expiry = running(lease, now)
    if not renewable(lease):
        raise Conflict(
            f"The hold {lease.id} was renewed before: make a lease of it until {expiry.due_at:%Y-%m-%d %H:%M:%S} UTC"
        )
    return facts.HoldRenewed(expiry.id, now, max(until, expiry.due_at))


def renewable(lease: Lease) -> bool:
    """Return whether the hold was not renewed yet."""
    return lease.expiry is not None and lease.expiry.outcome != RENEWED


def named(lease: Lease, name: str, events: Sequence[PlannedEvent], now: datetime) -> list[Fact]:
    """Return the facts that give the lease made of a hold its name, and these events beside its own."""
    changed: list[Fact] = [facts.LeaseRenamed(now, name)] if name != lease.name else []
    return [*changed, *([facts.LeaseRescheduled(now, lease.period, tuple(events))] if events else [])]


def running(lease: Lease, now: datetime) -> Event:
    """Return the event that will end the hold; raise Conflict if the lease is not held or its hold has expired.

    An expiry that a worker has begun counts even if it was put back, because it is never undone.
    """
    expiry = lease.expiry
    if expiry is None or not lease.held:
        raise Conflict(f"The lease {lease.id} is {lease.status}, not HELD: there is nothing to confirm")
    if expiry.stage is not UNDONE or expiry.due_at <= now:
        raise expired(lease)
    return expiry


def expired(lease: Lease) -> Conflict:
    """Return the error for confirming an expired hold."""
    at = f" at {lease.expiry.due_at:%Y-%m-%d %H:%M:%S} UTC" if lease.expiry else ""
    return Conflict(f"The hold of lease {lease.id} expired{at}: ask for a new lease")


def refuse_while_held(lease: Lease) -> None:
    """Raise Conflict for a held lease, of which only the name may change before it is confirmed."""
    if lease.hold_until is not None:
        raise Conflict(
            f"The lease {lease.id} is held until {lease.hold_until:%Y-%m-%d %H:%M:%S} UTC: "
            "confirm it before it is changed"
        )
