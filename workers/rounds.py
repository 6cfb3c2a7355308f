"""Rounds over hosts: one worker runs them at a time, and an error in one does not stop the others."""

import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from threading import Event, Thread

import structlog
from sqlalchemy import Connection, Engine

from climate.cloud import CloudError
from climate.context import Climate
from climate.database.connections import alone as alone_statement
from climate.database.connections import reading
from climate.domain.errors import Unavailable
from climate.plugin import CLOUD_POOLS
from climate.service import kept_volumes
from climate.service.host_operations import (
    cleaning,
    draining,
    evacuation,
    failures,
    maintenance,
    pool_scaling,
    recycling,
    server_moves,
)
from climate.service.hosts import reconcile
from climate.service.leases import healing
from climate.service.notifications import delivery, mail
from climate.service.power import power_saving
from climate.service.preemption import round as preemption
from climate.service.subleases import round as subleases
from climate.service.usage import round as usage
from climate.service.waiting_list import round as waiting_list
from climate.settings import Settings
from climate.store import db_errors
from climate.store.rounds import round_locks, round_work
from climate.store.rounds.round_work import DueRounds, RoundWork

log = structlog.get_logger(__name__)

Round = Callable[[Climate], object]

ON_HOSTS: Sequence[Round] = (
    healing.heal_all,
    preemption.run_round,
    subleases.run_round,
    recycling.run_round,
    cleaning.run_round,
    server_moves.run_round,
    draining.run_round,
)
"""Rounds that have work only while some host is not at rest, or some lease is degraded."""

ROUNDS: Sequence[Round] = (
    reconcile.correct,
    maintenance.run_round,
    failures.check,
    *ON_HOSTS,
    waiting_list.run_round,
    pool_scaling.run_round,
    kept_volumes.release,
)
"""Rounds in the order in which they run."""

OWN_ROUNDS: Sequence[Round] = (cleaning.end_lost_runs,)
"""Rounds of each worker, for its own machine."""

OUTSIDE_ROUNDS: Sequence[Round] = (
    power_saving.run_round,
    evacuation.run_round,
    delivery.deliver,
    mail.deliver,
    usage.run_round,
)
"""Rounds that run apart, so that an unresponsive power supply or receiver delays no other round."""

ROUNDS_LOCK, OUTSIDE_LOCK, NETWORKS_LOCK, MESSAGES_LOCK = "pools", "outside", "networks", "network messages"
"""Names of the locks of the rounds."""

LIFE = 30.0
"""Lifetime of a lock in seconds without a heartbeat."""


def due(climate: Climate) -> Iterator[Round]:
    """Yield the rounds that may have work, in their order.

    The work is read after `failures.check` again, because it may have moved hosts.
    """
    yield reconcile.correct
    if _work(climate).hosts:
        yield maintenance.run_round
    yield failures.check
    work = _work(climate)
    if work.hosts:
        yield from ON_HOSTS
    if work.waiting:
        yield waiting_list.run_round
    if work.filling:
        yield pool_scaling.run_round
    if work.volumes:
        yield kept_volumes.release


def _work(climate: Climate) -> RoundWork:
    """Return the work that exists; all kinds while the database does not answer, so that each round says so itself."""
    try:
        with reading(climate.engine) as conn:
            work = round_work.read(conn, climate.other_time(conn))
    except db_errors.ERRORS as error:
        log.warning("rounds not narrowed", error=db_errors.reason(error))
        return RoundWork(hosts=True, filling=True, volumes=True, waiting=True)
    return replace(work, filling=work.filling or _has_target(climate.settings))


