"""Ends a worker that has gone deaf, for its supervisor to start it afresh.

After the broker was killed the library that reads the queues at times waits
on for ever, on a connection that is no more.  What shows it from outside: the
queues fill, nobody works, and nothing is taken.
"""

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import redis
import structlog
from celery.worker import state

from workers import doorbell

log = structlog.get_logger(__name__)

DEAF = 70
"""Exit status of a worker that ended itself."""

LOOKS = 5
"""How often in a row, a second apart, a worker has to look deaf: what can be taken is taken in milliseconds."""

PATIENCE = 1.0
"""Seconds that an answer of the broker may take."""


@dataclass
class Watch:
    """Looks at one worker.  `waiting` counts its messages in the queues, `taken` those it has in hand."""

    waiting: Callable[[], int]
    taken: Callable[[], int]
    _deaf: int = 0

    def is_deaf(self) -> bool:
        """Whether now, and every time in the last few looks, there was work and nobody took it."""
        silent = not self.taken() and self.waiting() > 0
        self._deaf = self._deaf + 1 if silent else 0
        return self._deaf >= LOOKS


def begin(redis_url: str, queues: Sequence[str]) -> None:
    """Watch this process from a thread of its own, as long as it lives."""
    client = redis.Redis.from_url(redis_url, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE)
    watch = Watch(lambda: _waiting(client, queues), _taken)
    threading.Thread(target=_go_on, args=(watch,), name="watch", daemon=True).start()


def _go_on(watch: Watch) -> None:
    pause = threading.Event()
    while not watch.is_deaf():
        pause.wait(1)
    log.error("deaf: messages wait and none is taken, ending", looks=LOOKS)
    os._exit(DEAF)


def _waiting(client: "redis.Redis", queues: Sequence[str]) -> int:
    """Messages that wait; none while the broker is away."""
    try:
        return sum(int(client.llen(doorbell.key(queue))) for queue in queues)
    except redis.RedisError:
        return 0


def _taken() -> int:
    return len(state.reserved_requests) + len(state.active_requests)
