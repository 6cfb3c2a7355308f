"""Cells process: sends, receives and processes the messages of this cell.

Any number of these processes may run in a cell. One of them takes each message from the database, and another one takes
it again if that one dies.
"""

import os
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TypeVar

import psycopg
import structlog

from climate import bootstrap, log_setup
from climate.bootstrap import Deployment
from climate.compute.cells.builds import estimate
from climate.compute.cells.builds.scheduler import CellScheduler
from climate.compute.cells.messaging import inbox
from climate.compute.cells.messaging.dispatch import Handlers
from climate.compute.cells.messaging.messages import BROADCAST, RESPONSE, TARGETED
from climate.compute.cells.messaging.signing import KEPT
from climate.compute.cells.messaging.transport import QUEUES, CellTransport
from climate.compute.cells.servers import methods
from climate.compute.cells.servers.healing import Healer
from climate.compute.cells.state import inventory, state
from climate.compute.store.cells import changes, direct_sends, messages
from climate.configuration import cells
from climate.database import connections
from climate.service import housekeeping, process_health
from climate.settings import Settings
from climate.store import db_errors
from climate.store.engine import line
from workers import celery_app, cell_boots, cell_leases
from workers.cell_pipeline import ProcessPipeline, stations
from workers.cell_receiver import Receiver
from workers.cell_reports import ServerReports

log = structlog.get_logger(__name__)

T = TypeVar("T")

WORKERS = (TARGETED, TARGETED, TARGETED, BROADCAST, RESPONSE)
"""Type of the messages of each working thread."""

BATCH = 100
"""Maximum envelopes that are stored in one transaction."""

LOOK_AGAIN = 1.0
"""Seconds after which the database is read without a notification."""

QUICK = 4
"""Options of connections whose commits do not wait for the disk; each is used briefly."""

SWEEP_SECONDS = 60.0


def handlers(deployment: Deployment) -> Handlers:
    """Return all methods of this cell."""
    scheduler = CellScheduler(run_here=cell_boots.runner(deployment.climate))
    leases = cell_leases.handlers(deployment.climate)
    return (
        state.HANDLERS.joined(scheduler.handlers())
        .joined(methods.HANDLERS)
        .joined(inventory.HANDLERS)
        .joined(estimate.HANDLERS)
        .joined(leases)
    )


