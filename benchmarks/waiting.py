"""The waiting list with many leases: what an ending lease pays for it, and how long the round takes."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from time import perf_counter

from sqlalchemy import text

from benchmarks import scratch, seed
from benchmarks.figures import head, line, spread
from climate.context import Climate
from climate.domain.lease import Lease
from climate.domain.planning.waiting_list import Wait
from climate.service.leases import leases
from climate.service.leases.leases import LeaseRequest
from climate.service.waiting_list import entries, places
from climate.service.waiting_list import round as waiting_round

HOSTS = 1000
TIMES = 20
LENGTHS = (0, 10_000)

# Copies of a lease that waits, of 100 projects and with other numbers of hosts; their facts are not needed here.
_COPIES = (
    """
    INSERT INTO leases (id, name, project_id, user_id, start_date, end_date, status, degraded, deleting, gone, version,
        created_at, wait_until)
    SELECT gen_random_uuid(), name, 'p' || n % 100, user_id, start_date + n % 50 * interval '1 minute',
        end_date + n % 50 * interval '1 minute', status, false, false, false, 1,
        created_at + n * interval '1 millisecond', wait_until
    FROM leases, generate_series(1, :count) AS n WHERE id = :id
    """,
    """
    INSERT INTO reservations (id, lease_id, position, resource_type, status, spec, exists_before_start,
        resources_changed)
    SELECT gen_random_uuid(), l.id, 0, r.resource_type, r.status,
        r.spec || jsonb_build_object('min', 100 + get_byte(uuid_send(l.id), 0), 'max', 400), false, false
    FROM leases l, reservations r WHERE r.lease_id = :id AND l.wait_until IS NOT NULL AND l.id <> :id
    """,
)


def main(short: bool) -> None:
    head(f"An ending lease and the waiting list, {HOSTS:,} hosts; aim: an ending lease pays less than 20 ms")
    for length in LENGTHS:
        with scratch.place() as place:
            climate = place.deployment(pool_size=2).climate
            seed.hosts(climate.engine, HOSTS)
            _measured(climate, length, 5 if short else TIMES)
            climate.engine.dispose()


def _measured(climate: Climate, length: int, times: int) -> None:
    start = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=2)
    _created(climate, start, HOSTS - 5 * times, hours=6)
    ending = [_created(climate, start, 2, hours=6) for _ in range(2 * times)]
    _fill(climate, start, length)
    said = f"{length:,} leases wait"

    def end(one: Lease) -> float:
        return _seconds(lambda: leases.delete(climate, scratch.CALLER, one.id))

    line(f"ending lease, {said}", spread([end(one) for one in ending[:times]]))
    if not length:
        return
    waiting_round.run_round(climate)
    rounds = []
    for one in ending[times:]:
        end(one)
        rounds.append(_seconds(lambda: waiting_round.run_round(climate)))
    line(f"round after it, none fits, {said}", spread(rounds))
    last = _waiting(climate, start, 400)
    shown = [_seconds(lambda: places.estimated(climate, last)) for _ in range(times)]
    line(f"place and estimate of one lease, {said}", spread(shown))


def _seconds(act: Callable[[], object]) -> float:
    begun = perf_counter()
    act()
    return perf_counter() - begun


def _hosts(least: int) -> dict[str, object]:
    asked = {"min": least, "max": least, "hypervisor_properties": "", "resource_properties": ""}
    return {"resource_type": "physical:host", **asked}


def _created(climate: Climate, start: datetime, hosts: int, hours: int) -> Lease:
    order = LeaseRequest("l", start, start + timedelta(hours=hours), None, [_hosts(hosts)])
    return leases.create(climate, scratch.CALLER, order)


def _waiting(climate: Climate, start: datetime, hosts: int) -> Lease:
    order = LeaseRequest("w", start, start + timedelta(hours=4), None, [_hosts(hosts)])
    return entries.create(climate, scratch.CALLER, order, Wait())


def _fill(climate: Climate, start: datetime, length: int) -> None:
    if not length:
        return
    first = _waiting(climate, start, 400)
    with climate.engine.begin() as conn:
        conn.execute(text("SET LOCAL statement_timeout = 0"))
        for statement in _COPIES:
            conn.execute(text(statement), {"id": first.id, "count": length - 1})
    seed.settle(climate.engine)


if __name__ == "__main__":
    main("--short" in sys.argv)
