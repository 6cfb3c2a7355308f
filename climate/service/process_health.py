"""Health of the processes of a deployment, judged by their last work."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from math import inf

from sqlalchemy import Connection

from climate.context import Climate
from climate.service.events.event_shares import QUEUE, queue_of
from climate.store import heartbeats, metrics
from climate.store.leases import due_events, event_claims

SLOWEST_BEAT = 10.0
"""Seconds without a heartbeat after which the pollers count as dead; at least five of their longest sleeps."""

LONGEST_WAIT = 60.0
"""Seconds that a due event may wait while no poller has processed all due events."""

POLLER = "poller"
"""Role of a process that has claimed due events, or found none."""
CAUGHT_UP = "caught-up"
"""Role of a process that has examined all due events, or filled a queue: the rest waits for something else."""
CELLS = "cells"

CELLS_BEAT = 45.0
"""Seconds without a heartbeat after which the cells processes count as dead; they send one every ten."""


@dataclass(frozen=True, slots=True)
class Check:
    """Result of one check. `detail` contains no address and no secret."""

    name: str
    ok: bool
    detail: str
    warns: bool = False
    """Set if the check passes but an operator should look at it."""


def checks(conn: Connection, climate: Climate, moment: datetime) -> Iterator[Check]:
    """Yield the checks of all processes that send heartbeats."""
    now = moment.timestamp()
    yield check_poller(conn, now, max(SLOWEST_BEAT, 5 * climate.settings.poll_seconds))
    yield check_events(conn, moment)
    yield check_workers(conn, moment, queues(climate))
    if climate.settings.cells_enable:
        yield check_cells(conn, now)


def queues(climate: Climate) -> list[str]:
    """Return the queues that need a worker: events of each resource type, and the common one."""
    return sorted({QUEUE, *map(queue_of, climate.plugins)})


def check_poller(conn: Connection, now: float, slowest: float) -> Check:
    """Check that a poller has recently claimed due events, or found none; a poller whose claims fail does not count."""
    at = heartbeats.latest(conn, POLLER)
    if at is None:
        return Check("poller", False, "never heard of: start `climate poller`")
    age = max(0.0, now - at.timestamp())
    ok, message = age <= slowest, f"last claim {age:.1f} s ago"
    return Check("poller", ok, message if ok else f"{message}: start `climate poller`, or see its log")


def check_events(conn: Connection, now: datetime) -> Check:
    """Check that no event waits long for a claim, unless a poller has seen that it cannot run yet."""
    since, seen = due_events.oldest(conn, now), heartbeats.latest(conn, CAUGHT_UP)
    if since is None:
        return Check("events", True, "none is due")
    waited, behind = (now - since).total_seconds(), (now - seen).total_seconds() if seen else inf
    ok = min(waited, behind) <= LONGEST_WAIT
    message = f"the oldest that is due waits for {waited:.1f} s"
    return Check("events", ok, message if ok else f"{message}, and the pollers have not caught up for as long")


def check_cells(conn: Connection, now: float) -> Check:
    """Check that a cells process sent a heartbeat recently; without one, builds and messages of cells wait."""
    at = heartbeats.latest(conn, CELLS)
    if at is None:
        return Check("cells", False, "no cells process was ever heard of: run `climate cells`")
    age = max(0.0, now - at.timestamp())
    message = f"last heard of {age:.1f} s ago"
    return Check("cells", age <= CELLS_BEAT, message if age <= CELLS_BEAT else f"{message}: start `climate cells`")


def check_workers(conn: Connection, now: datetime, needed: Collection[str]) -> Check:
    """Check that each queue has a live worker, and that no event waits long for one."""
    known = heartbeats.by_queue(conn, now - metrics.ALIVE)
    missing = [name for name in needed if name not in known or not known[name].alive]
    if missing:
        message = ", ".join(f"{name} {since(known[name].at if name in known else None)}" for name in missing)
        return Check("workers", False, f"no worker reads {message}: start `climate worker`")
    waiting = event_claims.longest_unbegun(conn)
    late = [name for name, begun in waiting.items() if (now - begun).total_seconds() > LONGEST_WAIT]
    if late:
        message = ", ".join(f"{name} since {time_text(waiting[name])}" for name in sorted(late))
        more = "all workers are busy: start more by `climate worker`, or raise CLIMATE_WORKER_PROCESSES"
        return Check("workers", True, f"events wait for a worker in {message}: {more}", warns=True)
    return Check("workers", True, f"each queue is read, {QUEUE} by {known[QUEUE].alive}")


def since(at: datetime | None) -> str:
    """Return the text about the time since the last heartbeat."""
    return "(never heard of)" if at is None else f"since {time_text(at)}"


def time_text(moment: datetime) -> str:
    """Format a time for texts."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
