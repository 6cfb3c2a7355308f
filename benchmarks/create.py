"""Creating leases below the API: statements, milliseconds, and how many a second with 1 and 8 writers."""

import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from multiprocessing import get_context
from typing import Any

from sqlalchemy import Engine, event

from benchmarks import blazar_figures, scratch, seed
from benchmarks.figures import head, line, spread, timed
from benchmarks.orders import orders
from benchmarks.scratch import CALLER, Place
from climate.bootstrap import Deployment
from climate.service.leases import leases

SIZES = ((10, 0), (1000, 0), (1000, 100_000), (1000, 1_000_000))
"""Hosts and leases that are there already."""


def main(short: bool) -> None:
    head("Lease create below the API, one host")
    for hosts, known in SIZES[: 3 if short else 4]:
        with scratch.place() as place:
            deployment = place.deployment()
            seed.hosts(deployment.climate.engine, hosts)
            seed.leases(deployment.climate.engine, known, datetime.now(UTC))
            seed.settle(deployment.climate.engine)
            _measure(place, deployment, f"{hosts} hosts, {known:,} leases", 100 if short else 500)
            deployment.climate.engine.dispose()


def _measure(place: Place, deployment: Deployment, size: str, times: int) -> None:
    create = _creator(deployment, 0)
    timed(create, 20)  # plans and connections are made once
    hosts = int(size.split()[0])
    with _counted(deployment.climate.engine) as counts:
        create()
    statements = f"{len(counts['statements'])}, {counts['commits']} commit"
    line(f"{size}: statements", statements, "10, 1 commit", f"{blazar_figures.CREATE_STATEMENTS[hosts]}, 9 commits")
    figure = spread(timed(create, times))
    peer_ms = blazar_figures.CREATE_MS[hosts]
    line(f"{size}: one after the other", figure, "", f"{peer_ms:,.0f} ms, {peer_ms / figure.median:,.0f}x")
    for writers in (1, 8):
        rate = _rate(place, writers, times)
        ratio = rate / blazar_figures.CREATES_PER_SECOND
        line(f"{size}: {writers} writers", f"{rate:.0f}/s", "", f"{blazar_figures.CREATES_PER_SECOND}/s, {ratio:,.0f}x")


def _creator(deployment: Deployment, number: int) -> Callable[[], object]:
    wanted = orders(datetime.now(UTC), number)
    return lambda: leases.create(deployment.climate, CALLER, next(wanted))


@contextmanager
def _counted(engine: Engine) -> Iterator[dict[str, Any]]:
    """Statements and commits of the block, as they go to the database."""
    counts: dict[str, Any] = {"statements": [], "commits": 0}

    def statement(_conn: object, _cursor: object, text: str, *_: object) -> None:
        counts["statements"].append(text)

    def commit(_conn: object) -> None:
        counts["commits"] += 1

    event.listen(engine, "before_cursor_execute", statement)
    event.listen(engine, "commit", commit)
    try:
        yield counts
    finally:
        event.remove(engine, "before_cursor_execute", statement)
        event.remove(engine, "commit", commit)


def _rate(place: Place, writers: int, times: int) -> float:
    """Creates a second by so many processes, each over a connection of its own."""
    with ProcessPoolExecutor(writers, mp_context=get_context("spawn")) as pool:
        begin = time.time() + 3
        spans = list(pool.map(_write, [(place, number + 1, times, begin) for number in range(writers)]))
    return writers * times / (max(end for _, end in spans) - min(start for start, _ in spans))


def _write(given: tuple[Place, int, int, float]) -> tuple[float, float]:
    place, number, times, begin = given
    deployment = place.deployment(pool_size=1)
    create = _creator(deployment, number)
    timed(create, 5)
    time.sleep(max(0.0, begin - time.time()))
    start = time.time()
    timed(create, times)
    deployment.climate.engine.dispose()
    return start, time.time()


if __name__ == "__main__":
    main("--short" in sys.argv)
