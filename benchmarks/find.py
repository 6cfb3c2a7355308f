"""The search for free times among ever more allocations: what lies outside its horizon should cost nothing."""

import os
import sys
from datetime import UTC, datetime, timedelta

from sqlalchemy import Engine, text

from benchmarks import scratch, seed
from benchmarks.figures import head, line, spread, timed
from benchmarks.processor_time import Meter
from climate.domain.availability.search import Mode
from climate.service.availability import search
from climate.service.availability.question import SearchRequest

HOSTS = 1000
HORIZON = timedelta(days=90)
INSIDE = 100_000
OUTSIDE = (100_000, 1_000_000)
RESERVATION = {
    "resource_type": "physical:host",
    "min": 4,
    "max": 4,
    "hypervisor_properties": "",
    "resource_properties": "",
}

# The constraint would cost minutes here, and the search does not use its index.
_UNCONSTRAINED = text("ALTER TABLE allocations DROP CONSTRAINT IF EXISTS one_holder_at_a_time")

# Each host is taken for most of the time, shifted against the others: some are free at any time, seldom for long.
_TAKEN = text("""
    INSERT INTO allocations (host, during, kind, state)
    SELECT h.id, tstzrange(s.start, s.start + CAST(:every AS interval) * 0.9), 'hold', 'held'
    FROM (SELECT id, row_number() OVER (ORDER BY id) AS place FROM hosts) AS h,
         generate_series(0, CAST(:slots AS int) - 1) AS slot,
         LATERAL (SELECT CAST(:first AS timestamptz)
             + CAST(:every AS interval) * (slot + (h.place * 0.618034) % 1) AS start) AS s
""")


def main(short: bool) -> None:
    head(f"Finding times for 4 of {HOSTS:,} hosts in {HORIZON.days} days with {INSIDE:,} allocations")
    for outside in OUTSIDE[: 1 if short else 2]:
        with scratch.place() as place:
            deployment = place.deployment(pool_size=2)
            climate = deployment.climate
            seed.hosts(climate.engine, HOSTS)
            meter = Meter([os.getpid()], place.settings.database_url)
            now = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=10)
            _take(climate.engine, now, HORIZON, INSIDE)
            _take(climate.engine, now + 2 * HORIZON, timedelta(days=3650), outside)
            seed.settle(climate.engine)
            every = HORIZON * HOSTS / INSIDE

            def asked(hours: float, mode: Mode, points: int, begin: datetime = now) -> SearchRequest:
                length = timedelta(hours=hours)
                return SearchRequest((RESERVATION,), length, begin, begin + HORIZON, mode=mode, offers=1, points=points)

            def find(wanted: SearchRequest, climate=climate) -> object:  # type: ignore[no-untyped-def]
                return search.find(search.prepare(climate, scratch.CALLER, wanted))

            times = 20 if short else 100
            cases = {
                "first window": asked(1, Mode.FIRST, 0),
                "first window, none but after the last allocation": asked(every.total_seconds() / 3600, Mode.FIRST, 0),
                "first window and free count": asked(1, Mode.FIRST, 100),
                "most": asked(1, Mode.MOST, 0),
                "longest": asked(1, Mode.LONGEST, 0),
            }
            for name, wanted in cases.items():
                find(wanted)
                begun = meter.read()
                line(f"{name}, {outside:,} outside", spread(timed(lambda wanted=wanted: find(wanted), times)))
                line("  processor time of it", meter.read().since(begun, times))
            climate.engine.dispose()


def _take(engine: Engine, first: datetime, length: timedelta, count: int) -> None:
    slots = count // HOSTS
    with engine.begin() as conn:
        conn.execute(text("SET LOCAL statement_timeout = 0"))
        conn.execute(_UNCONSTRAINED)
        conn.execute(_TAKEN, {"first": first, "every": length / slots, "slots": slots})


if __name__ == "__main__":
    main("--short" in sys.argv)
