"""The poller process: sleeps until something is due, claims it, and rings for it.

APScheduler is a plain ticker here; when what is due is the database's
business.  Any number of pollers may run.
"""

import logging
import math
import os
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
from climate.compute import pending
from climate.compute.network.service import wakeups
from climate.compute.nodes import services
from climate.compute.servers import local_delete, task_worker
from climate.compute.store.pending import Pending
from climate.compute.store.zones import notifications
from climate.compute.zones import polling
from climate.compute.zones.builds import builds
from climate.domain.errors import Unavailable
from climate.service import housekeeping, process_health
from climate.service.disk_space import DiskWatch
from climate.service.leases import event_claims, lease_pools, server_boot
from climate.service.leases.event_shares import QUEUE
from climate.settings import Settings
from climate.store import db_errors
from climate.store.engine import line
from climate.store.leases.due_events import Cursor
from climate.store.leases.event_claims import CHANNEL, ROUNDS
from workers import celery_app, zone_polls
from workers.event_messages import BROKER_IS_AWAY, Rings
from workers.work_listener import News

log = structlog.get_logger(__name__)

CHORES_SECONDS = 10
LIFE_SECONDS = 2
SWEEP_SECONDS = 600
SILENT_SECONDS = 15.0
"""A poller that has not finished a beat for so long ends itself, to be started afresh."""

DATABASE_IS_AWAY = (SQLAlchemyError, psycopg.Error, Unavailable)

PORTIONS = 20
"""Portions of what is due in which nothing could be claimed, after which a beat leaves the rest to the next."""

FULL_PORTIONS = 3
"""The same while a queue is full: it is not looked at everything again for each event that a worker begins."""

REFILL_SECONDS = 0.05
"""Time between two looks whether workers have begun what they have; it doubles while they have not."""

BROKER_AGAIN = timedelta(seconds=0.5)
"""After which a broker that was away is tried again."""

UNHEARD = 20
"""Messages of a service that is down, after which it is not rung for any more until it takes some."""

CLOCK_STEP = 0.5
"""Seconds by which this machine's clock moves at once when it was set, and not only corrected."""

STUCK = 70
"""Exit status of a poller that ended itself."""


