"""Creating leases over HTTP among many that are there already, beside the ceiling: an INSERT over the same servers."""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from statistics import median

from benchmarks import blazar_figures, ceiling_web, processes, scratch, seed
from benchmarks.client import Answer, Connection, at_once
from benchmarks.figures import head, line, spread
from benchmarks.orders import SPEC, windows
from benchmarks.processor_time import Meter, Reading
from climate.settings import Settings

HOSTS = 1000
CLIENTS = 8
TURNS = 5
"""How often each of both servers is measured, by turns."""
PATH = "/reservation/v1/leases"


def main(short: bool) -> None:
    head(f"Lease create over HTTP: {CLIENTS} clients, {HOSTS:,} hosts, two web processes")
    for known in (100_000,) if short else (100_000, 1_000_000):
        with scratch.place() as place:
            settings = processes.with_port(place.settings)
            deployment = place.deployment(pool_size=1)
            processes.prepare(settings)
            seed.hosts(deployment.climate.engine, HOSTS)
            seed.leases(deployment.climate.engine, known, datetime.now(UTC))
            seed.settle(deployment.climate.engine)
            deployment.climate.engine.dispose()
            ceiling_web.prepare(settings.database_url)
            ceiling = processes.with_port(settings)
            with processes.running(settings, "web") as web, processes.running(ceiling, processes.CEILING) as bare:
                _measure(settings, [Side(settings, web, PATH), Side(ceiling, bare, ceiling_web.PATH)], known, short)


@dataclass
class Side:
    """One of the two servers, and what it was measured at."""

    settings: Settings
    pids: list[int]
    path: str
    rates: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    spent: list[Reading] = field(default_factory=list)
    statuses: set[int] = field(default_factory=set)

    def ask(self, token: str, requests: int, seed_of: int) -> None:
        """Send so many requests, from all clients at once, and note the figures."""
        meter = Meter(self.pids, self.settings.database_url)
        before, begun = meter.read(), time.perf_counter()
        answers = _run(self.settings, token, self.path, requests, seed_of)
        self.rates.append(len(answers) / (time.perf_counter() - begun))
        self.spent.append(meter.read().since(before, len(answers)))
        self.seconds += [answer.seconds for answer in answers]
        self.statuses |= {answer.status for answer in answers}

    def work(self) -> Reading:
        """Return the processor time of one request."""
        return Reading(median(one.processes for one in self.spent), median(one.postgres for one in self.spent))


def _measure(settings: Settings, sides: list[Side], known: int, short: bool) -> None:
    token = processes.token(settings)
    for side in sides:
        _warm_up(side, token)
    for turn in range(TURNS):
        for side in sides if turn % 2 else sides[::-1]:
            side.ask(token, (1000 if short else 4000) // TURNS, seed_of=1 + turn * CLIENTS)
    create, ceiling = sides
    rate, highest = median(create.rates), median(ceiling.rates)
    ratio = f"{blazar_figures.CREATES_PER_SECOND}/s below its API, {rate / blazar_figures.CREATES_PER_SECOND:,.0f}x"
    line(f"{known:,} leases: creates", f"{rate:.0f}/s", "", ratio)
    line(f"{known:,} leases: ceiling, one INSERT and its commit", f"{highest:.0f}/s")
    ratios = [one / other for one, other in zip(create.rates, ceiling.rates, strict=True)]
    shown = f"{median(ratios):.2f} [{min(ratios):.2f}-{max(ratios):.2f}]"
    line(f"{known:,} leases: creates beside the ceiling", shown, "0.25")
    each, least = spread(create.seconds), spread(ceiling.seconds)
    line(f"{known:,} leases: each", each)
    line(f"{known:,} leases: each of the ceiling", least)
    line(f"{known:,} leases: p99 beside that of the ceiling", f"{each.p99 / least.p99:.1f}", "< 4")
    line(f"{known:,} leases: processor time of a create", create.work())
    line(f"{known:,} leases: of the ceiling", ceiling.work())
    wrong = sorted((create.statuses | ceiling.statuses) - {201})
    if wrong:
        line(f"{known:,} leases: statuses other than 201", wrong)


def _warm_up(side: Side, token: str) -> None:
    """Let every thread make its connection to the database, its plans and its statements once.

    The clients of one turn may all meet the same process, so there are several for each thread of all processes.
    """
    threads = side.settings.web_processes * side.settings.web_threads
    _run(side.settings, token, side.path, 20 * threads, seed_of=900, clients=2 * threads)


def _run(
    settings: Settings, token: str, path: str, requests: int, seed_of: int, clients: int = CLIENTS
) -> list[Answer]:
    connections = [Connection(settings, token) for _ in range(clients)]
    bodies = [islice(_bodies(seed_of + number), requests // clients) for number in range(clients)]
    try:
        return [answer for some in at_once(connections, path, bodies) for answer in some]
    finally:
        for connection in connections:
            connection.close()


def _bodies(seed_of: int) -> Iterator[bytes]:
    for number, (start, end) in enumerate(windows(datetime.now(UTC), seed_of)):
        body = {
            "name": f"bench-{seed_of}-{number}",
            "start_date": f"{start:%Y-%m-%d %H:%M}",
            "end_date": f"{end:%Y-%m-%d %H:%M}",
            "reservations": [SPEC],
            "events": [],
        }
        yield json.dumps(body).encode()


if __name__ == "__main__":
    main("--short" in sys.argv)
