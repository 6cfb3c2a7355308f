"""Holds: offers that are kept for some minutes, as held leases, and the leases made of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection

from climate.context import Climate
from climate.database.connections import reading
from climate.domain.errors import Conflict, NotFound, PreconditionFailed
from climate.domain.events import event_transitions
from climate.domain.events.event_transitions import AdditionalEvent
from climate.domain.facts import PlannedEvent
from climate.domain.lease import Lease
from climate.domain.planning import holds
from climate.domain.policy import Caller, require
from climate.domain.status import EventKind
from climate.service.availability import offers
from climate.service.leases import confirmation, leases, reservation_aggregates
from climate.service.leases.leases import LeaseRequest
from climate.service.notifications import delivery, lease_events
from climate.service.transaction import run
from climate.store.idempotency import Key
from climate.store.leases import leases as stored
from climate.store.leases.leases import Listing, ReadLease
from climate.time_ordered_ids import time_ordered_id

NAME = "hold"
"""Name of a hold that was not given one."""

BEFORE_END = timedelta(seconds=2)
"""Least time between the end of a hold and the end of its lease."""


@dataclass(frozen=True, slots=True)
class Details:
    """Fields of a lease made of a hold, beside what is held."""

    name: str
    before_end: datetime | None = None
    events: Sequence[AdditionalEvent] = ()


def create(climate: Climate, caller: Caller, offer_id: str, name: str = NAME) -> Lease:
    """Hold what an offer has; repeated for the same offer, return the same hold.

    Raise NotFound for an offer to another project, and Conflict for one that has expired or was used. Raise the
    refusals of a create if others have taken the resources meanwhile.
    """
    require(caller, "leases:post")
    with reading(climate.engine) as conn:
        now = climate.now(conn)
    terms = offers.opened(climate, caller, offer_id, now)
    length = min(timedelta(seconds=climate.settings.hold_seconds), terms.end - now - BEFORE_END)
    order = LeaseRequest(name, terms.start, terms.end, reservations=terms.reservations, hold=length)
    made = leases.create(climate, caller, order, Key(f"offer {terms.number}", str(terms.number)))
    try:
        return get(climate, caller, made.id)
    except NotFound:
        raise Conflict("The offer was used before: its hold is confirmed, released or expired; search again") from None


def get(climate: Climate, caller: Caller, hold_id: UUID) -> Lease:
    """Return a hold; one that is over, confirmed or of another project is not found."""
    try:
        lease = leases.get(climate, caller, hold_id)
    except NotFound:
        raise _no_hold(hold_id) from None
    if not lease.held:
        raise _no_hold(hold_id)
    return lease


def rows(climate: Climate, caller: Caller, project_id: str | None = None) -> list[ReadLease]:
    """Return the holds of the project, or of all projects for an admin who names none; oldest first.

    The error of a hold that this release cannot read stands in its place.
    """
    return leases.rows(climate, caller, Listing(project_id or leases.scope(caller), status="HELD"))


def release(climate: Climate, caller: Caller, hold_id: UUID) -> None:
    """Release a hold; never a lease that was made of it meanwhile."""
    hold = get(climate, caller, hold_id)
    try:
        leases.delete(climate, caller, hold.id, hold.version)
    except PreconditionFailed:
        raise Conflict(f"The hold {hold_id} was changed meanwhile: look at it again") from None


def renew(climate: Climate, caller: Caller, hold_id: UUID) -> Lease:
    """Hold for CLIMATE_HOLD_SECONDS from now on, once; raise Conflict the second time, and after the expiry."""
    require(caller, "leases:post")
    return run(climate, _renew, climate, caller, hold_id)


def _renew(conn: Connection, climate: Climate, caller: Caller, hold_id: UUID) -> Lease:
    lease = _locked(conn, caller, hold_id)
    now = climate.now(conn)
    until = min(now + timedelta(seconds=climate.settings.hold_seconds), lease.period.end - BEFORE_END)
    return stored.record(conn, caller, lease, holds.renew(lease, until, now))


def take(climate: Climate, caller: Caller, hold_id: UUID, details: Details, key: Key | None = None) -> Lease:
    """Make the lease of a hold. It cannot fail for capacity, since all of it is held.

    Raise Conflict if the hold has expired, or a lease was made of it under another key.
    """
    require(caller, "leases:post")
    name = f"lease {key.text} {key.fingerprint}" if key else str(time_ordered_id())
    return reservation_aggregates.announce(climate, run(climate, _take, climate, caller, hold_id, details, name))


def _take(conn: Connection, climate: Climate, caller: Caller, hold_id: UUID, details: Details, key: str) -> Lease:
    try:
        lease = _locked(conn, caller, hold_id)
    except NotFound:
        return confirmation.confirmed_before(leases.story(conn, climate, caller, hold_id), key)
    now = climate.now(conn)
    confirmed = holds.confirm(lease, key, now)
    facts = holds.named(lease, details.name, _events(lease, details), now)
    after = stored.record(conn, caller, lease, *facts, confirmed)
    delivery.notify(conn, now, *lease_events.of(climate.settings, lease, after))
    leases.wake_if_soon(conn, climate, after, now)
    return after


def _events(lease: Lease, details: Details) -> list[PlannedEvent]:
    """Return the events that the owner asks for beside those of the hold."""
    added = event_transitions.additional(details.events, lease.period, details.before_end)
    planned = [PlannedEvent(time_ordered_id(), EventKind.ADDITIONAL, one.due_at, one.name) for one in added]
    wanted = details.before_end and event_transitions.before_end_time(lease.period, details.before_end, timedelta(0))
    if wanted:
        present = [event.id for event in lease.events if event.kind is EventKind.BEFORE_END]
        planned.append(PlannedEvent(present[0] if present else time_ordered_id(), EventKind.BEFORE_END, wanted))
    return planned


def _locked(conn: Connection, caller: Caller, hold_id: UUID) -> Lease:
    try:
        lease = stored.get(conn, hold_id, project_id=leases.scope(caller), lock=True)
    except NotFound:
        raise _no_hold(hold_id) from None
    if not lease.held:
        raise _no_hold(hold_id)
    return lease


def _no_hold(hold_id: UUID) -> NotFound:
    return NotFound(f"Object with {{'hold_id': '{hold_id}'}} not found")
