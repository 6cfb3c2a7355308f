"""Clients that want one host for the same hour: how soon losers hear so, and that it never goes to two."""

import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median

from sqlalchemy import Engine, text

from benchmarks import blazar_figures, scratch, seed
from benchmarks.figures import head, line, spread
from benchmarks.orders import SPEC
from benchmarks.scratch import CALLER
from climate.bootstrap import Deployment
from climate.domain.errors import NotEnoughHosts
from climate.service.leases import leases
from climate.service.leases.leases import LeaseRequest

RIVALS = 8

_DOUBLE = text("""
    SELECT count(DISTINCT a.id) FROM allocations AS a
    JOIN allocations AS b ON b.host = a.host AND b.during && a.during AND b.id <> a.id
    WHERE a.state IN ('held', 'active') AND b.state IN ('held', 'active')
""")


_TABLE = text("CREATE TABLE ceiling AS SELECT 1 AS id, 0 AS value")
_LOCK = text("SELECT value FROM ceiling WHERE id = 1 FOR UPDATE")
_UPDATE = text("UPDATE ceiling SET value = value + 1 WHERE id = 1")


def main(short: bool) -> None:
    windows = 30 if short else 200
    for hosts in (1, 4):
        head(f"{RIVALS} clients want one of {hosts} hosts for the same hour, {windows} times, below the API")
        with scratch.place() as place:
            deployment = place.deployment(pool_size=RIVALS)
            seed.hosts(deployment.climate.engine, hosts)
            _measure(deployment, hosts, windows)
            deployment.climate.engine.dispose()


def _measure(deployment: Deployment, hosts: int, windows: int) -> None:
    first = datetime.now(UTC) + timedelta(days=1)
    _race(deployment, first)  # connections are opened and plans made once
    engine = deployment.climate.engine
    with engine.begin() as conn:
        conn.execute(_TABLE)
    won, lost, waited, later, before = [], [], [], [], 0
    for number in range(1, windows + 1):
        answers = _race(deployment, first + timedelta(hours=2 * number))
        winners, losers = [one for one in answers if one.won], [one for one in answers if not one.won]
        won += [one.seconds for one in winners]
        lost += [one.seconds for one in losers]
        told = max(one.at for one in winners)
        later.append(median(one.at for one in losers) - told)
        before += sum(one.at <= told for one in losers)
        waited += sorted(_locked(engine))[1:]
    line("winners", spread(won))
    line("losers", spread(lost), "< 50 ms")
    line("the median loser after the last winner of the same race", f"{1000 * median(later):.1f} ms")
    line("losers that were told before it", f"{before} of {len(lost)}")
    line("ceiling: all but the first of a SELECT FOR UPDATE", spread(waited))
    line("losers beside the ceiling", f"{median(lost) / median(waited):.1f}")
    line("windows with as many winners as hosts", f"{len(won) / hosts:.0f} of {windows}")
    line("double-booked", _double_booked(deployment.climate.engine), "0", f"{blazar_figures.DOUBLE_BOOKED} of windows")


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of a rival: seconds since it asked, whether it won, and the moment on the clock of all rivals."""

    seconds: float
    won: bool
    at: float


def _race(deployment: Deployment, start: datetime) -> Sequence[Answer]:
    order = LeaseRequest("race", start, start + timedelta(hours=1), reservations=(SPEC,))
    together = threading.Barrier(RIVALS)
    answers: list[Answer] = []

    def want() -> None:
        together.wait()
        begun = time.perf_counter()
        won = True
        try:
            leases.create(deployment.climate, CALLER, order)
        except NotEnoughHosts:
            won = False
        at = time.perf_counter()
        answers.append(Answer(at - begun, won, at))

    threads = [threading.Thread(target=want) for _ in range(RIVALS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def _locked(engine: Engine) -> list[float]:
    """Seconds until each rival has updated one row, after it had its lock."""
    together = threading.Barrier(RIVALS)
    found: list[float] = []

    def want() -> None:
        together.wait()
        begun = time.perf_counter()
        with engine.begin() as conn:
            conn.execute(_LOCK)
            conn.execute(_UPDATE)
        found.append(time.perf_counter() - begun)

    threads = [threading.Thread(target=want) for _ in range(RIVALS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def _double_booked(engine: Engine) -> int:
    with engine.connect() as conn:
        return int(conn.execute(_DOUBLE).scalar_one())


if __name__ == "__main__":
    main("--short" in sys.argv)
