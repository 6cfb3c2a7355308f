"""The look of the pollers at the work for rounds: it sees each event that a round would act on, by one statement."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from climate.cloud import FREEPOOL, KEPT
from climate.context import Climate
from climate.domain.hosts.pools import Pool
from climate.plugin import CLOUD_POOLS
from climate.service.hosts import reconcile
from climate.service.leases import leases
from climate.service.leases.leases import LeaseRequest
from climate.store.hosts import pool_membership
from climate.store.rounds import round_work
from tests.api.compute.api_clients import World, world
from tests.conftest import MEMBER
from tests.scenarios.test_statement_counts import counted
from tests.service.lease_actions import hosts_wanted, run_due
from workers import rounds

OTHER_POOL = "(SELECT pool FROM compute_nodes WHERE name = 'gpu-2')"
HOST = "(SELECT min(id) FROM hosts)"

EVENTS = {
    "the service of a host falls silent": "UPDATE compute_services SET beat_at = beat_at - interval '1 hour'",
    "a service is disabled": "UPDATE compute_services SET enabled = false",
    "a service is forced down": "UPDATE compute_services SET forced_down = true",
    "a node is not reported": "UPDATE compute_nodes SET present = false WHERE name = 'gpu-1'",
    "a node is put into maintenance": "UPDATE compute_nodes SET maintenance = 'disks' WHERE name = 'gpu-1'",
    "the cloud does not know a host": "UPDATE compute_nodes SET name = 'other' WHERE name = 'gpu-1'",
    "a node is taken out of its pool": "UPDATE compute_nodes SET pool = NULL WHERE name = 'gpu-1'",
    "a node is put into another pool": f"UPDATE compute_nodes SET pool = {OTHER_POOL} WHERE name = 'gpu-1'",
    "a node is added from outside": "UPDATE compute_nodes SET outside = true WHERE name = 'gpu-1'",
    "a node that is no host is put into the pool": "UPDATE compute_nodes SET pool = 'freepool' WHERE name = 'std-1'",
    "a pool becomes an aggregate": "UPDATE compute_aggregates SET kind = 'aggregate' WHERE name = 'freepool'",
    "a host is switched off": f"UPDATE hosts SET switched_on = false WHERE id = {HOST}",
    "a host is doubted": f"UPDATE hosts SET doubted_since = now() WHERE id = {HOST}",
    "a difference is noted": f"UPDATE hosts SET drift = 'has servers' WHERE id = {HOST}",
    "a host is removed": f"UPDATE hosts SET removed_at = now() WHERE id = {HOST}",
    "a host is ordinary": f"UPDATE hosts SET pool = 'multi-tenant' WHERE id = {HOST}",
    "a host is recycled": f"UPDATE hosts SET pool = 'recycling' WHERE id = {HOST}",
    "a host has failed": f"UPDATE hosts SET pool = 'failed' WHERE id = {HOST}",
    "a host has a power supply": (
        "INSERT INTO host_power (host, driver, settings, secrets, wanted, wanted_at, created_at)"
        f" VALUES ({HOST}, 'none', '{{}}', '{{}}', 'on', now(), now())"
    ),
    "the worker of a cleaning is lost": (
        "INSERT INTO cleanings (host, ends_at, state, attempts, next_at)"
        f" VALUES ({HOST}, now(), 'running', 1, now() - interval '1 second')"
    ),
    "a maintenance begins": (
        "INSERT INTO maintenance_windows (id, host, during, reason, state, created_by, created_at)"
        f" VALUES (gen_random_uuid(), {HOST}, tstzrange(now() - interval '1 second', now() + interval '1 hour'),"
        " 'disks', 'planned', 'admin', now())"
    ),
    "a maintenance is over": (
        "INSERT INTO maintenance_windows (id, host, during, reason, state, created_by, created_at)"
        f" VALUES (gen_random_uuid(), {HOST}, tstzrange(now() - interval '1 hour', now() - interval '1 second'),"
        " 'disks', 'active', 'admin', now())"
    ),
    "a lease is degraded": "UPDATE reservations SET missing = 1",
    "the end of a lease fails": "UPDATE events SET status = 'ERROR' WHERE kind = 'end_lease'",
    "the pool gets a target": "INSERT INTO pool_terms (pool, target, updated_at) VALUES ('reservation', 3, now())",
    "the pool gets a horizon": "INSERT INTO pool_terms (pool, horizon, updated_at) VALUES ('reservation', 60, now())",
}
"""What may happen, from this process or another -> how it shows in the database."""

NO_WORK = {
    "an ordinary node is absent": "UPDATE compute_nodes SET present = false WHERE name = 'std-1'",
    "an ordinary node is put into maintenance": "UPDATE compute_nodes SET maintenance = 'x' WHERE name = 'std-1'",
    "a cleaning goes on": (
        "INSERT INTO cleanings (host, ends_at, state, attempts, next_at)"
        f" VALUES ({HOST}, now(), 'running', 1, now() + interval '1 minute')"
    ),
    "a maintenance is planned": (
        "INSERT INTO maintenance_windows (id, host, during, reason, state, created_by, created_at)"
        f" VALUES (gen_random_uuid(), {HOST}, tstzrange(now() + interval '1 minute', now() + interval '1 hour'),"
        " 'disks', 'planned', 'admin', now())"
    ),
}


@pytest.fixture
def there(cloud_database: str, tmp_path: Path) -> Iterator[World]:
    """One host is lent, another one free, and a third node is no host."""
    with world(cloud_database, tmp_path) as found:
        end = datetime.now(UTC) + timedelta(hours=1)
        leases.create(found.climate, MEMBER, LeaseRequest("l", None, end, None, [hosts_wanted()]))
        run_due(found.climate)
        rounds.run_each(found.climate)
        yield found


def _after(climate: Climate, change: str) -> bool:
    """Whether there is work after a change, which is taken back."""
    with climate.engine.connect() as conn:
        conn.execute(text(change))
        cloud = climate.cloud.host_query(conn)
        assert cloud is not None
        found = round_work.due(conn, None, cloud, CLOUD_POOLS)
        conn.rollback()
    return found.hosts


def test_each_event_is_work_and_a_quiet_deployment_has_none(there: World) -> None:
    climate = there.climate
    assert not rounds.due_rounds(climate).hosts
    assert {what for what, change in EVENTS.items() if not _after(climate, change)} == set()
    assert {what for what, change in NO_WORK.items() if _after(climate, change)} == set()


def test_the_look_is_one_statement_and_reads_no_row_of_each_host(there: World) -> None:
    with counted(there.climate.engine) as seen:
        rounds.due_rounds(there.climate)
    assert len(seen) == 1, seen


def test_the_engine_uses_all_kept_pools(there: World) -> None:
    """A pool of which the look knows nothing would hide the hosts in it."""
    assert {name for name in CLOUD_POOLS.values() if name} == KEPT
    assert set(Pool) - set(CLOUD_POOLS) == {Pool.LENT}
    assert there.climate.cloud.pools().keys() - KEPT, "a host is lent"


CHANGES = (
    "UPDATE hosts SET pool = '{pool}' WHERE id = {host} AND pool_reservation IS NOT NULL",
    "UPDATE hosts SET pool = 'reservation' WHERE id = {host}",
    "UPDATE hosts SET pool = 'multi-tenant' WHERE id = {host}",
    "UPDATE hosts SET pool_reservation = gen_random_uuid() WHERE id = {host}",
    "UPDATE hosts SET removed_at = now() WHERE id = {host}",
    "UPDATE hosts SET hypervisor_hostname = 'std-1' WHERE id = {host}",
    "UPDATE compute_nodes SET pool = '{pool}' WHERE name = '{name}'",
    "UPDATE compute_nodes SET pool = NULL WHERE name = '{name}'",
    "UPDATE compute_nodes SET outside = NOT outside WHERE name = '{name}'",
    "UPDATE compute_nodes SET present = NOT present WHERE name = '{name}'",
    "UPDATE compute_nodes SET maintenance = 'm' WHERE name = '{name}'",
    "UPDATE compute_services SET enabled = NOT enabled",
    "UPDATE compute_services SET beat_at = now() - interval '1 hour'",
    "UPDATE compute_services SET beat_at = now()",
)


def test_no_difference_between_engine_and_cloud_is_overlooked(there: World) -> None:
    """The round compares all hosts one by one; its verdict is that of the look, after any changes."""
    climate, chance, verdicts = there.climate, random.Random(7), set()
    with climate.engine.begin() as conn:
        for table in ("hosts", "compute_nodes", "compute_services"):
            conn.execute(text(f"CREATE TABLE saved_{table} AS TABLE {table}"))
        for name in KEPT:
            conn.execute(text("INSERT INTO compute_aggregates (name) VALUES (:n) ON CONFLICT DO NOTHING"), {"n": name})
    for _ in range(150):
        _restore(climate)
        with climate.engine.begin() as conn:
            for change in chance.choices(CHANGES, k=chance.randint(0, 3)):
                pool, name = chance.choice(sorted(KEPT)), chance.choice(["gpu-1", "gpu-2", "std-1"])
                host = f"(SELECT {chance.choice(['min', 'max'])}(id) FROM hosts)"
                in_engine = {cloud: own for own, cloud in CLOUD_POOLS.items()}[pool] if "hosts SET" in change else pool
                with conn.begin_nested() as step:
                    try:
                        conn.execute(text(change.format(pool=in_engine, name=name, host=host)))
                    except Exception:  # two hosts of one name
                        step.rollback()
        differs = _differs(climate)
        if differs:
            assert rounds.due_rounds(climate).hosts
        elif _all_at_rest(climate):
            assert not rounds.due_rounds(climate).hosts
        verdicts.add(differs)
    assert verdicts == {True, False}


def _restore(climate: Climate) -> None:
    columns = {
        "hosts": ("pool", "pool_reservation", "removed_at", "hypervisor_hostname"),
        "compute_nodes": ("pool", "outside", "present", "maintenance"),
        "compute_services": ("enabled",),
    }
    with climate.engine.begin() as conn:
        for table, names in columns.items():
            new = ", ".join(f"{name} = s.{name}" for name in names)
            conn.execute(text(f"UPDATE {table} t SET {new} FROM saved_{table} s WHERE s.id = t.id"))
        conn.execute(text("UPDATE compute_services SET beat_at = now()"))


def _differs(climate: Climate) -> bool:
    seen: dict[str, set[str]] = {}
    for pool, names in climate.cloud.pools().items():
        for name in names:
            seen.setdefault(name, set()).add(pool)
    health = climate.cloud.health()
    with climate.engine.connect() as conn:
        places = pool_membership.listed(conn)
    for place in places:
        wanted, pools = reconcile.aggregate_of(place), seen.get(place.name, set())
        is_there = pools & KEPT == {FREEPOOL} if wanted == FREEPOOL else pools == ({wanted} if wanted else set())
        if not is_there or health.get(place.name, "unknown") is not None:
            return True
    return bool({name for name, pools in seen.items() if pools & KEPT} - {place.name for place in places})


def _all_at_rest(climate: Climate) -> bool:
    """Whether no host is on its way, and no lease holds a host that it cannot use."""
    with climate.engine.connect() as conn:
        return not round_work.read(conn, None).hosts


def test_rounds_change_nothing_when_the_look_finds_no_work(there: World) -> None:
    climate = there.climate

    def state() -> list[str]:
        with climate.engine.connect() as conn:
            tables = ("hosts", "journal", "notices", "reservations", "allocations", "events")
            return [str(row) for table in tables for row in conn.execute(text(f"SELECT t::text FROM {table} t"))]

    for what in (None, "an ordinary node is absent", "an ordinary node is put into maintenance"):
        with climate.engine.begin() as conn:
            conn.execute(text(NO_WORK[what] if what else "SELECT"))
        assert not rounds.due_rounds(climate).hosts
        before = state()
        rounds.run_each(climate)
        assert state() == before, what
