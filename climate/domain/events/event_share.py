"""Progress of an event for the reservations of one resource type, in leases with several types."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from climate.domain.errors import NotFound
from climate.domain.facts import ClaimedShare, EventSharePutBack, EventShareSettled

OK = "OK"
"""Outcome of a share whose work is done."""


@dataclass(frozen=True, slots=True)
class Share:
    """Work of an event for the reservations of one resource type."""

    resource_type: str
    token: int
    """Fencing token of its latest claim."""
    attempts: int = 0
    """Failed attempts."""
    outcome: str | None = None
    """OK, SKIPPED, FAILED, EXHAUSTED or MISSED; None as long as the share may run."""
    reason: str | None = None


def claimed(known: tuple[Share, ...], now: Iterable[ClaimedShare]) -> tuple[Share, ...]:
    """Return the shares of an event after a claim of some, in the order in which they were first claimed."""
    by_type = {share.resource_type: share for share in known}
    for one in now:
        share = by_type.get(one.resource_type) or Share(one.resource_type, one.token)
        by_type[one.resource_type] = replace(share, token=one.token)
    return tuple(by_type.values())


def moved(
    known: tuple[Share, ...], fact: EventShareSettled | EventSharePutBack
) -> tuple[tuple[Share, ...], str | None]:
    """Return an event's shares after a fact about one of them, and its reason; raise NotFound without that share."""
    share = next((share for share in known if share.resource_type == fact.resource_type), None)
    if share is None:
        raise NotFound(f"event {fact.event_id} has no share for {fact.resource_type}")
    if isinstance(fact, EventShareSettled):
        after = replace(share, outcome=fact.outcome, reason=fact.reason or None)
    else:
        tries, token = share.attempts + fact.spent, fact.token or share.token
        after = replace(share, attempts=tries, reason=fact.reason, token=token)
    return tuple(after if one is share else one for one in known), after.reason
