"""Cost of gone leases and old migrations: each route, round and claim among 100,000 and among 1,000,000 of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from statistics import median
from typing import Any
from uuid import UUID

from flask import Flask
from sqlalchemy import Engine, event, text

from api import create_app
from benchmarks import scratch, seed
from benchmarks.figures import head, line, step, timed
from climate import log_setup
from climate.bootstrap import Deployment
from climate.cloud import CloudHost
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.policy import Caller
from climate.service import housekeeping
from climate.service.events import event_dispatch, events
from climate.service.hosts import inventory
from climate.service.leases import lease_servers, leases, reservation_aggregates, update
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes
from climate.store.journal import journal
from climate.store.usage import host_hours
from workers import rounds

SIZES = (100_000, 1_000_000)
SHORT = (10_000, 100_000)
HOSTS = 50
AGE, SPREAD = timedelta(days=400), timedelta(days=5 * 365)
"""Copied leases are so old."""

ADMIN = Caller("admin", "bench-project", frozenset({"admin"}), "req-bench")
WANTED = {"resource_type": "physical:host", "min": 1, "max": 1, "hypervisor_properties": "", "resource_properties": ""}

Act = Callable[[], object]


def main(short: bool) -> None:
    log_setup.configure(level="ERROR")
    head("What gone leases cost")
    with scratch.place() as place:
        deployment = furnished(place.deployment(pool_size=2))
        engine, past = deployment.climate.engine, live(deployment.climate)
        found: list[dict[str, tuple[float, int]]] = []
        known = 0
        for size in SHORT if short else SIZES:
            with step(f"writing {size - known:,} leases"):
                seed.copy(engine, past, size - known, AGE, SPREAD)
                seed.migrations(engine, size - known)
                seed.settle(engine)
                _keep_up(engine)
            known = size
            found.append(_measured(engine, acts(deployment), 5 if short else 15))
        _show(*found)
        engine.dispose()


def _keep_up(engine: Engine) -> None:
    """Let the host hours of all leases be computed, as if rounds had run all the time."""
    with engine.begin() as conn:
        host_hours.proceed(conn, journal.last_position(conn))


def _measured(engine: Engine, every: Mapping[str, Act], times: int) -> dict[str, tuple[float, int]]:
    """Milliseconds and rows read of each act."""
    found = {}
    for name, act in every.items():
        act()  # plans are made once
        with rows_read(engine) as read:
            act()
        found[name] = (1000 * median(timed(act, times)), sum(read.values()))
    return found


def _show(few: Mapping[str, tuple[float, int]], many: Mapping[str, tuple[float, int]]) -> None:
    for name, (before, rows_before) in few.items():
        after, rows_after = many[name]
        line(name, f"{after / before:.2f}  ({before:.1f} and {after:.1f} ms; {rows_before:,} and {rows_after:,} rows)")


@contextmanager
def rows_read(engine: Engine) -> Iterator[dict[str, int]]:
    """Rows and index entries that the statements of this engine read meanwhile, by table; known after the block."""
    found: dict[str, int] = {}

    def report(_conn: object, cursor: Any, *_: object) -> None:
        cursor.connection.execute("SELECT pg_stat_force_next_flush()")

    event.listen(engine, "after_cursor_execute", report)
    try:
        before = _counters(engine)
        yield found
        after = _counters(engine)
    finally:
        event.remove(engine, "after_cursor_execute", report)
    found |= {name: count - before.get(name, 0) for name, count in after.items() if count != before.get(name, 0)}


# What an index gives is counted where it is more than what is fetched from the table: an index may answer alone.
_COUNTERS = text("""
    SELECT relname, seq_tup_read + greatest(coalesce(idx_tup_fetch, 0), coalesce(
        (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes i WHERE i.relid = t.relid), 0))
    FROM pg_stat_user_tables t
