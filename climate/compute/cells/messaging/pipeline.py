"""Pipeline: the process that stores messages hands them on itself; the database keeps them in case that it dies."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from climate.compute.cells.cell import Cell
from climate.compute.cells.messaging.dispatch import Handlers
from climate.compute.cells.messaging.messages import Message
from climate.compute.cells.neighbours import Links
from climate.compute.cells.state.link_cache import Here
from climate.compute.context import Compute
from climate.compute.store.cells.messages import Arrived, Sent


@dataclass(frozen=True, slots=True)
class Task:
    """A message that was taken to be processed."""

    arrived: Arrived
    message: Message
    links: Links
    """The neighbours as they were when it was taken."""


class Pipeline(Protocol):
    """The further steps of messages.  None of its methods waits for a neighbour."""

    @property
    def handlers(self) -> Handlers:
        """The methods of this cell."""
        ...

    @property
    def quick(self) -> Compute:
        """The cell with a database in which each statement is committed by itself, without waiting for the disk."""
        ...

    @property
    def lazy(self) -> Compute:
        """The cell with a database in which a commit does not wait for the disk."""
        ...

    def here(self) -> Here:
        """Return the neighbours and the time, mostly without a look into the database."""
        ...

    def room(self, kind: str) -> int:
        """Return how many messages of a type can be processed at once; the others wait in the database."""
        ...

    def send(self, cell: Cell, messages: Sequence[Sent], now: datetime) -> None:
        """Send messages that were stored as sent now."""
        ...

    def process(self, task: Task) -> None:
        """Process a message that was stored as taken."""
        ...

    def confirm(self, cell: Cell, deliveries: Sequence[str]) -> None:
        """Confirm messages once they are on the disk."""
        ...
