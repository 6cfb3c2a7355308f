"""Results of shares of an event, and new claims of shares while others are in progress."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection

from climate.domain.events import share_transitions
from climate.domain.events.event_share import Share
from climate.domain.facts import EventSharePutBack, Fact
from climate.domain.lease import Lease
from climate.store.leases import event_claims
from climate.store.leases.event_claims import Message
from climate.store.leases.queue_limits import QUEUE as QUEUE

Outcome = Callable[[Lease, datetime], Sequence[Fact]]
"""Function from a lease and a time to the facts of a run's result."""


def queue_of(resource_type: str) -> str:
    """Return the queue of a resource type: a slow plugin delays only its own events."""
    return f"{QUEUE}.{resource_type}"


def facts_of(conn: Connection, lease: Lease, claim: Message, by: str, outcome: Outcome, now: datetime) -> list[Fact]:
    """Return the facts of a claim that was just released, of a whole event or of a share.

    The lease is locked. A share that is put back while others are in progress is claimed under a new token.
    """
    share = share_transitions.claimed_share(lease.event(claim.event_id), claim.token)
    if share is None:
        return list(outcome(lease, now))
    alone = share_transitions.with_share_only(lease, claim.event_id, share)
    happened = list(share_transitions.as_share_facts(share, outcome(alone, now)))
    if not event_claims.has_open_claims(conn, claim.event_id):
        return share_transitions.settled(lease, claim.event_id, happened, now)
    return [_anew(conn, fact, share, by) if isinstance(fact, EventSharePutBack) else fact for fact in happened]


def _anew(conn: Connection, back: EventSharePutBack, share: Share, by: str) -> EventSharePutBack:
    token = event_claims.tokens(conn, 1)[0]
    message = Message(back.event_id, token, queue_of(share.resource_type))
    event_claims.open_many(conn, [message], by, back.at, not_before=back.run_at)
    return replace(back, token=token)
