"""Leases made of facts, for tests of the rules."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from climate.domain import facts
from climate.domain.events import event_transitions
from climate.domain.events.event import Event
from climate.domain.events.event_transitions import Times
from climate.domain.facts import Fact, Hold, PlannedPart, PlannedReservation
from climate.domain.lease import Lease, evolve, fold
from climate.domain.period import Period

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
PERIOD = Period(NOON + HOUR, NOON + 3 * HOUR)


def created(
    period: Period = PERIOD,
    *,
    before_end: datetime | None = None,
    asleep: bool = False,
    prepare: datetime | None = None,
    hold_until: datetime | None = None,
    spread: bool = False,
    **terms: Any,
) -> facts.LeaseCreated:
    """One reservation that holds host 1.

    `asleep` for one that is in the cloud before its start, `hold_until` for a lease that is only held,
    `spread` for one of which a part lies in a child zone.
    """
    spec = {"min": 1, "max": 1, **terms}
    parts = (PlannedPart(UUID(int=8), 1, "left", 1, 2),) if spread else ()
    reservation = PlannedReservation(
        UUID(int=7), "physical:host", spec, None, (Hold(1, period),), exists_before_start=asleep, parts=parts
    )
    events = event_transitions.plan(
        Times(period, before_end, prepare, event_transitions.grace([spec]), hold_until), uuid4
    )
    return facts.LeaseCreated(uuid4(), NOON, "l", "project", "user", period, (reservation,), events)


def lease(period: Period = PERIOD, **more: Any) -> Lease:
    """Folded from `created`."""
    return fold([created(period, **more)])


def after(known: Lease, *happened: Fact) -> Lease:
    for fact in happened:
        known = evolve(known, fact)
    return known


def claimed(known: Lease, kind: str, now: datetime, token: int = 1) -> Lease:
    return after(known, event_transitions.claim(known, _id(known, kind), token, now))


def done(known: Lease, kind: str, now: datetime, token: int = 1) -> Lease:
    """Claimed and finished at once."""
    running = claimed(known, kind, now, token)
    return after(running, *event_transitions.finish(running, _id(known, kind), now))


def failed(known: Lease, kind: str, now: datetime, token: int = 1) -> Lease:
    running = claimed(known, kind, now, token)
    return after(running, event_transitions.fail(running, _id(known, kind), now, "broken"))


def _id(known: Lease, kind: str) -> UUID:
    return next(event.id for event in known.events if event.kind == kind)


def next_due(known: Lease, now: datetime) -> Event | None:
    """The most urgent event of the lease that may be claimed now, or None."""
    return next(iter(event_transitions.due(known, now)), None)
