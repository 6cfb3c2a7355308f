"""Transport: hands messages to the broker of a neighbour.

A transport may lose, double and reorder what it carries.  The sender keeps a
message until the neighbour has confirmed it.
"""

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from climate.compute.cells.cell import Cell
from climate.compute.cells.errors import CellError
from climate.compute.cells.messaging.messages import TYPES

QUEUE_BASE = "cells.intercell"

QUEUES: Mapping[str, str] = {kind: f"{QUEUE_BASE}.{kind}" for kind in TYPES}
"""The queue of each type of message: requests that wait must not delay responses."""

Envelope = Mapping[str, Any]
"""A signed message, as `signing.seal` makes it."""


class TransportError(CellError):
    """The broker of the neighbour cannot be reached."""


class CellTransport(Protocol):
    """One way to reach neighbours."""

    def send(self, neighbour: Cell, queue: str, envelope: Envelope) -> None:
        """Put an envelope into a queue of the neighbour's broker; TransportError when that fails."""
        ...

    def close(self) -> None:
        """Let go of all connections."""
        ...


@dataclass(slots=True)
class MemoryTransport:
    """All brokers of several cells in one process, for tests."""

    queues: dict[str, deque[Envelope]] = field(default_factory=lambda: defaultdict(deque))
    """Envelopes by the name of the cell whose broker they are in."""
    away: set[str] = field(default_factory=set)
    """Cells whose broker does not answer."""

    def send(self, neighbour: Cell, queue: str, envelope: Envelope) -> None:
        if neighbour.name in self.away:
            raise TransportError(f"The broker of cell {neighbour.name} is away")
        self.queues[neighbour.name].append(envelope)

    def receive(self, name: str) -> list[Envelope]:
        """Return and remove all that is in the broker of a cell."""
        if name in self.away:
            return []
        found = list(self.queues[name])
        self.queues[name].clear()
        return found

    def close(self) -> None:
        """Keep what waits: it is in no connection."""
