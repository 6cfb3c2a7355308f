"""In-memory pipeline of a cells process: sends, processes and confirms messages without more database reads."""

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from queue import SimpleQueue
from typing import Protocol, TypeVar

from sqlalchemy import Connection

from climate.compute import Compute
from climate.compute.cells.messaging import inbox, outbox
from climate.compute.cells.messaging.dispatch import Handlers
from climate.compute.cells.messaging.messages import Message
from climate.compute.cells.messaging.pipeline import Task
from climate.compute.cells.messaging.transport import CellTransport
from climate.compute.cells.models import Cell
from climate.compute.cells.state.link_cache import CellSnapshot, NeighbourCache
from climate.compute.store.cells.messages import Sent
from climate.database.connections import KeptConnections

GATHER = 0.25
"""Seconds for which confirmations are collected; a neighbour waits much longer for them."""

T = TypeVar("T")


class Guarded(Protocol):
    """A function that runs another one and logs its errors."""

    def __call__(self, what: str, act: Callable[[], T], /) -> T | None:
        """Return the result of `act`, or None after an error. `what` is named in the log."""


@dataclass(slots=True)
class Station:
    """Threads that process messages of one type."""

    changed: threading.Condition = field(default_factory=threading.Condition)
    tasks: deque[Task] = field(default_factory=deque)
    idle: int = 0
    """Number of threads that wait for a task."""
    looks: bool = True
    """True if messages may wait in the database."""

    def room(self) -> int:
        with self.changed:
            return max(0, self.idle - len(self.tasks))

    def add(self, task: Task) -> None:
        with self.changed:
            self.tasks.append(task)
            self.changed.notify()

    def read_database(self) -> None:
        """Have one thread read the database."""
        with self.changed:
            self.looks = True
            self.changed.notify()

    def next(self, stopping: threading.Event) -> Task | None:
        """Return the next task, or None to read the database."""
        with self.changed:
            self.idle += 1
            try:
                while not (self.tasks or self.looks or stopping.is_set()):
                    self.changed.wait()
                if self.tasks:
                    return self.tasks.popleft()
                self.looks = False
                return None
            finally:
                self.idle -= 1


