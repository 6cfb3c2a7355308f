"""Record how a share of an event went, and claim it anew while other shares are under way."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection

from climate.domain import shares
from climate.domain.event_share import Share
from climate.domain.facts import EventSharePutBack, Fact
from climate.domain.lease import Lease
from climate.store import claims
from climate.store.claims import Message
from climate.store.queue_room import QUEUE as QUEUE

Outcome = Callable[[Lease, datetime], Sequence[Fact]]
"""What a lease and a moment make of a run: the facts of how it went."""


def queue_of(resource_type: str) -> str:
    """Return the queue of a resource type: a slow plugin delays nobody else's events."""
    return f"{QUEUE}.{resource_type}"


def facts_of(conn: Connection, lease: Lease, claim: Message, by: str, outcome: Outcome, now: datetime) -> list[Fact]:
    """Return the facts of a claim that was given up just now, of a whole event or of a share.

    The lease is locked.  A share that is put back while others are under way is claimed under a new token.
    """
    share = shares.under(lease.event(claim.event_id), claim.token)
    if share is None:
        return list(outcome(lease, now))
    happened = list(shares.of_share(share, outcome(shares.alone(lease, claim.event_id, share), now)))
    if not claims.others(conn, claim.event_id):
        return shares.settled(lease, claim.event_id, happened, now)
    return [_anew(conn, fact, share, by) if isinstance(fact, EventSharePutBack) else fact for fact in happened]


def _anew(conn: Connection, back: EventSharePutBack, share: Share, by: str) -> EventSharePutBack:
    token = claims.tokens(conn, 1)[0]
    message = Message(back.event_id, token, queue_of(share.resource_type))
    claims.open_many(conn, [message], by, back.at, not_before=back.run_at)
    return replace(back, token=token)