@dataclass
class Poller:
    """One poller: its beats, its ear for NOTIFY, its watchdog."""

    deployment: Deployment
    bell: Celery
    waiting: Callable[[str], int] = lambda queue: 0
    """How many messages wait in a queue."""
    name: str = field(default_factory=lambda: f"poller:{socket.gethostname()}:{os.getpid()}")
    last_beat: float = field(default_factory=time.monotonic)
    cursor: Cursor = field(default_factory=Cursor)
    refill_seconds: float = REFILL_SECONDS
    shown_life: dict[bool, float] = field(default_factory=lambda: {False: -math.inf, True: -math.inf})
    """When it was last shown that a claim has succeeded, and that it came to the end of what is due."""
    swept: float = -math.inf
    """When builds over zones that ended long ago were last forgotten."""
    scheduler: BackgroundScheduler = field(
        default_factory=lambda: BackgroundScheduler(
            timezone=UTC, job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
        )
    )
    turn: threading.Lock = field(default_factory=threading.Lock)
    """Beats come one after the other; one may wait for its turn, so that no ring is lost while another lasts."""
    stopping: threading.Event = field(default_factory=threading.Event)
    wall: Callable[[], float] = time.time
    """This machine's clock, in seconds."""
    news: News = field(default_factory=News)
    """Whether there may be builds over zones, and children: nothing is asked of the database while there are none."""

    @cached_property
    def disk(self) -> DiskWatch:
        return DiskWatch(self.deployment.settings.home)

    @cached_property
    def rings(self) -> Rings:
        return Rings(self.deployment.climate, self.bell, self.waiting)

    def beat(self) -> None:
        """One look at all that is due.  A database or broker that is away is met again at the next."""
        try:
            with self.turn:
                self._look()
        except DATABASE_IS_AWAY as error:
            self._put_off("no beat: the database is away", error)
        except BROKER_IS_AWAY as error:
            log.warning("broker unreachable; wake-up skipped", error=type(error).__name__)
            self._wake_in(BROKER_AGAIN)
        self._live()

    def _put_off(self, said: str, error: Exception, **more: str) -> None:
        """Log what cannot be done now; a disk that is full is called so, once a minute."""
        if db_errors.disk_full(error):
            self.disk.note("the disk of the database")
        else:
            log.warning(said, error=type(error).__name__, **more)

    def _live(self) -> None:
        """Tell the watchdog that there is progress."""
        self.last_beat = time.monotonic()

    def _look(self) -> None:
        climate, begun = self.deployment.climate, time.monotonic()
        rest = event_claims.rest(climate)
        is_quiet = rest.is_quiet and not self.rings.is_cut_off
        if is_quiet:  # as if it had claimed nothing, for one statement instead of a dozen
            self.cursor.full = frozenset()
            self._show_life(caught_up=True)
        else:
            self._claim_all()
        there = pending.look(self.deployment.compute)
        if there.servers:
            self._ring_for_servers()
        self._ring_for_networks(there)
        self._ring_for_builds()
        wait = rest.wait if is_quiet else event_claims.next_due(climate)
        if wait is not None and wait < timedelta(seconds=climate.settings.poll_seconds):
            self._wake_in(wait - timedelta(seconds=time.monotonic() - begun) if is_quiet else wait)

    def _claim_all(self) -> None:
        climate = self.deployment.climate
        while event_claims.rescue(climate, self.name):
            self._live()
        in_vain = 0
        while in_vain < (FULL_PORTIONS if self.cursor.full else PORTIONS):
            ahead = climate.settings.claims_ahead
            claimed = event_claims.claim(climate, self.name, self.cursor, alive=self._live, ahead=ahead)
            self._live()
            # A full queue waits for workers.  Before it rings: a broker that is away is another's trouble.
            self._show_life(caught_up=not claimed.more or bool(claimed.full))
            self.rings.ring(self._live)
            if not claimed.more:
                break
            in_vain = 0 if claimed.count else in_vain + 1
        if self.cursor.full:
            self._refill_in(REFILL_SECONDS)

    def _refill_in(self, seconds: float) -> None:
        self.refill_seconds = min(seconds, self.deployment.settings.poll_seconds)
        self._wake_in(timedelta(seconds=self.refill_seconds), "refill")

    def refill(self) -> None:
        """Claim more as soon as workers have begun half of what a full queue has."""
        if not self.cursor.full:
            return
        try:
            is_due = event_claims.has_room(self.deployment.climate, self.cursor, self.deployment.settings.claims_ahead)
        except DATABASE_IS_AWAY as error:
            self._put_off("queues are not filled: the database is away", error)
            return
        if is_due:
            self.beat()
        else:
            self._refill_in(2 * self.refill_seconds)

    def _show_life(self, *, caught_up: bool) -> None:
        """A claim has succeeded; whether all that is due was looked at."""
        roles = (process_health.POLLER, process_health.CAUGHT_UP) if caught_up else (process_health.POLLER,)
        if time.monotonic() - self.shown_life[caught_up] >= LIFE_SECONDS:
            housekeeping.show_life(self.deployment.climate, self.name, *roles)
            self.shown_life |= dict.fromkeys((False, caught_up), time.monotonic())

    def _ring_for_servers(self) -> None:
        while found := task_worker.unfinished(self.deployment.compute, wait=0):
            for service_host, server_id in found:
                celery_app.send(self.bell, celery_app.SERVE, [server_id], celery_app.compute_queue(service_host))
                self._live()

    def _ring_for_networks(self, there: Pending) -> None:
        for host in wakeups.to_ring(self.deployment.compute) if there.calls else ():
            celery_app.send(self.bell, celery_app.TEND_NETWORKS, [], celery_app.network_queue(host))
        for host in wakeups.to_tell(self.deployment.compute) if there.messages else ():
            celery_app.send(self.bell, celery_app.NETWORK_MESSAGES, [], celery_app.network_queue(host))

    def _ring_for_builds(self) -> None:
        """Have a worker go on with each build over zones that nobody is at."""
        with self.news.look(notifications.BUILDS) as look:
            if not look.is_due:
                return
            while found := builds.to_ring(self.deployment.compute):
                for build_id in found:
                    celery_app.send(self.bell, celery_app.BUILD, [build_id], QUEUE)
                    self._live()
            look.again = builds.are_open(self.deployment.compute)

    def ring_for_beats(self) -> None:
        """Have the network services show that they are alive; each looks at all of its host now and then."""
        compute = self.deployment.compute
        seconds = max(1.0, self.deployment.settings.network_seconds)
        try:
            for host, thorough, up in wakeups.to_beat(compute):
                queue = celery_app.network_queue(host)
                if self._is_heard(queue, up=up):
                    celery_app.send(self.bell, celery_app.TEND_NETWORKS, [thorough], queue, expires=seconds)
        except (*DATABASE_IS_AWAY, *BROKER_IS_AWAY) as error:
            self._put_off("network services are not rung for", error)

    def ring_for_services(self) -> None:
        """Have the compute services make their own rounds, and so show that they are alive."""
        try:
            for service in services.listed(self.deployment.compute):
                queue = celery_app.compute_queue(service.host)
                if self._is_heard(queue, up=service.up):
                    celery_app.send(self.bell, celery_app.TEND, [], queue, expires=CHORES_SECONDS)
        except (*DATABASE_IS_AWAY, *BROKER_IS_AWAY) as error:
            self._put_off("compute services are not rung for", error)

    def do_chores(self) -> None:
        """What need not be done at once: upkeep and orphans.  The trouble of one keeps no other from being done."""
        climate, compute = self.deployment.climate, self.deployment.compute
        all_of_them: dict[str, Callable[[], object]] = {
            "tidy": partial(housekeeping.tidy, climate),
            "sleepers": partial(server_boot.sweep, climate),
            "pools": partial(lease_pools.tend, climate),
            "abandoned": partial(local_delete.forget, compute),
            "builds": self._sweep_builds,
        }
        for name, chore in all_of_them.items():
            try:
                chore()
            except (*DATABASE_IS_AWAY, CloudError, *BROKER_IS_AWAY) as error:
                self._put_off("a chore is put off", error, chore=name)
            except Exception:
                log.exception("a chore came to nothing", chore=name)

    def _sweep_builds(self) -> None:
        if time.monotonic() - self.swept >= SWEEP_SECONDS:
            builds.sweep(self.deployment.compute)
            self.swept = time.monotonic()

    def _is_heard(self, queue: str, *, up: bool) -> bool:
        """Whether a ring may be heard: of a service that is down, what was rung before may wait for ever."""
        return up or self.waiting(queue) < UNHEARD

    def ring_for_rounds(self) -> None:
        """Have some worker look after the hosts of all pools; who comes too late to answer need not."""
        seconds = max(1.0, self.deployment.settings.pools_seconds)
        try:
            for task in (celery_app.TEND_POOLS, celery_app.TEND_OUTSIDE):
                celery_app.send(self.bell, task, [], QUEUE, expires=seconds)
        except BROKER_IS_AWAY as error:
            log.warning("broker unreachable; wake-up skipped", error=type(error).__name__)

    def poll_zones(self) -> None:
        """Ask the child zones how they are, in a thread of its own: one that hangs delays no event."""
        try:
            with self.news.look(notifications.CHILDREN) as look:
                if look.is_due:
                    look.again = zone_polls.poll(self.deployment) > 0 or polling.has_children(self.deployment.compute)
        except DATABASE_IS_AWAY as error:
            self._put_off("child zones not polled: the database is away", error)

    def _wake_in(self, wait: timedelta, job: str = "beat") -> None:
        if self.scheduler.running and not self.stopping.is_set():
            self.scheduler.modify_job(job, next_run_time=datetime.now(UTC) + wait)

    def listen(self) -> None:
        """Beat at once when a transaction says that something is due; polling is the fallback, so errors only delay."""
        url = bootstrap.plain_url(self.deployment.settings.database_url)
        while not self.stopping.is_set():
            try:
                with line(url, "climate-listen") as conn:
                    conn.execute(f"LISTEN {CHANNEL}")
                    conn.execute(f"LISTEN {notifications.CHANNEL}")
                    self.news.miss()
                    self._hear(conn)
            except psycopg.Error as error:
                log.warning("not listening: the database is away", error=type(error).__name__)
                self.stopping.wait(1)

    def _hear(self, conn: "psycopg.Connection[tuple[object, ...]]") -> None:
        while not self.stopping.is_set():
            for heard in conn.notifies(timeout=1, stop_after=1):
                if heard.channel == notifications.CHANNEL:
                    self.news.hear(heard.payload)
                else:
                    self._wake_in(timedelta(0), "rounds" if heard.payload == ROUNDS else "beat")

    def watch(self) -> None:
        """End the process when its beats have stopped: a supervisor starts it afresh."""
        offset = self.wall() - time.monotonic()
        while not self.stopping.wait(1):
            offset = self._follow_the_clock(offset)
            if time.monotonic() - self.last_beat > SILENT_SECONDS:
                log.error("no beat for too long, ending", seconds=SILENT_SECONDS)
                os._exit(STUCK)

    def _follow_the_clock(self, offset: float) -> float:
        """Plan all jobs anew when this machine's clock was set: the scheduler plans by it, and would wait.

        `offset` is how far that clock was ahead of the monotonic one; returns how far it is now.
        """
        now = self.wall() - time.monotonic()
        if abs(now - offset) > CLOCK_STEP:
            log.warning("the clock of this machine was set", seconds=round(now - offset, 1))
            for job in self.scheduler.get_jobs():
                self._wake_in(timedelta(0), job.id)
        return now

    def run(self) -> None:
        """Work until `stopping` is set."""
        seconds = self.deployment.settings.poll_seconds
        now = datetime.now(UTC)
        # Two: the one that lasts, and the one that waits for its turn with what became due meanwhile.
        self.scheduler.add_job(self.beat, "interval", seconds=seconds, id="beat", next_run_time=now, max_instances=2)
        self.scheduler.add_job(self.refill, "interval", seconds=seconds, id="refill", next_run_time=now)
        often = CHORES_SECONDS
        self.scheduler.add_job(self.ring_for_services, "interval", seconds=often, id="services", next_run_time=now)
        self.scheduler.add_job(self.do_chores, "interval", seconds=CHORES_SECONDS, id="chores", next_run_time=now)
        beats = self.deployment.settings.network_seconds
        self.scheduler.add_job(self.ring_for_beats, "interval", seconds=beats, id="beats", next_run_time=now)
        again = self.deployment.settings.pools_seconds
        self.scheduler.add_job(self.ring_for_rounds, "interval", seconds=again, id="rounds", next_run_time=now)
        period = zone_polls.interval(self.deployment.settings.zone_poll_seconds)
        self.scheduler.add_job(self.poll_zones, "interval", seconds=period, id="zones", next_run_time=now)
        self.scheduler.start()
        threads = [threading.Thread(target=target, daemon=True) for target in (self.listen, self.watch)]
        for thread in threads:
            thread.start()
        log.info("poller is at work", name=self.name)
        self.stopping.wait()
        self.scheduler.shutdown(wait=True)


def main(settings: Settings) -> int:
    """Run until SIGINT or SIGTERM."""
    log_setup.configure(settings.log_format, settings.log_level)
    # It tells of every tick, and warns of every ring that a waiting beat answers already.
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    deployment = bootstrap.build(settings, application="climate-poller", pool_size=4)
    poller = Poller(deployment, celery_app.connect(settings.redis_url), celery_app.waiting(settings.redis_url))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: poller.stopping.set())
    poller.run()
    return 0