@dataclass(slots=True)
class Senders:
    """One sending thread for each neighbour, so that one that hangs delays no other; thread-safe.

    A pool of threads wakes two of them for one message, and each message finds another thread with cold caches.
    """

    lines: dict[str, tuple[SimpleQueue[Callable[[], object] | None], threading.Thread]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def submit(self, name: str, act: Callable[[], object]) -> None:
        """Have the thread of a neighbour run `act`, which raises nothing, after what it was given before."""
        line = self.lines.get(name)
        if line is None:
            with self.lock:
                line = self.lines.get(name) or self._opened(name)
        line[0].put(act)

    def _opened(self, name: str) -> tuple[SimpleQueue[Callable[[], object] | None], threading.Thread]:
        queue: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        thread = threading.Thread(target=_run, args=(queue,), daemon=True)
        thread.start()
        self.lines[name] = queue, thread
        return self.lines[name]

    def close(self) -> None:
        """Wait until all threads have done what they were given."""
        with self.lock:
            for queue, _ in self.lines.values():
                queue.put(None)
            for _, thread in self.lines.values():
                thread.join()
            self.lines.clear()


def _run(queue: SimpleQueue[Callable[[], object] | None]) -> None:
    while (act := queue.get()) is not None:
        act()


@dataclass(slots=True)
class RecentSignatures:
    """Signatures of the latest envelopes that are not stored; used by the receiving thread."""

    most: int = 10_000
    known: OrderedDict[str, None] = field(default_factory=OrderedDict)

    def is_new(self, signature: str) -> bool:
        """Return whether a signature is not known, and remember it."""
        if signature in self.known:
            return False
        self.known[signature] = None
        if len(self.known) > self.most:
            self.known.popitem(last=False)
        return True


@dataclass
class ProcessPipeline:
    """Pipeline of one cells process."""

    compute: Compute
    quick: Compute
    """Engine with autocommit connections whose commits do not wait for the disk."""
    handlers: Handlers
    transport: CellTransport
    guarded: Guarded
    stopping: threading.Event
    stations: Mapping[str, Station]
    """Stations by type of message."""
    senders: Senders = field(default_factory=Senders)
    sending: set[str] = field(default_factory=set)
    """Neighbours to which a thread is sending messages from the database."""
    waiting: set[str] = field(default_factory=set)
    """Those of them for which more became due meanwhile."""
    to_confirm: threading.Event = field(default_factory=threading.Event)
    confirmed: dict[str, tuple[Cell, list[str]]] = field(default_factory=dict)
    """Messages to confirm, by the name of the neighbour."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    remembered: RecentSignatures = field(default_factory=RecentSignatures)
    kept: KeptConnections = field(init=False)
    lazy: Compute = field(init=False)
    surroundings: NeighbourCache = field(init=False)

    def __post_init__(self) -> None:
        self.kept = KeptConnections(self.quick.engine)
        # The same connections, whose commits do not wait for the disk.
        engine = self.quick.engine.execution_options(isolation_level="READ COMMITTED")
        self.lazy, self.surroundings = replace(self.quick, engine=engine), NeighbourCache(self.quick)

    def writing(self) -> AbstractContextManager[Connection]:
        return self.kept.one()

    def here(self) -> CellSnapshot:
        return self.surroundings.here()

    def room(self, kind: str) -> int:
        return self.stations[kind].room()

    def send(self, cell: Cell, messages: Sequence[Sent], now: datetime) -> None:
        act = partial(outbox.publish, self.quick, self.transport, (cell, now), messages)
        self.senders.submit(cell.name, partial(self.guarded, f"sending to {cell.name}", act))

    def pass_on(self, cell: Cell, message: Message, now: datetime) -> None:
        act = partial(outbox.pass_on, self.quick, self.transport, (cell, now), message)
        self.senders.submit(cell.name, partial(self.guarded, f"sending to {cell.name}", act))

    def is_new(self, signature: str) -> bool:
        return self.remembered.is_new(signature)

    def process(self, task: Task) -> None:
        self.stations[task.arrived.kind].add(task)

    def confirm(self, cell: Cell, deliveries: Sequence[str]) -> None:
        with self.lock:
            self.confirmed.setdefault(cell.name, (cell, []))[1].extend(deliveries)
        self.to_confirm.set()

    def work(self, kind: str) -> None:
        """Process messages of a type until `stopping` is set: one thread."""
        station = self.stations[kind]
        while not self.stopping.is_set():
            task = station.next(self.stopping)
            if task is not None:
                self.guarded("processing", partial(inbox.finish, self.compute, self.handlers, task, self))
            elif not self.stopping.is_set():
                self._process(station, kind)

    def _process(self, station: Station, kind: str) -> None:
        if self.guarded("processing", lambda: inbox.work(self.compute, self.handlers, kind, self)):
            station.read_database()

    def send_due(self, names: Sequence[str]) -> None:
        """Send the waiting messages of these neighbours."""
        for name in names:
            with self.lock:
                if name in self.sending:
                    self.waiting.add(name)
                    continue
                self.sending.add(name)
            self.senders.submit(name, partial(self._send_to, name))

    def _send_to(self, name: str) -> None:
        more = True
        while more and not self.stopping.is_set():
            with self.lock:
                self.waiting.discard(name)
            sent = self.guarded(f"sending to {name}", partial(self._send_once, name))
            with self.lock:
                more = sent == outbox.BATCH or name in self.waiting
                if not more:
                    self.sending.discard(name)
                    return
        with self.lock:
            self.sending.discard(name)

    def _send_once(self, name: str) -> int:
        return outbox.send(self.quick, self.transport, name, self.here(), self.writing())

    def confirm_all(self) -> None:
        """Confirm received messages in batches, until `stopping` is set: one thread."""
        while not self.stopping.is_set():
            self.to_confirm.wait()
            self.stopping.wait(GATHER)
            self.to_confirm.clear()
            self.guarded("confirming", self.confirm_once)

    def confirm_once(self) -> None:
        """Confirm the messages received so far, after they are on the disk."""
        with self.lock:
            result, self.confirmed = self.confirmed, {}
        if not result:
            return
        links, now = self.here()
        outbox.flush(self.compute, [name for name in result if name in links.around.parents], now)
        for cell, deliveries in result.values():
            act = partial(outbox.confirm, self.compute, self.transport, cell, deliveries, now)
            self.senders.submit(cell.name, partial(self.guarded, f"confirming to {cell.name}", act))

    def close(self) -> None:
        """Confirm received messages, and finish those being sent."""
        self.guarded("confirming", self.confirm_once)
        self.senders.close()
        self.kept.close()
        self.quick.engine.dispose()

    def stop(self) -> None:
        """Wake all threads."""
        self.to_confirm.set()
        for station in self.stations.values():
            with station.changed:
                station.changed.notify_all()


def stations(kinds: Sequence[str]) -> dict[str, Station]:
    """Return a station for each of these types of messages."""
    return {kind: Station() for kind in kinds}
