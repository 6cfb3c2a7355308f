"""Is this deployment ready to serve?  One short answer per thing that it needs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib import resources
from math import inf
from pathlib import Path
from time import time

from sqlalchemy import Connection

from climate.connections import reading
from climate.context import Climate
from climate.service import broker
from climate.store import beats, due, failures, versions

SLOWEST_BEAT = 10.0
"""Seconds without a sign of life after which the pollers are taken for dead; at least five of their longest sleeps."""

CLOCKS_APART = 2.0
"""Seconds that this process's clock may differ from the database's, which is the one that counts."""

LONGEST_WAIT = 60.0
"""Seconds that a due event may wait while no poller has got to the end of what is due."""

POLLER = "poller"
"""Role of a process that has claimed what is due, or found nothing."""
CAUGHT_UP = "caught-up"
"""Role of a process that has looked at all that is due: what is left waits for something else."""
CELLS = "cells"

CELLS_BEAT = 45.0
"""Seconds without a sign of life after which the cells processes are taken for dead; they show it every ten."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that is needed.  `detail` names no address and no secret."""

    name: str
    ok: bool
    detail: str


def readiness(climate: Climate, wall: Callable[[], float] = time) -> list[Check]:
    """All checks; the deployment is ready when every one is ok."""
    return [*_of_database(climate, wall), check_broker(climate.settings.redis_url)]


def check_broker(url: str) -> Check:
    """The broker answers."""
    ok = broker.answers(url)
    return Check("broker", ok, "answers" if ok else "does not answer")


def check_migrations(conn: Connection) -> Check:
    """The tables are those of this release."""
    if versions.present(conn) == wanted_migrations():
        return Check("migrations", True, "at head")
    return Check("migrations", False, "not at head: run `climate migrate`")


def wanted_migrations() -> frozenset[str]:
    """The newest revisions of this release."""
    return versions.wanted(Path(str(resources.files("migrations"))))


def check_poller(conn: Connection, now: float, slowest: float) -> Check:
    """Some poller has claimed what is due lately, or found nothing: one whose claims fail is none."""
    at = beats.latest(conn, POLLER)
    if at is None:
        return Check("poller", False, "never heard of")
    age = max(0.0, now - at.timestamp())
    return Check("poller", age <= slowest, f"last claim {age:.1f} s ago")


def check_events(conn: Connection, now: datetime) -> Check:
    """No event has waited long that might have been claimed: it has, or a poller has seen that it cannot run yet."""
    since, seen = due.oldest(conn, now), beats.latest(conn, CAUGHT_UP)
    if since is None:
        return Check("events", True, "none is due")
    waited, behind = (now - since).total_seconds(), (now - seen).total_seconds() if seen else inf
    ok = min(waited, behind) <= LONGEST_WAIT
    told = f"the oldest that is due waits for {waited:.1f} s"
    return Check("events", ok, told if ok else f"{told}, and the pollers have not caught up for as long")


def check_cells(conn: Connection, now: float) -> Check:
    """Some cells process has been heard of lately: without one, builds and messages of cells wait."""
    at = beats.latest(conn, CELLS)
    if at is None:
        return Check("cells", False, "no cells process was ever heard of: run `climate cells`")
    age = max(0.0, now - at.timestamp())
    return Check("cells", age <= CELLS_BEAT, f"last heard of {age:.1f} s ago")


def check_clock(now: float, here: float) -> Check:
    """This process's clock agrees with the database's."""
    apart = abs(here - now)
    return Check("clock", apart <= CLOCKS_APART, f"{apart:.1f} s from the database's")


def _of_database(climate: Climate, wall: Callable[[], float]) -> Iterator[Check]:
    """The checks that need the database; when it is away nothing is known of the rest, and only that is said."""
    slowest = max(SLOWEST_BEAT, 5 * climate.settings.poll_seconds)
    found: list[Check] = []
    try:
        with reading(climate.engine) as conn:
            moment = climate.now(conn)
            now = moment.timestamp()
            found += [check_clock(now, wall()), check_migrations(conn), check_poller(conn, now, slowest)]
            found += [check_events(conn, moment)]
            found += [check_cells(conn, now)] if climate.settings.cells_enable else []
    except failures.ERRORS:
        yield Check("database", False, "does not answer as it should")
    else:
        yield Check("database", True, "answers")
    yield from found