""")


def _counters(engine: Engine) -> dict[str, int]:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        conn.execute(text("SELECT pg_stat_force_next_flush()"))
        return {row[0]: int(row[1]) for row in conn.execute(_COUNTERS)}


@dataclass(frozen=True, slots=True)
class Doorkeeper:
    """Identity without tokens: everybody is the admin."""

    def authenticate(self, headers: Mapping[str, str], address: str) -> Caller:
        return ADMIN


def furnished(deployment: Deployment) -> Deployment:
    """A deployment over a cloud in memory whose hosts are registered, which takes everybody for its admin."""
    known = {
        f"node-{n}": CloudHost(f"node-{n}", "bench", 8, 32768, 200, "{}", "fake", 1, None, 0) for n in range(HOSTS)
    }
    climate = replace(deployment.climate, cloud=FakeCloud(known))
    for name in known:
        inventory.register(climate, ADMIN, name, {"gpu": "a100"})
    return replace(deployment, climate=climate, identity=Doorkeeper())  # type: ignore[arg-type]


def live(climate: Climate) -> Sequence[UUID]:
    """Leases that run and that are to come; the ids of others that are over, one of each sort."""
    over = [make(climate, "over") for _ in range(3)]
    run_due(climate)
    leases.delete(climate, ADMIN, over[0])
    update.update(climate, ADMIN, over[1], Changes(end_now=True))
    run_due(climate)
    leases.delete(climate, ADMIN, over[2])
    run_due(climate)
    cancelled = make(climate, "cancelled", days=2)
    leases.delete(climate, ADMIN, cancelled)
    for n in range(HOSTS // 2):
        make(climate, f"running-{n}")
        make(climate, f"coming-{n}", days=1 + n)
    run_due(climate)
    return [*over, cancelled]


def make(climate: Climate, name: str, days: float | None = None, host: int | None = None) -> UUID:
    """A lease of half a day, of any host or of one by its number; it begins now, or so many days from now."""
    with climate.engine.connect() as conn:
        now = climate.now(conn).replace(microsecond=0)
    wanted = WANTED if host is None else WANTED | {"resource_properties": f'["==", "$id", "{host}"]'}
    start = None if days is None else now + timedelta(days=days)
    order = LeaseRequest(name, start, (start or now) + timedelta(hours=12), None, [wanted])
    return leases.create(climate, ADMIN, order).id


def run_due(climate: Climate) -> None:
    """Claim and run all that is due."""
    while event_dispatch.claim_due(climate, "poller"):
        for message in event_dispatch.to_send(climate):
            events.run(climate, message.event_id, message.token, "worker")


def acts(deployment: Deployment) -> dict[str, Act]:
    """Every route that lists or shows, every round, and what pollers do."""
    climate = deployment.climate
    made = {f"round {one.__module__.rpartition('.')[2]}.{one.__name__}": _over(one, climate) for one in _ROUNDS}
    return _routes(create_app(deployment), climate) | _lease_life(climate) | made


_ROUNDS: Sequence[Callable[[Climate], object]] = (
    *rounds.ROUNDS,
    *rounds.OUTSIDE_ROUNDS,
    lease_servers.sweep,
    reservation_aggregates.reconcile,
    housekeeping.tidy,
    event_dispatch.to_send,
    event_dispatch.next_due,
    event_dispatch.count_sent_unstarted,
)


def _over(act: Callable[[Climate], object], climate: Climate) -> Act:
    return lambda: act(climate)


def _lease_life(climate: Climate) -> dict[str, Act]:
    def whole() -> None:
        leases.delete(climate, ADMIN, make(climate, "whole", days=40))

    def begun() -> None:
        lease_id = make(climate, "begun")
        run_due(climate)
        leases.delete(climate, ADMIN, lease_id)
        run_due(climate)

    return {"a lease that is made and deleted": whole, "a lease that is made, started and ended": begun} | {
        "claim of nothing": lambda: event_dispatch.claim_due(climate, "poller"),
        "rescue of nothing": lambda: event_dispatch.rescue(climate, "poller"),
    }


def _routes(app: Flask, climate: Climate) -> dict[str, Act]:
    with climate.engine.connect() as conn:
        ids = {
            "lease": conn.scalar(text("SELECT id FROM leases WHERE status = 'ACTIVE' ORDER BY id LIMIT 1")),
            "old": conn.scalar(text("SELECT id FROM leases WHERE gone ORDER BY id LIMIT 1")),
            "later": f"{climate.now(conn) + timedelta(minutes=1):%Y-%m-%d %H:%M}",
            "host": conn.scalar(text("SELECT min(id) FROM hosts")),
            "just_now": f"{climate.now(conn):%Y-%m-%dT%H:%M:%SZ}",
        }
    client = app.test_client()

    def get(path: str) -> Act:
        def ask() -> None:
            answer = client.get(path, headers={"X-Auth-Token": "admin", "OpenStack-API-Version": "compute 2.79"})
            if answer.status_code != 200:
                raise RuntimeError(f"{path}: {answer.status_code} {answer.get_data(as_text=True)[:300]}")

        return ask

    return {f"GET {path}": get(path.format(**ids)) for path in PATHS}


PATHS = (
    "/reservation/v1/leases?limit=20",
    "/reservation/v1/leases?limit=20&status=ACTIVE",
    "/reservation/v1/leases?limit=20&status=ERROR",
    "/reservation/v1/leases?limit=20&name=running-1",
    "/reservation/v1/leases?limit=20&name=nobody",
    "/reservation/v1/leases?limit=20&project_id=nobody",
    "/reservation/v1/leases?limit=20&ends_after=2036-01-01 00:00",
    "/reservation/v1/leases?limit=20&starts_before=2001-01-01 00:00",
    "/reservation/v1/leases/{lease}",
    "/reservation/v1/leases/{lease}?at={later}",
    "/reservation/v1/leases/{old}/history",
    "/reservation/v1/events?limit=20",
    "/reservation/v1/os-hosts",
    "/reservation/v1/os-hosts/{host}",
    "/reservation/v1/os-hosts/{host}/allocation",
    "/reservation/v1/os-hosts/{host}/history",
    "/reservation/v1/os-hosts/{host}/health",
    "/reservation/v1/os-hosts/allocations",
    "/reservation/v1/os-hosts/allocations?limit=1",
    "/reservation/v1/os-hosts/properties?detail=True",
    "/reservation/v1/pools",
    "/reservation/v1/pools/reservation",
    "/reservation/v1/pools/reservation/hosts",
    "/reservation/v1/pools/reservation/backlog",
    "/reservation/v1/limits",
    "/reservation/v1/limits/bench-project",
    "/reservation/v1/maintenances",
    "/reservation/v1/floatingips",
    "/reservation/v1/floatingips/allocations",
    "/reservation/v1/storage-pools",
    "/reservation/v1/storage-pools/allocations",
    "/reservation/v1/plugins",
    "/reservation/v1/notices",
    "/compute/v2.1/servers/detail",
    "/compute/v2.1/servers/detail?all_tenants=1",
    "/compute/v2.1/os-migrations?limit=20",
    "/compute/v2.1/os-migrations?limit=20&status=error",
    "/compute/v2.1/os-migrations?limit=20&status=nobody",
    "/compute/v2.1/os-migrations?limit=20&migration_type=evacuation",
    "/compute/v2.1/os-migrations?limit=20&migration_type=live-migration",
    "/compute/v2.1/os-migrations?limit=20&host=rare",
    "/compute/v2.1/os-migrations?limit=20&host=mostly",
    "/compute/v2.1/os-migrations?limit=20&host=nobody",
    "/compute/v2.1/os-migrations?limit=20&source_compute=rare",
    "/compute/v2.1/os-migrations?limit=20&source_compute=nobody",
    "/compute/v2.1/os-migrations?limit=20&instance_uuid={old}",
    "/compute/v2.1/os-migrations?limit=20&changes-since={just_now}",
    "/compute/v2.1/os-migrations?limit=20&changes-since=2001-01-01T00:00:00Z",
    "/compute/v2.1/os-migrations?limit=20&changes-before=2001-01-01T00:00:00Z",
    "/compute/v2.1/os-migrations?limit=20&status=confirmed&migration_type=evacuation",
    "/compute/v2.1/os-migrations?limit=20&status=error&host=mostly",
    "/compute/v2.1/os-migrations?limit=20&source_compute=often&host=seldom",
    "/compute/v2.1/os-migrations?limit=20&migration_type=migration&source_compute=rare",
    "/compute/v2.1/os-migrations?limit=20&status=confirmed&changes-before=2001-01-01T00:00:00Z",
    "/compute/v2.1/os-migrations?limit=20&host=mostly&changes-since={just_now}",
    "/compute/v2.1/os-hypervisors/detail",
    "/compute/v2.1/os-hypervisors/statistics",
    "/compute/v2.1/os-services",
    "/compute/v2.1/os-aggregates",
    "/compute/v2.1/os-availability-zone/detail",
    "/compute/v2.1/os-server-groups?all_projects=True",
    "/compute/v2.1/limits",
    "/network/v2.0/ports",
    "/image/v2/images",
    "/metrics",
)
