"""Watchdog that stops a worker which no longer reads its queues, for its supervisor to restart it.

After a broker failure kombu can wait forever on a dead connection. The symptoms: messages accumulate, no work runs, and
nothing is read.
"""

import math
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import redis
import structlog
from celery.worker import state

from climate.database.connections import alone
from climate.settings import Settings
from climate.store import db_errors, heartbeats
from climate.store.engine import connect
from workers import celery_app

log = structlog.get_logger(__name__)

DEAF = 70
"""Exit status of a worker that stopped itself."""

LOOKS = 5
"""Number of successive checks, one second apart, that must fail; messages are normally read within milliseconds."""

LIFE_SECONDS = 10.0
"""Seconds between two heartbeats."""

PATIENCE = 1.0
"""Seconds to wait for an answer of the broker."""


@dataclass
class Watch:
    """Checks one worker. `waiting` counts its queues with messages, `taken` the messages it has in hand."""

    waiting: Callable[[], int]
    taken: Callable[[], int]
    _deaf: int = 0

    def is_deaf(self) -> bool:
        """Return whether there was unread work in this check and in all recent ones."""
        silent = not self.taken() and self.waiting() > 0
        self._deaf = self._deaf + 1 if silent else 0
        return self._deaf >= LOOKS


@dataclass
class Heartbeat:
    """Heartbeat of this worker, recorded while the broker answers it."""

    show: Callable[[], None]
    broker_answers: Callable[[], bool]
    now: Callable[[], float] = time.monotonic
    _last: float = -math.inf

    def beat(self) -> None:
        """Record a heartbeat periodically; if the database or the broker is away, the next check tries again."""
        if self.now() - self._last < LIFE_SECONDS or not self.broker_answers():
            return
        try:
            self.show()
        except db_errors.ERRORS as error:
            log.warning("heartbeat not recorded", error=db_errors.reason(error))
        self._last = self.now()


def recorder(settings: Settings, queues: Sequence[str]) -> Callable[[], None]:
    """Return a function that records in the database that this process reads these queues."""
    name, roles = f"worker:{socket.gethostname()}:{os.getpid()}", [f"{heartbeats.QUEUE}{queue}" for queue in queues]
    engine = connect(settings.database_url, pool_size=1, application="climate-worker-life")

    def show() -> None:
        with alone(engine) as conn:
            heartbeats.beat(conn, roles, name, None)

    return show


def begin(settings: Settings, queues: Sequence[str]) -> None:
    """Start a thread that watches this process for its lifetime."""
    client = redis.Redis.from_url(settings.redis_url, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE)
    watch = Watch(lambda: _waiting(client, queues), _taken)
    words = (watch, Heartbeat(recorder(settings, queues), lambda: _answers(client)))
    threading.Thread(target=_beat_until_deaf, args=words, name="watch", daemon=True).start()


def _beat_until_deaf(watch: Watch, life: Heartbeat) -> None:
    pause = threading.Event()
    while not watch.is_deaf():
        try:
            life.beat()
        except Exception:  # without this thread the worker would count as dead for ever
            log.exception("heartbeat failed")
        pause.wait(1)
    log.error("worker is not consuming messages; exiting", looks=LOOKS)
    os._exit(DEAF)


def _waiting(client: "redis.Redis", queues: Sequence[str]) -> int:
    """Return the number of queues with waiting messages, by one command; 0 while the broker is away."""
    try:
        return int(client.exists(*map(celery_app.key, queues)))
    except redis.RedisError:
        return 0


def _answers(client: "redis.Redis") -> bool:
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False


def _taken() -> int:
    return len(state.reserved_requests) + len(state.active_requests)
