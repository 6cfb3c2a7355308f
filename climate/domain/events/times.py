"""Order and latest times of the events of a lease."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from climate.domain.events.event import Event
from climate.domain.status import UNDONE, EventKind

_ORDER = {kind: place for place, kind in enumerate(EventKind)}


def in_order(events: Iterable[Event]) -> tuple[Event, ...]:
    """Sort the events by kind, additional ones by time."""
    return tuple(sorted(events, key=lambda event: (_ORDER[event.kind], event.due_at, event.id)))


def not_beyond(event: Event, latest: datetime) -> Event:
    """Limit the retry time of a put-back event, so that it does not delay an earlier end."""
    late = event.status is UNDONE and event.kind is not EventKind.END and event.run_at > latest
    return replace(event, run_at=latest) if late else event
