"""Pipeline of a cells process without threads: it keeps what it is given until a test goes on with it."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, event

from climate.compute import Compute
from climate.compute.cells.messaging import inbox, outbox
from climate.compute.cells.messaging.dispatch import Handlers
from climate.compute.cells.messaging.messages import Message
from climate.compute.cells.messaging.pipeline import Task
from climate.compute.cells.models import Cell
from climate.compute.cells.state.link_cache import CellSnapshot, NeighbourCache
from climate.compute.store.cells.messages import Sent
from tests.compute.cells.tree import Tree
from workers.cell_pipeline import RecentSignatures


@dataclass
class Hands:
    """A pipeline that keeps what it is given."""

    quick: Compute
    handlers: Handlers
    most: int = 1
    sent: list[tuple[Cell, Sequence[Sent], datetime]] = field(default_factory=list)
    passed: list[tuple[Cell, Message, datetime]] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    remembered: RecentSignatures = field(default_factory=RecentSignatures)
    confirmed: list[tuple[str, Sequence[str]]] = field(default_factory=list)

    @property
    def lazy(self) -> Compute:
        return self.quick

    def writing(self) -> AbstractContextManager[Connection]:
        return self.quick.engine.begin()

    def here(self) -> CellSnapshot:
        return NeighbourCache(self.quick).here()

    def room(self, kind: str) -> int:
        return self.most

    def send(self, cell: Cell, messages: Sequence[Sent], now: datetime) -> None:
        self.sent.append((cell, messages, now))

    def pass_on(self, cell: Cell, message: Message, now: datetime) -> None:
        self.passed.append((cell, message, now))

    def is_new(self, signature: str) -> bool:
        return self.remembered.is_new(signature)

    def process(self, task: Task) -> None:
        self.tasks.append(task)

    def confirm(self, cell: Cell, deliveries: Sequence[str]) -> None:
        self.confirmed.append((cell.name, deliveries))

    def publish(self, cells: Tree) -> None:
        """Send what was handed over."""
        for cell, messages, now in self.sent:
            outbox.publish(self.quick, cells.transport, (cell, now), messages)
        for cell, message, now in self.passed:
            outbox.pass_on(self.quick, cells.transport, (cell, now), message)
        self.sent.clear()
        self.passed.clear()

    def work(self) -> None:
        """Process what was handed over."""
        while self.tasks:
            inbox.finish(self.quick, self.handlers, self.tasks.pop(0), self)

    def crash(self) -> None:
        """Forget what was handed over, as a process does that is killed."""
        for given in (self.sent, self.passed, self.tasks, self.confirmed):
            given.clear()


@contextmanager
def statements_of(hands: Hands) -> Iterator[list[str]]:
    """The statements of the block, without those that read the neighbours and the clock once in five seconds."""
    found: list[str] = []

    def note(conn: Any, cursor: Any, statement: str, *_: Any) -> None:
        if "compute_cells" not in statement and "clock_timestamp" not in statement:
            found.append(statement)

    event.listen(hands.quick.engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(hands.quick.engine, "before_cursor_execute", note)
