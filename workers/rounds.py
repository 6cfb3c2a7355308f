"""The rounds in which hosts are looked after: one worker at a time, one trouble not keeping the others from theirs."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import psycopg
import structlog

from climate import bootstrap
from climate.cloud import CloudError
from climate.context import Climate
from climate.domain.errors import Unavailable
from climate.service import (
    cleaning,
    draining,
    drift,
    emptying,
    evacuation,
    failing,
    filling,
    healing,
    kept_volumes,
    maintenance,
    notices,
    powering,
    recycling,
)
from climate.settings import Settings
from climate.store import failures
from climate.store.engine import line

log = structlog.get_logger(__name__)

Round = Callable[[Climate], object]

ROUNDS: Sequence[Round] = (
    drift.mend,
    maintenance.tend,
    failing.look,
    healing.heal_all,
    recycling.tend,
    cleaning.tend,
    emptying.tend,
    draining.tend,
    filling.tend,
    kept_volumes.release,
)
"""In the order in which they are made."""

OWN_ROUNDS: Sequence[Round] = (cleaning.end_lost_runs,)
"""By each worker, for what is on its own machine."""

OUTSIDE_ROUNDS: Sequence[Round] = (powering.tend, evacuation.tend, notices.deliver)
"""By themselves: a power supply or a receiver that does not answer delays no host for which another round is made."""

ROUNDS_LOCK, OUTSIDE_LOCK, NETWORKS_LOCK, MESSAGES_LOCK = 43, 44, 45, 46
"""Keys of the advisory locks of whoever makes the rounds."""


def make(climate: Climate, rounds: Sequence[Round] = ROUNDS) -> None:
    """Each round once.  What one of them does not foresee is logged, and tried again by the next."""
    for one in rounds:
        name = f"{one.__module__.rpartition('.')[2]}.{one.__name__}"
        try:
            one(climate)
        except (CloudError, Unavailable, *failures.ERRORS) as error:
            log.warning("a round is put off", round=name, error=type(error).__name__, reason=str(error)[:200])
        except Exception:
            log.exception("a round came to nothing", round=name)


@contextmanager
def alone(settings: Settings, key: int = ROUNDS_LOCK, of: str = "") -> Iterator[bool]:
    """Whether nobody else makes these rounds (`of`: for this host), and nobody else will until the end of the block.

    The lock is the connection's, and goes with a process that dies.  It is in
    no transaction, so that none is open while the cloud works.
    """
    try:
        conn = line(bootstrap.plain_url(settings.database_url), "climate-rounds")
    except psycopg.Error as error:
        log.warning("no rounds: the database is away", error=type(error).__name__)
        yield False
        return
    with conn:
        row = conn.execute("SELECT pg_try_advisory_lock(%s, hashtext(%s))", (key, of)).fetchone()
        yield bool(row and row[0])
