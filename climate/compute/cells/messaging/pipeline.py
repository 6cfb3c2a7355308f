"""Pipeline: the process that stored messages continues with them; the database keeps them in case it dies."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from sqlalchemy import Connection

from climate.compute.cells.messaging.dispatch import Handlers
from climate.compute.cells.messaging.messages import Message
from climate.compute.cells.models import Cell
from climate.compute.cells.neighbours import Links
from climate.compute.cells.state.link_cache import CellSnapshot
from climate.compute.context import Compute
from climate.compute.store.cells.messages import ReceivedMessage, Sent


@dataclass(frozen=True, slots=True)
class Task:
    """Message taken for processing."""

    arrived: ReceivedMessage
    message: Message
    links: Links
    """Neighbours at that time."""
    is_stored: bool = True
    """False: nothing about it is in the database, because the cell that asks sends it again."""


class Pipeline(Protocol):
    """Further steps of messages. No method waits for a neighbour."""

    @property
    def handlers(self) -> Handlers:
        """Return the methods of this cell."""
        ...

    @property
    def quick(self) -> Compute:
        """Return the cell with a database in autocommit without synchronous commits."""
        ...

    def writing(self) -> AbstractContextManager[Connection]:
        """Return a connection in autocommit without synchronous commits."""
        ...

    @property
    def lazy(self) -> Compute:
        """Return the cell with a database without synchronous commits."""
        ...

    def here(self) -> CellSnapshot:
        """Return the neighbours and the time, mostly without a query."""
        ...

    def room(self, kind: str) -> int:
        """Return how many messages of a type can be processed at once; others wait in the database."""
        ...

    def send(self, cell: Cell, messages: Sequence[Sent], now: datetime) -> None:
        """Send messages now that were stored as sent."""
        ...

    def pass_on(self, cell: Cell, message: Message, now: datetime) -> None:
        """Send a message that is not stored."""
        ...

    def is_new(self, signature: str) -> bool:
        """Return whether an envelope with this signature has not been received before, as far as is remembered."""
        ...

    def process(self, task: Task) -> None:
        """Process a message that was stored as taken, or one that need not be stored."""
        ...

    def confirm(self, cell: Cell, deliveries: Sequence[str]) -> None:
        """Confirm messages once they are on disk."""
        ...
