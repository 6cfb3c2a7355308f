"""The claim on the work on a server: short, and kept up from beside while a driver is at it.

A worker that dies stops beating, and its work is free after a few seconds.  One
that was only away for longer than that has lost the work, and is told so before
it touches anything again.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from climate.compute.context import Compute
from climate.compute.store.db_errors import DATABASE_ERRORS
from climate.compute.store.servers import retries

CLAIM_SECONDS, BEAT_SECONDS = 8.0, 2.0
"""Work is claimed for so long, and claimed again so often."""

Check = Callable[[], None]
"""Returns while the work is still this worker's, else raises Lost."""

log = structlog.get_logger(__name__)


class Lost(Exception):
    """Another worker has taken the work over."""


@contextmanager
def kept(compute: Compute, server_id: str, worker: str) -> Iterator[Check]:
    """Keep the claim up for as long as this lasts; what it gives is to be called before anything is destroyed."""
    done = threading.Event()
    beat = threading.Thread(target=_beat, args=(compute, server_id, worker, done), name="heartbeat", daemon=True)
    beat.start()

    def check() -> None:
        if not renew(compute, server_id, worker):
            raise Lost

    try:
        yield check
    finally:
        done.set()
        beat.join()


def renew(compute: Compute, server_id: str, worker: str) -> bool:
    """Claim the work for a while longer; False when it is not this worker's any more."""
    with compute.engine.begin() as conn:
        return retries.hold(conn, server_id, worker, compute.now(conn), CLAIM_SECONDS) is not None


def _beat(compute: Compute, server_id: str, worker: str, done: threading.Event) -> None:
    while not done.wait(BEAT_SECONDS):
        try:
            if not renew(compute, server_id, worker):
                return
        except DATABASE_ERRORS as error:  # it may be back before the claim has run out
            log.warning("a claim could not be renewed", server=server_id, reason=type(error).__name__)
