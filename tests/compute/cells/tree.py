"""Several cells in one process, each with its own database, over an in-memory transport."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from climate.compute import Compute
from climate.compute.cells import neighbours
from climate.compute.cells.messaging import inbox, outbox
from climate.compute.cells.messaging.dispatch import Handlers
from climate.compute.cells.messaging.messages import TYPES
from climate.compute.cells.messaging.transport import MemoryTransport
from climate.compute.cells.models import Broker, Cell
from climate.compute.cells.options import CellOptions
from climate.compute.models.node import NodeSpec
from climate.database.connections import reading
from climate.sealed_secrets import Vault
from tests.compute.cloud_factory import Place, place

SMALL: Mapping[str, Sequence[str]] = {"top": ("left", "right"), "left": (), "right": ("leaf",), "leaf": ()}
"""Four cells: a top with two children, and one grandchild."""


PAUSES = (0.005, 0.05)
"""Shortest and longest pause of a thread that has nothing to do, in seconds."""

WAITS = """
    SELECT EXISTS (SELECT FROM compute_cell_outbox) OR EXISTS (SELECT FROM compute_cell_inbox WHERE due_at IS NOT NULL)
"""
"""Whether messages are to be sent or processed, now or later: most steps of most cells have none."""


def _waits(compute: Compute) -> bool:
    with reading(compute.engine) as conn:
        return bool(conn.exec_driver_sql(WAITS).scalar_one())


def secret_of(parent: str, child: str) -> str:
    return f"secret of {parent} and {child}"


@dataclass
class Tree:
    """The cells by name; what they send waits in `transport` until `settle`."""

    places: dict[str, Place]
    transport: MemoryTransport = field(default_factory=MemoryTransport)
    handlers: Handlers = field(default_factory=Handlers)
    now_seconds: float = 0

    def __getitem__(self, name: str) -> Compute:
        return self.places[name].compute

    def settle(self) -> None:
        """Send, receive and process until nothing moves, servers included."""
        while self.step():
            pass

    def step(self) -> int:
        """Let every cell send, receive and process once; how much was done."""
        return sum(self._of(name) for name in self.places)

    def _of(self, name: str) -> int:
        compute, done = self[name], 0
        waits = _waits(compute)
        for neighbour in outbox.due(compute) if waits else ():
            done += outbox.send(compute, self.transport, neighbour)
        arrived = self.transport.receive(name)
        if arrived:
            done += inbox.receive(compute, self.transport, arrived)
        if arrived or waits:
            done += sum(inbox.work(compute, self.handlers, kind) for kind in TYPES)
        self.places[name].settle()
        return done

    @contextmanager
    def running(self) -> Iterator[None]:
        """Keep the cells at work in a thread, for callers that wait for a response."""
        with stepping(self.step):
            yield


@contextmanager
def stepping(step: Callable[[], int]) -> Iterator[None]:
    """Call `step` in a thread while the block lasts, with growing pauses while nothing was done."""
    stop, errors = threading.Event(), []

    def run() -> None:
        pause = PAUSES[0]
        try:
            while not stop.is_set():
                if step():
                    pause = PAUSES[0]
                else:
                    stop.wait(pause)
                    pause = min(2 * pause, PAUSES[1])
        except BaseException as error:  # raised where the block ends
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    if errors:
        raise errors[0]


@dataclass
class CellDatabases:
    """One database for each cell of a tree, made when it is first needed."""

    make_database: Callable[..., str]
    made: dict[str, str] = field(default_factory=dict)

    def __call__(self, name: str) -> str:
        if name not in self.made:
            self.made[name] = self.make_database()
        return self.made[name]


@contextmanager
def tree(
    databases: CellDatabases,
    home: Path,
    children: Mapping[str, Sequence[str]] = SMALL,
    nodes: Mapping[str, Sequence[NodeSpec]] | None = None,
    **options: Any,
) -> Iterator[Tree]:
    """Cells that know their neighbours; the first is the API cell.  `options`: of all of them."""
    vault, places = Vault.of_this_process(), {}
    with ExitStack() as stack:
        for name in children:
            (home / name).mkdir()
            there = stack.enter_context(place(databases(name), home / name, (nodes or {}).get(name, ())))
            kind = "api" if name == next(iter(children)) else "compute"
            cells = CellOptions(enabled=True, name=name, type=kind, vault=vault, **options)  # type: ignore[arg-type]
            there.compute = replace(there.compute, cells=cells)
            places[name] = there
        for parent, below in children.items():
            for child in below:
                link = Broker(secret=secret_of(parent, child))
                neighbours.create(places[parent].compute, Cell(child, broker=link))
                neighbours.create(places[child].compute, Cell(parent, is_parent=True, broker=link))
        yield Tree(places)
