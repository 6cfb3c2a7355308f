"""Poller process: waits until events are due, claims them, and sends messages for them.

APScheduler only provides periodic calls; the database decides what is due. Any number of pollers may run.
"""

import logging
import math
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial

import psycopg
import structlog
from apscheduler.schedulers.background import BackgroundScheduler
from celery import Celery
from sqlalchemy.exc import SQLAlchemyError

from climate import bootstrap, log_setup
from climate.bootstrap import Deployment
from climate.cloud import CloudError
from climate.compute import one_by_one, pending_work
from climate.compute.network.service import wakeups
from climate.compute.nodes import services
from climate.compute.servers import local_delete
from climate.compute.servers.tasks import task_worker
from climate.compute.store.zones import notify_pollers
from climate.compute.zones import polling
from climate.compute.zones.builds import builds
from climate.domain.errors import Unavailable
from climate.service import housekeeping, process_health
from climate.service.disk_space import DiskWatch
from climate.service.events import event_dispatch
from climate.service.events.event_shares import QUEUE
from climate.service.leases import lease_servers, reservation_aggregates
from climate.settings import Settings
from climate.store import db_errors
from climate.store.engine import line
from climate.store.leases.due_events import Cursor
from climate.store.leases.event_claims import CHANNEL, ROUNDS
from workers import celery_app, rounds, zone_polls
from workers.event_messages import BROKER_IS_AWAY, EventMessages
from workers.pending_work import PendingKinds

log = structlog.get_logger(__name__)

CHORES_SECONDS = 10
LIFE_SECONDS = 2
TIDY_SECONDS = 60
"""Seconds between two deletions of expired rows, which have been kept for an hour or longer."""
SWEEP_SECONDS = 600
SILENT_SECONDS = 15.0
"""Seconds without a finished beat after which a poller exits, for its supervisor to restart it."""

DATABASE_IS_AWAY = (SQLAlchemyError, psycopg.Error, Unavailable)

ALL_STEPS_MEET = (Unavailable, *BROKER_IS_AWAY)
"""Errors of a step of a beat that end the beat, like those of a database that is away."""

PORTIONS = 20
"""Successive portions without a claim after which a beat leaves the rest to the next one."""

FULL_PORTIONS = 3
"""Same while a queue is full, so that not everything is read again for each event that a worker begins."""

REFILL_SECONDS = 0.05
"""Seconds between two checks for room in full queues; it doubles while there is none."""

BROKER_AGAIN = timedelta(seconds=0.5)
"""Seconds after which an unreachable broker is tried again."""

ALL_ROUNDS_SECONDS = 60.0
"""Longest time in seconds between two messages for the rounds over hosts, also while there is no work for them."""

UNHEARD = 20
"""Maximum messages of a service that is down; no more are sent until it reads some."""

MOST_UNREAD = 1000
"""Maximum messages of any queue to which wake-ups are repeated."""

CLOCK_STEP = 0.5
"""Seconds of a jump of this machine's clock that count as a change of the time, not a correction."""

STUCK = 70
"""Exit status of a poller that stopped itself."""


