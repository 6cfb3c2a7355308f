"""Heartbeat of the claim on a server's task, renewed in the background while a driver works.

The claim of a worker that dies expires after a few seconds. A worker that was paused for longer loses the task, and
is stopped before its next destructive step.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from climate.compute.context import Compute
from climate.compute.store.db_errors import DATABASE_ERRORS
from climate.compute.store.servers import reschedule

CLAIM_SECONDS, BEAT_SECONDS = 8.0, 2.0
"""Duration of a claim and interval of its renewal, in seconds."""

Check = Callable[[], None]
"""Function that returns while this worker has the claim, and else raises TaskLost."""

log = structlog.get_logger(__name__)


class TaskLost(Exception):
    """Another worker has claimed the task."""


@contextmanager
def renewed_claim(compute: Compute, server_id: str, worker: str) -> Iterator[Check]:
    """Renew the claim in the background. Call the returned check before each destructive step."""
    done = threading.Event()
    beat = threading.Thread(target=_beat, args=(compute, server_id, worker, done), name="heartbeat", daemon=True)
    beat.start()

    def check() -> None:
        if not renew(compute, server_id, worker):
            raise TaskLost

    try:
        yield check
    finally:
        done.set()
        beat.join()


def renew(compute: Compute, server_id: str, worker: str) -> bool:
    """Renew the claim; False if this worker has lost it."""
    with compute.engine.begin() as conn:
        return reschedule.renew_claim(conn, server_id, worker, compute.now(conn), CLAIM_SECONDS) is not None


def _beat(compute: Compute, server_id: str, worker: str, done: threading.Event) -> None:
    while not done.wait(BEAT_SECONDS):
        try:
            if not renew(compute, server_id, worker):
                return
        except DATABASE_ERRORS as error:  # the database may return before the claim expires
            log.warning("claim of a server task not renewed", server=server_id, reason=type(error).__name__)
