"""Creating leases over HTTP: how many a second, and how long each takes, among many leases that are there already."""

import json
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice

from benchmarks import peer, processes, scratch, seed
from benchmarks.client import Answer, Connection, at_once
from benchmarks.figures import head, line, spread
from benchmarks.orders import SPEC, windows
from climate.settings import Settings

HOSTS = 1000
CLIENTS = 8
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
            with processes.running(settings, "web"):
                _measure(settings, known, 1000 if short else 4000)


def _measure(settings: Settings, known: int, requests: int) -> None:
    token = processes.token(settings)
    _run(settings, token, 200, seed_of=900)  # every thread makes its plans and statements once
    begun = time.perf_counter()
    answers = _run(settings, token, requests, seed_of=0)
    took = time.perf_counter() - begun
    wrong = sorted({answer.status for answer in answers} - {201})
    rate = len(answers) / took
    ratio = f"{peer.CREATES_PER_SECOND}/s below its API, {rate / peer.CREATES_PER_SECOND:,.0f}x"
    line(f"{known:,} leases: creates", f"{rate:.0f}/s", "250/s", ratio)
    line(f"{known:,} leases: each", spread([answer.seconds for answer in answers]), "p99 < 100 ms")
    if wrong:
        line(f"{known:,} leases: statuses other than 201", wrong)


def _run(settings: Settings, token: str, requests: int, seed_of: int) -> list[Answer]:
    connections = [Connection(settings, token) for _ in range(CLIENTS)]
    bodies = [islice(_bodies(seed_of + number), requests // CLIENTS) for number in range(CLIENTS)]
    try:
        return [answer for some in at_once(connections, PATH, bodies) for answer in some]
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
