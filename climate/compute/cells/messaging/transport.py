"""Transport: passes messages to the broker of a neighbour.

A transport may lose, duplicate and reorder messages. The sender keeps a message until the neighbour confirms it.
"""

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from climate.compute.cells.errors import CellError
from climate.compute.cells.messaging.messages import TYPES
from climate.compute.cells.models import Cell

QUEUE_BASE = "cells.intercell"

QUEUES: Mapping[str, str] = {kind: f"{QUEUE_BASE}.{kind}" for kind in TYPES}
"""Queue of each type of message, so that waiting requests do not delay responses."""

Envelope = Mapping[str, object]
"""Signed message from `signing.seal`."""


class TransportError(CellError):
    """Broker of the neighbour is unreachable."""


class CellTransport(Protocol):
    """Transport to neighbours."""

    def send(self, neighbour: Cell, queue: str, envelope: Envelope) -> None:
        """Push an envelope to a queue of the neighbour's broker. Raise TransportError."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...


@dataclass(slots=True)
class MemoryTransport:
    """In-memory brokers of several cells in one process, for tests."""

    queues: dict[str, deque[Envelope]] = field(default_factory=lambda: defaultdict(deque))
    """Envelopes by the name of the cell whose broker they are in."""
    away: set[str] = field(default_factory=set)
    """Cells whose broker is unreachable."""

    def send(self, neighbour: Cell, queue: str, envelope: Envelope) -> None:
        if neighbour.name in self.away:
            raise TransportError(f"The broker of cell {neighbour.name} is unreachable")
        self.queues[neighbour.name].append(envelope)

    def receive(self, name: str) -> list[Envelope]:
        """Return and remove all envelopes in the broker of a cell."""
        if name in self.away:
            return []
        result = list(self.queues[name])
        self.queues[name].clear()
        return result

    def close(self) -> None:
        """Do nothing: there are no connections."""