def due_rounds(climate: Climate) -> DueRounds:
    """Return the rounds that may have work, in one statement; all of them while the database does not answer.

    The rounds over hosts always may if the hosts of the cloud are not in this database.
    """
    settings = climate.settings
    try:
        with reading(climate.engine) as conn:
            cloud = climate.cloud.host_query(conn)
            if cloud is None:
                rounds = DueRounds(hosts=True, outside=round_work.is_outside(conn, climate.other_time(conn)))
            else:
                rounds = round_work.due(conn, climate.other_time(conn), cloud, CLOUD_POOLS)
    except db_errors.ERRORS as error:
        log.warning("rounds not narrowed", error=db_errors.reason(error))
        return DueRounds(hosts=True, outside=True)
    return DueRounds(
        hosts=rounds.hosts or _has_target(settings), outside=rounds.outside or settings.evacuate_failed_hosts
    )


def _has_target(settings: Settings) -> bool:
    """Return whether the settings give the pool a target."""
    return bool(settings.pool_target or settings.pool_horizon)


def run_each(climate: Climate, rounds: Iterable[Round] = ROUNDS, may_go_on: Callable[[], bool] = lambda: True) -> None:
    """Run each round once, while the process may.

    An unexpected error is logged, and the next round tries again.
    """
    for one in rounds:
        name = f"{one.__module__.rpartition('.')[2]}.{one.__name__}"
        if not may_go_on():
            log.warning("rounds stopped: lock expired", round=name)
            return
        try:
            one(climate)
        except (CloudError, Unavailable, *db_errors.ERRORS) as error:
            log.warning("round postponed", round=name, error=db_errors.reason(error), reason=str(error)[:200])
        except Exception:
            log.exception("round failed", round=name)


@dataclass
class RoundLock:
    """Lock of some rounds in one process, renewed from a thread of its own.

    It uses the monotonic clock. Without a heartbeat for two thirds of its lifetime, the process regards the lock as
    lost, before any other can take it.
    """

    engine: Engine
    name: str
    life: float
    token: int | None = None
    _last: float = field(default_factory=time.monotonic)
    _over: Event = field(default_factory=Event)

    def __bool__(self) -> bool:
        """Return whether the lock is held."""
        return self.token is not None and time.monotonic() - self._last < self.life * 2 / 3

    def take(self) -> None:
        """Take the lock if it is free, and keep renewing it."""
        began = time.monotonic()
        try:
            with alone_statement(self.engine) as conn:
                self.token = round_locks.take(conn, self.name, _holder(), timedelta(seconds=self.life))
        except db_errors.ERRORS as error:
            log.warning("rounds skipped: database unreachable", error=type(error).__name__)
        self._last = began
        if self.token is not None:
            Thread(target=self._renew_until_over, args=(self.token,), name="round lock", daemon=True).start()

    def _renew_until_over(self, token: int) -> None:
        while not self._over.wait(self.life / 3):
            began = time.monotonic()
            try:
                with self.engine.begin() as conn:
                    # It may have been released while this thread waited for a connection.
                    kept = self._over.is_set() or self._renewed(conn, token)
            except db_errors.ERRORS as error:
                log.warning("round lock not renewed", lock=self.name, error=type(error).__name__)
                continue
            if not kept:
                self.token = None
                return
            self._last = began

    def _renewed(self, conn: Connection, token: int) -> bool:
        return round_locks.renew(conn, self.name, token, timedelta(seconds=self.life))

    def release(self) -> None:
        """Release the lock, unless another process has it already."""
        self._over.set()
        if self.token is not None:
            try:
                with alone_statement(self.engine) as conn:
                    round_locks.release(conn, self.name, self.token)
            except db_errors.ERRORS as error:
                log.warning("round lock not released; it will expire", lock=self.name, error=type(error).__name__)


@contextmanager
def alone(engine: Engine, name: str = ROUNDS_LOCK, of: str = "", life: float = LIFE) -> Iterator[RoundLock]:
    """Yield the lock of these rounds (`of`: for this host), which is true while it is held.

    It is a row, not a transaction, so that none is open while the cloud works.
    """
    lock = RoundLock(engine, f"{name} of {of}" if of else name, life)
    lock.take()
    try:
        yield lock
    finally:
        lock.release()


def _holder() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"