@dataclass
class Poller:
    """One poller: its beats, its NOTIFY listener and its watchdog."""

    deployment: Deployment
    bell: Celery
    waiting: Callable[[str], int] = lambda queue: 0
    """Counts the messages in a queue."""
    name: str = field(default_factory=lambda: f"poller:{socket.gethostname()}:{os.getpid()}")
    last_beat: float = field(default_factory=time.monotonic)
    cursor: Cursor = field(default_factory=Cursor)
    refill_seconds: float = REFILL_SECONDS
    shown_life: dict[bool, float] = field(default_factory=lambda: {False: -math.inf, True: -math.inf})
    """Times of the last recorded heartbeats: after a successful claim, and after the end of what is due."""
    tidied: float = -math.inf
    """Time at which all expired rows were last deleted."""
    swept: float = -math.inf
    """Time at which old builds over zones were last deleted."""
    scheduler: BackgroundScheduler = field(
        default_factory=lambda: BackgroundScheduler(
            timezone=UTC, job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
        )
    )
    turn: threading.Lock = field(default_factory=threading.Lock)
    """Serialises beats; one may wait, so that no wake-up is lost during another."""
    stopping: threading.Event = field(default_factory=threading.Event)
    wall: Callable[[], float] = time.time
    """This machine's clock, in seconds."""
    rounds_at: float = -math.inf
    """Time of the last message for the rounds over hosts."""
    rounds_asked: threading.Event = field(default_factory=threading.Event)
    """Set if a transaction has asked for the rounds over hosts, or may have."""
    news: PendingKinds = field(default_factory=PendingKinds)
    """Flags for builds over zones and children, so that nothing is read while there are none."""

    @cached_property
    def disk(self) -> DiskWatch:
        return DiskWatch(self.deployment.settings.home)

    @cached_property
    def event_messages(self) -> EventMessages:
        return EventMessages(self.deployment.climate, self.bell, self.waiting)

    def beat(self) -> None:
        """Process all that is due once. If the database or broker is away, the next beat tries again."""
        try:
            with self.turn:
                self._run_steps()
        except DATABASE_IS_AWAY as error:
            self._log_postponed("no beat: the database is away", error)
        except BROKER_IS_AWAY as error:
            log.warning("broker unreachable; wake-up skipped", error=type(error).__name__)
            self._wake_in(BROKER_AGAIN)
        self._report_progress()

    def _log_postponed(self, said: str, error: Exception, **more: str) -> None:
        """Log postponed work; a full disk has its own message, once a minute."""
        if db_errors.disk_full(error):
            self.disk.note("the disk of the database")
        else:
            log.warning(said, error=type(error).__name__, **more)

    def _report_progress(self) -> None:
        """Report progress to the watchdog."""
        self.last_beat = time.monotonic()

    def _run_steps(self) -> None:
        """Do each kind of work, also after another one has failed."""
        steps: dict[str, Callable[[], object]] = {
            "events": self._claim_due,
            "tasks of servers and networks": self._wake_for_services,
            "builds": self._wake_for_builds,
        }
        for name, step in steps.items():
            one_by_one.attempt("beat", name, step, ALL_STEPS_MEET)

    def _claim_due(self) -> None:
        """Claim due events, and plan the next beat."""
        climate, begun = self.deployment.climate, time.monotonic()
        rest = event_dispatch.pending_work(climate)
        is_quiet = rest.is_quiet and not self.event_messages.is_cut_off
        if is_quiet:  # counts as an empty claim, for one statement instead of a dozen
            self.cursor.full = frozenset()
            self._record_heartbeat(caught_up=True)
        else:
            self._claim_all()
        wait = rest.wait if is_quiet else event_dispatch.next_due(climate)
        if wait is not None and wait < timedelta(seconds=climate.settings.poll_seconds):
            self._wake_in(wait - timedelta(seconds=time.monotonic() - begun) if is_quiet else wait)

    def _wake_for_services(self) -> None:
        there = pending_work.read(self.deployment.compute)
        steps: dict[str, Callable[[], object]] = {}
        steps |= {"tasks of servers": self._wake_for_servers} if there.servers else {}
        steps |= {"calls of networks": self._wake_for_calls} if there.calls else {}
        steps |= {"messages of networks": self._wake_for_messages} if there.messages else {}
        for name, step in steps.items():
            one_by_one.attempt("beat", name, step, ALL_STEPS_MEET)

    def _claim_all(self) -> None:
        climate = self.deployment.climate
        while event_dispatch.rescue(climate, self.name):
            self._report_progress()
        in_vain = 0
        while in_vain < (FULL_PORTIONS if self.cursor.full else PORTIONS):
            ahead = climate.settings.claims_ahead
            claimed = event_dispatch.claim(climate, self.name, self.cursor, alive=self._report_progress, ahead=ahead)
            self._report_progress()
            # A full queue waits for workers. Record this before sending: an unreachable broker is another problem.
            self._record_heartbeat(caught_up=not claimed.more or bool(claimed.full))
            self.event_messages.send(self._report_progress)
            if not claimed.more:
                break
            in_vain = 0 if claimed.count else in_vain + 1
        if self.cursor.full:
            self._refill_in(REFILL_SECONDS)

    def _refill_in(self, seconds: float) -> None:
        self.refill_seconds = min(seconds, self.deployment.settings.poll_seconds)
        self._wake_in(timedelta(seconds=self.refill_seconds), "refill")

    def refill(self) -> None:
        """Claim more when workers have begun half of the events of a full queue."""
        if not self.cursor.full:
            return
        try:
            is_due = event_dispatch.has_room(
                self.deployment.climate, self.cursor, self.deployment.settings.claims_ahead
            )
        except DATABASE_IS_AWAY as error:
            self._log_postponed("queues are not filled: the database is away", error)
            self._refill_in(2 * self.refill_seconds)
            return
        if is_due:
            self.beat()
        else:
            self._refill_in(2 * self.refill_seconds)

    def _record_heartbeat(self, *, caught_up: bool) -> None:
        """Record a heartbeat after a successful claim, and after a complete read of what is due."""
        roles = (process_health.POLLER, process_health.CAUGHT_UP) if caught_up else (process_health.POLLER,)
        if time.monotonic() - self.shown_life[caught_up] >= LIFE_SECONDS:
            housekeeping.show_life(self.deployment.climate, self.name, *roles)
            self.shown_life |= dict.fromkeys((False, caught_up), time.monotonic())

    def _wake_for_servers(self) -> None:
        up: dict[str, bool] = {}
        room: dict[str, int] = {}
        while unfinished := task_worker.unfinished(self.deployment.compute, wait=0):
            up = up or dict(services.to_beat(self.deployment.compute))
            for service_host, server_id in unfinished:
                self._report_progress()
                if service_host not in room:
                    room[service_host] = self._room(
                        celery_app.compute_queue(service_host), up=up.get(service_host, True)
                    )
                # What finds no room is tried again, as every wake-up is.
                room[service_host] -= 1
                if room[service_host] >= 0:
                    celery_app.send(self.bell, celery_app.SERVE, [server_id], celery_app.compute_queue(service_host))

    def _wake_for_calls(self) -> None:
        for host in wakeups.to_ring(self.deployment.compute):
            celery_app.send(self.bell, celery_app.TEND_NETWORKS, [], celery_app.network_queue(host))

    def _wake_for_messages(self) -> None:
        for host in wakeups.to_notify(self.deployment.compute):
            celery_app.send(self.bell, celery_app.NETWORK_MESSAGES, [], celery_app.network_queue(host))

    def _wake_for_builds(self) -> None:
        """Wake a worker for each build over zones that nobody is working on."""
        with self.news.check(notify_pollers.BUILDS) as look:
            if not look.is_due:
                return
            while waiting := builds.to_ring(self.deployment.compute):
                self._report_progress()
                # What finds no room is tried again, as every wake-up is.
                for build_id in waiting[: max(0, self._room(QUEUE, up=True))]:
                    celery_app.send(self.bell, celery_app.BUILD, [build_id], QUEUE)
                    self._report_progress()
            look.again = builds.are_open(self.deployment.compute)

    def wake_network_services(self) -> None:
        """Wake the network services for a heartbeat; each checks its whole host periodically."""
        compute = self.deployment.compute
        seconds = max(1.0, self.deployment.settings.network_seconds)
        try:
            for host, thorough, up in wakeups.to_beat(compute):
                queue = celery_app.network_queue(host)
                if self._reads_messages(queue, up=up):
                    celery_app.send(self.bell, celery_app.TEND_NETWORKS, [thorough], queue, expires=seconds)
        except (*DATABASE_IS_AWAY, *BROKER_IS_AWAY) as error:
            self._log_postponed("wake-up of network services skipped", error)

    def wake_compute_services(self) -> None:
        """Wake the compute services for their own rounds, which include a heartbeat."""
        try:
            for host, up in services.to_beat(self.deployment.compute):
                queue = celery_app.compute_queue(host)
                if self._reads_messages(queue, up=up):
                    celery_app.send(self.bell, celery_app.TEND, [], queue, expires=CHORES_SECONDS)
        except (*DATABASE_IS_AWAY, *BROKER_IS_AWAY) as error:
            self._log_postponed("wake-up of compute services skipped", error)

    def do_housekeeping(self) -> None:
        """Run housekeeping and the deletion of orphans; an error in one does not stop the others."""
        climate, compute = self.deployment.climate, self.deployment.compute
        all_of_them: dict[str, Callable[[], object]] = {
            "tidy": self._tidy,
            "sleepers": partial(lease_servers.sweep, climate),
            "pools": partial(reservation_aggregates.reconcile, climate),
            "abandoned": partial(local_delete.forget, compute),
            "builds": self._sweep_builds,
        }
        for name, chore in all_of_them.items():
            try:
                chore()
            except (*DATABASE_IS_AWAY, CloudError, *BROKER_IS_AWAY) as error:
                self._log_postponed("a chore is put off", error, chore=name)
            except Exception:
                log.exception("housekeeping step failed", chore=name)

    def _tidy(self) -> None:
        """Delete expired rows once a minute, or again at once while there are more than one run may delete."""
        begun = time.monotonic()
        is_due = begun - self.tidied >= TIDY_SECONDS
        kinds = housekeeping.OLD if is_due else housekeeping.SOON
        if not housekeeping.tidy(self.deployment.climate, kinds=kinds) and is_due:
            self.tidied = begun

    def _sweep_builds(self) -> None:
        if time.monotonic() - self.swept >= SWEEP_SECONDS:
            builds.sweep(self.deployment.compute)
            self.swept = time.monotonic()

    def _reads_messages(self, queue: str, *, up: bool) -> bool:
        """Return whether a service reads its messages; those for a service that is down may wait for ever."""
        return self._room(queue, up=up) > 0

    def _room(self, queue: str, *, up: bool) -> int:
        """Return how many more messages a queue gets: few if the service that reads it is down."""
        return (MOST_UNREAD if up else UNHEARD) - self.waiting(queue)

    def wake_rounds(self) -> None:
        """Wake a worker for the rounds over hosts, and for those over external systems, while they may have work.

        The rounds over hosts also run on request, and periodically. A message expires when it is late.
        """
        seconds = max(1.0, self.deployment.settings.pools_seconds)
        try:
            due = rounds.due_rounds(self.deployment.climate)
            is_late = time.monotonic() - self.rounds_at >= ALL_ROUNDS_SECONDS
            if (due.hosts or due.outside or is_late) and not self._reads_messages(QUEUE, up=True):
                log.warning("wake-up of rounds skipped: no worker reads its queue", queue=QUEUE)
                return
            if due.hosts or is_late or self.rounds_asked.is_set():
                self.rounds_asked.clear()
                celery_app.send(self.bell, celery_app.TEND_POOLS, [], QUEUE, expires=seconds)
                self.rounds_at = time.monotonic()
            if due.outside:
                celery_app.send(self.bell, celery_app.TEND_OUTSIDE, [], QUEUE, expires=seconds)
        except (*DATABASE_IS_AWAY, *BROKER_IS_AWAY) as error:
            self.rounds_asked.set()
            self._log_postponed("wake-up of rounds skipped", error)

    def poll_zones(self) -> None:
        """Poll the child zones, in a thread of its own, so that an unresponsive one delays no event."""
        try:
            with self.news.check(notify_pollers.CHILDREN) as look:
                if look.is_due:
                    look.again = zone_polls.poll(self.deployment) > 0 or polling.has_children(self.deployment.compute)
        except DATABASE_IS_AWAY as error:
            self._log_postponed("child zones not polled: the database is away", error)

    def _wake_in(self, wait: timedelta, job: str = "beat") -> None:
        if self.scheduler.running and not self.stopping.is_set():
            self.scheduler.modify_job(job, next_run_time=datetime.now(UTC) + wait)

    def listen(self) -> None:
        """Beat at once on NOTIFY; polling is the fallback, so errors only delay."""
        url = bootstrap.plain_url(self.deployment.settings.database_url)
        while not self.stopping.is_set():
            try:
                with line(url, "climate-listen") as conn:
                    conn.execute(f"LISTEN {CHANNEL}")
                    conn.execute(f"LISTEN {notify_pollers.CHANNEL}")
                    self.news.miss()
                    self.rounds_asked.set()
                    self._receive(conn)
            except psycopg.Error as error:
                log.warning("not listening: database unreachable", error=type(error).__name__)
                self.stopping.wait(1)

    def _receive(self, conn: "psycopg.Connection[tuple[object, ...]]") -> None:
        news = select.poll()  # unlike select.select, it takes the number of any file
        news.register(conn.fileno(), select.POLLIN)
        while not self.stopping.is_set():
            for heard in conn.notifies(timeout=0):
                if heard.channel == notify_pollers.CHANNEL:
                    self.news.notify(heard.payload)
                elif heard.payload == ROUNDS:
                    self.rounds_asked.set()
                    self._wake_in(timedelta(0), "rounds")
                else:
                    self._wake_in(timedelta(0), "beat")
            # psycopg would wake ten times a second while it waits.
            news.poll(1000)

    def watch(self) -> None:
        """Exit when beats have stopped, so that a supervisor restarts the process."""
        offset = self.wall() - time.monotonic()
        while not self.stopping.wait(1):
            offset = self._follow_the_clock(offset)
            if time.monotonic() - self.last_beat > SILENT_SECONDS:
                log.error("no finished beat; exiting", seconds=SILENT_SECONDS)
                os._exit(STUCK)

    def _follow_the_clock(self, offset: float) -> float:
        """Reschedule all jobs after a change of this machine's clock, because the scheduler plans by it.

        `offset` is the former difference to the monotonic clock; return the present one.
        """
        now = self.wall() - time.monotonic()
        if abs(now - offset) > CLOCK_STEP:
            log.warning("machine clock changed; jobs rescheduled", seconds=round(now - offset, 1))
            for job in self.scheduler.get_jobs():
                self._wake_in(timedelta(0), job.id)
        return now

    def run(self) -> None:
        """Work until `stopping` is set."""
        seconds = self.deployment.settings.poll_seconds
        now = datetime.now(UTC)
        # Two: the running beat, and one that waits for its turn with whatever became due meanwhile.
        self.scheduler.add_job(self.beat, "interval", seconds=seconds, id="beat", next_run_time=now, max_instances=2)
        often = CHORES_SECONDS
        # Full queues set its next time.
        self.scheduler.add_job(self.refill, "interval", seconds=often, id="refill", next_run_time=now)
        self.scheduler.add_job(self.wake_compute_services, "interval", seconds=often, id="services", next_run_time=now)
        self.scheduler.add_job(self.do_housekeeping, "interval", seconds=CHORES_SECONDS, id="chores", next_run_time=now)
        beats = self.deployment.settings.network_seconds
        self.scheduler.add_job(self.wake_network_services, "interval", seconds=beats, id="beats", next_run_time=now)
        again = self.deployment.settings.pools_seconds
        self.scheduler.add_job(self.wake_rounds, "interval", seconds=again, id="rounds", next_run_time=now)
        period = zone_polls.interval(self.deployment.settings.zone_poll_seconds)
        self.scheduler.add_job(self.poll_zones, "interval", seconds=period, id="zones", next_run_time=now)
        self.scheduler.start()
        threads = [threading.Thread(target=target, daemon=True) for target in (self.listen, self.watch)]
        for thread in threads:
            thread.start()
        log.info("poller started", name=self.name)
        self.stopping.wait()
        self.scheduler.shutdown(wait=True)


def main(settings: Settings) -> int:
    """Run until SIGINT or SIGTERM."""
    log_setup.configure(settings.log_format, settings.log_level)
    # It logs every tick, and warns of every skipped one, which a waiting beat covers already.
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    deployment = bootstrap.build(settings, application="climate-poller", pool_size=4)
    poller = Poller(deployment, celery_app.connect(settings.redis_url), celery_app.waiting(settings.redis_url))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: poller.stopping.set())
    poller.run()
    return 0
