"""A small tree of cells over real brokers: each cell has its own database and Valkey, and its own process threads."""

import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import text

from climate import bootstrap
from climate.bootstrap import Deployment
from climate.compute import Compute
from climate.compute.cells import neighbours
from climate.compute.cells.messaging.broker import BrokerTransport
from climate.compute.cells.messaging.dispatch import Handlers
from climate.compute.cells.models import Broker, Cell
from climate.embedded import spawn, valkey
from climate.embedded.home import locked
from climate.settings import Settings
from tests.compute.cells.tree import secret_of
from workers.cells import CellsProcess

CHILDREN: Mapping[str, Sequence[str]] = {"top": ("right",), "right": ("leaf",), "leaf": ()}
PATIENCE = 60.0
"""Seconds after which a test gives up; what it waits for takes milliseconds."""


@dataclass
class OwnBroker:
    """A Valkey that can be killed and started again."""

    home: Path
    store: valkey.Valkey
    child: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        self.store.before()
        with (self.home / "broker.log").open("ab") as output:
            self.child = child = spawn.start(self.store.program, output)
        deadline, pause = time.monotonic() + PATIENCE, threading.Event()
        while not self.store.answers(child.pid):
            assert time.monotonic() < deadline
            pause.wait(0.02)

    def kill(self) -> None:
        assert self.child is not None
        self.child.kill()
        self.child.wait(PATIENCE)

    def stop(self) -> None:
        if self.child is not None and self.child.poll() is None:
            spawn.stop(self.child, self.store.program)


@dataclass
class CellStack:
    """One cell with its stores, and the cells processes that run."""

    deployment: Deployment
    broker: OwnBroker
    processes: list[CellsProcess] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    @property
    def compute(self) -> Compute:
        return self.deployment.compute

    def start(self, handlers: Handlers) -> None:
        """Start one more cells process."""
        process = CellsProcess(
            self.deployment,
            handlers,
            BrokerTransport(),
            self.deployment.settings.redis_url.replace("unix://", "redis+socket://", 1),
        )
        thread = threading.Thread(target=process.run, daemon=True)
        thread.start()
        self.processes.append(process)
        self.threads.append(thread)

    def ask_to_stop(self) -> None:
        """Tell all cells processes to stop, and wait for none."""
        for process in self.processes:
            process.stopping.set()

    def stop(self) -> None:
        """Stop all cells processes."""
        self.ask_to_stop()
        for thread in self.threads:
            thread.join(PATIENCE)
        self.processes.clear()
        self.threads.clear()

    def count(self, what: str) -> int:
        with self.compute.engine.connect() as conn:
            return int(conn.execute(text(f"SELECT count(*) FROM {what}")).scalar_one())


def stop_all(stacks: Iterable[CellStack]) -> None:
    """Stop the processes of several cells at once: each takes a second to notice."""
    known = list(stacks)
    for one in known:
        one.ask_to_stop()
    for one in known:
        one.stop()


@contextmanager
def cell_stacks(make_database: Callable[..., str], template: str, home: Path) -> Iterator[dict[str, CellStack]]:
    """The cells by name, no process running yet.  They do not share keys."""
    with ExitStack() as stack:
        found: dict[str, CellStack] = {}
        for name in CHILDREN:
            database = make_database(template)
            place = home / name
            broker = OwnBroker(place, valkey.prepare(place, stack.enter_context(locked(place))))
            stack.callback(broker.stop)
            broker.start()
            settings = Settings(
                home=place,
                database_url=database,
                redis_url=broker.store.url,
                cells_enable=True,
                cell_name=name,
                cell_type="api" if name == "top" else "compute",
            )
            deployment = bootstrap.build(settings)
            found[name] = CellStack(deployment, broker)
        for parent, below in CHILDREN.items():
            for child in below:
                connect(found[parent], found[child], is_parent=False, secret=secret_of(parent, child))
                connect(found[child], found[parent], is_parent=True, secret=secret_of(parent, child))
        yield found
        stop_all(found.values())
        for one in found.values():
            one.compute.engine.dispose()


def connect(one: CellStack, other: CellStack, **link: Any) -> None:
    """Let a cell know another one."""
    broker = Broker(transport_url=other.deployment.settings.redis_url, secret=link["secret"])
    cell = Cell(other.compute.cells.name, is_parent=link["is_parent"], broker=broker)
    neighbours.create(one.compute, cell)
