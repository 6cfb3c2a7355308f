"""Withdrawal of claims that no worker has begun, so that a change of the lease does not wait for the queue."""

from datetime import datetime

from sqlalchemy import Connection

from climate.domain import facts
from climate.domain.events.event import Event
from climate.domain.facts import EventClaimed, EventClaimTakenBack, Fact
from climate.domain.lease import Lease, fold
from climate.domain.policy import Caller
from climate.domain.status import IN_PROGRESS
from climate.store.journal import journal
from climate.store.leases import event_claims, leases

OF_AN_EVENT = (
    facts.EventShareSettled | facts.EventSharePutBack | facts.EventClaimed | facts.EventPutBack | facts.EventFinished
)


def take_back(conn: Connection, author: Caller, lease: Lease, now: datetime) -> Lease:
    """Return the locked lease without the claim of its event in progress, if no worker has begun that.

    The message for the claim becomes stale. If a worker has begun, or a share of the event was settled under the
    claim, the lease stays as it is.
    """
    running = next((event for event in lease.events if event.status is IN_PROGRESS), None)
    if running is None or not event_claims.is_unbegun(conn, running.id):
        return lease
    fact = _taken_back(journal.of_lease(journal.read(conn, lease.id)), running, now)
    if fact is None:
        return lease
    event_claims.close(conn, running.id)
    return leases.record(conn, author, lease, fact)


def _taken_back(story: list[Fact], event: Event, now: datetime) -> EventClaimTakenBack | None:
    """Return the fact that withdraws the last claim; None if it already had an effect."""
    own = [index for index, fact in enumerate(story) if isinstance(fact, OF_AN_EVENT) and fact.event_id == event.id]
    if not own or not isinstance(story[own[-1]], EventClaimed):
        return None
    before = fold(story[: own[-1]]).event(event.id)
    return EventClaimTakenBack(event.id, now, before.token, before.first_claimed_at)
