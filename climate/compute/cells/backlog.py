"""Backlog of messages to the neighbours of this cell."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from climate.compute.context import Compute
from climate.compute.store.cells import messages
from climate.database.connections import reading


@dataclass(frozen=True, slots=True)
class Backlog:
    """Messages that neighbours have not confirmed."""

    now: datetime
    waiting: Mapping[str, tuple[int, datetime]]
    """Name of a neighbour -> (number of messages, time of the oldest)."""

    def count(self, cell: str) -> int:
        """Return the number of messages that wait for a neighbour."""
        return self.waiting.get(cell, (0, self.now))[0]

    def oldest_age(self, cell: str) -> float:
        """Return the age of the oldest message to a neighbour in seconds; 0 if there is none."""
        return (self.now - self.waiting.get(cell, (0, self.now))[1]).total_seconds()


def read(compute: Compute) -> Backlog:
    """Return the current backlog."""
    with reading(compute.engine) as conn:
        return Backlog(compute.now(conn), messages.counts(conn))