@dataclass
class CellsProcess:
    """One cells process: its threads and their wake-ups."""

    deployment: Deployment
    handlers: Handlers
    transport: CellTransport
    broker_url: str
    stopping: threading.Event = field(default_factory=threading.Event)
    to_report: threading.Event = field(default_factory=threading.Event)
    pipeline: ProcessPipeline = field(init=False)

    def __post_init__(self) -> None:
        self.pipeline = ProcessPipeline(
            self.deployment.compute,
            bootstrap.quick(self.deployment.settings, self.deployment.compute, QUICK),
            self.handlers,
            self.transport,
            self._guarded,
            self.stopping,
            stations(list(QUEUES)),
        )

    def run(self) -> None:
        """Work until `stopping` is set."""
        work: list[Callable[[], None]] = [self.receive, self.read_periodically, self.listen, self.report, self.sweep]
        work += [self.report_servers, self.pipeline.confirm_all]
        work += [partial(self.pipeline.work, kind) for kind in WORKERS]
        threads = [threading.Thread(target=one, daemon=True) for one in work]
        for thread in threads:
            thread.start()
        log.info("cells process started", cell=self.deployment.compute.cells.name)
        self.stopping.wait()
        self.to_report.set()
        self.pipeline.stop()
        for thread in threads:
            thread.join(timeout=5)
        self.pipeline.close()

    def receive(self) -> None:
        """Store messages that arrive in the broker of this cell."""
        while not self.stopping.is_set():
            receiver = Receiver(self.broker_url, list(QUEUES.values()))
            try:
                self._receive_from(receiver)
            except receiver.errors as error:
                log.warning("not receiving: broker unreachable", error=type(error).__name__)
                self.stopping.wait(1)
            finally:
                receiver.close()

    def _receive_from(self, receiver: Receiver) -> None:
        while not self.stopping.is_set():
            batch = receiver.read(LOOK_AGAIN, BATCH)
            if batch:
                receive = partial(inbox.receive, self.deployment.compute, self.transport, batch, self.pipeline)
                self._guarded("a batch of messages", receive)

    def read_periodically(self) -> None:
        """Read due messages periodically without a notification: a pause may be over, or a process may have died."""
        while not self.stopping.is_set():
            self._guarded("looking for messages", self._poll_once)
            self.stopping.wait(LOOK_AGAIN)

    def _poll_once(self) -> None:
        now = self.pipeline.here().now
        with connections.reading(self.pipeline.quick.engine) as conn:
            kinds, names = direct_sends.due_kinds(conn, list(QUEUES), now), messages.waiting(conn, now)
        for kind in kinds:
            self.pipeline.stations[kind].read_database()
        self.pipeline.send_due(names)

    def listen(self) -> None:
        """Wake the other threads when a transaction has put a message into the outbox or inbox."""
        url = bootstrap.plain_url(self.deployment.settings.database_url)
        while not self.stopping.is_set():
            try:
                with line(url, "climate-cells-listen") as conn:
                    conn.execute(f"LISTEN {messages.CHANNEL}")
                    self.pipeline.surroundings.forget()
                    self.to_report.set()  # notifications in between were missed
                    self._receive(conn)
            except psycopg.Error as error:
                log.warning("not listening: database unreachable", error=type(error).__name__)
                self.stopping.wait(1)

    def _receive(self, conn: "psycopg.Connection[tuple[object, ...]]") -> None:
        while not self.stopping.is_set():
            for heard in conn.notifies(timeout=1, stop_after=1):
                self._on_notify(heard.payload)

    def _on_notify(self, what: str) -> None:
        kind, _, which = what.partition(" ")
        if kind == changes.CHANGES:
            self.to_report.set()
        elif kind == messages.NEIGHBOURS:
            self.pipeline.surroundings.forget()
        elif kind == messages.INBOX and which in self.pipeline.stations:
            self.pipeline.stations[which].read_database()
        elif kind == messages.OUTBOX:
            self.pipeline.send_due([which])

    def report(self) -> None:
        """Report to the parents periodically, and request reports of the children at the start."""
        self._guarded("asking the children", lambda: state.request_reports(self.deployment.compute))
        name = f"cells:{socket.gethostname()}:{os.getpid()}"
        while not self.stopping.is_set():
            self._guarded(
                "showing life", lambda: housekeeping.show_life(self.deployment.climate, name, process_health.CELLS)
            )
            self._guarded("reporting", lambda: state.report(self.deployment.compute))
            self._guarded("asking unreachable children", lambda: state.request_missed_reports(self.deployment.compute))
            self.stopping.wait(state.REPORT_SECONDS)

    def report_servers(self) -> None:
        """Report the changed servers of this cell."""
        compute, settings = self.deployment.compute, self.deployment.settings
        healer = Healer(
            timedelta(seconds=settings.cells_instance_updated_at_threshold),
            settings.cells_instance_update_num_instances,
        )
        ServerReports(compute, self.pipeline, healer, self.stopping, self.to_report).run(self._guarded)

    def sweep(self) -> None:
        """Delete messages that have expired or are done."""
        while not self.stopping.wait(SWEEP_SECONDS):
            self._guarded("sweeping", self._sweep_once)

    def _sweep_once(self) -> None:
        compute, is_left = self.deployment.compute, True
        while is_left and not self.stopping.is_set():
            with compute.engine.begin() as conn:
                is_left = messages.sweep(conn, compute.now(conn), KEPT)

    def _guarded(self, what: str, act: Callable[[], T], /) -> T | None:
        """Return the result of `act`, or None after an error, which is logged, so that the thread survives."""
        try:
            return act()
        except db_errors.ERRORS as error:
            log.warning(f"{what} waits for the database", error=type(error).__name__, reason=str(error)[:200])
        except Exception:
            log.exception(f"{what} failed")
        self.stopping.wait(1)
        return None


def main(settings: Settings) -> int:
    """Run until SIGINT or SIGTERM; without cells, wait for that and do nothing."""
    log_setup.configure(settings.log_format, settings.log_level)
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    if not settings.cells_enable:
        log.info("cells are not enabled; set CLIMATE_CELLS_ENABLE=true")
        stopping.wait()
        return 0
    deployment = bootstrap.build(settings, application="climate-cells", pool_size=len(WORKERS) + 5)
    transport = cells.transport(settings)()
    url = celery_app.broker_url(settings.redis_url)
    CellsProcess(deployment, handlers(deployment), transport, url, stopping).run()
    transport.close()
    return 0
