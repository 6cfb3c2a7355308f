"""Rounds over hosts with which nothing is the matter read no row of each of them."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import Engine, text

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.hosts.pools import Pool
from climate.domain.notifications import Notice
from climate.service import kept_volumes
from climate.service.host_operations import failures, maintenance, pool_scaling
from climate.service.host_operations.maintenance import WindowRequest
from climate.service.hosts import reconcile
from climate.service.notifications import delivery
from climate.service.usage import round as usage
from climate.service.waiting_list import round as waiting_list
from climate.store.hosts import pool_membership
from climate.store.rounds.round_work import AT_REST
from climate.store.tables.hosts import hosts
from tests.conftest import ADMIN, Clock
from tests.scenarios.test_statement_counts import counted
from tests.service.lease_actions import hosts_wanted, make, run_due
from workers import rounds

QUIET = ["reconcile.correct", "failures.check"]


@pytest.fixture
def lent(climate: Climate, clock: Clock) -> None:
    """Some hosts are lent, and others are in the reservation pool."""
    make(climate, clock, hosts_wanted(2), start=0)
    run_due(climate)


def _reads_hosts(engine: Engine, act: Callable[[], object]) -> bool:
    """Whether a statement returns rows of hosts, and not one row about all of them."""
    with counted(engine) as seen:
        act()
    return any("hosts.hypervisor_hostname" in statement and "array_agg" not in statement for statement in seen)


@pytest.mark.usefixtures("lent")
def test_a_round_costs_one_row_while_nothing_is_the_matter(climate: Climate, engine: Engine) -> None:
    assert not _reads_hosts(engine, lambda: failures.check(climate))
    assert not _reads_hosts(engine, lambda: reconcile.correct(climate))


@pytest.mark.usefixtures("lent")
def test_a_host_of_which_the_cloud_knows_nothing_good_is_looked_at(
    climate: Climate, cloud: FakeCloud, clock: Clock, engine: Engine
) -> None:
    name = min(cloud.pools()["freepool"])
    cloud.hosts.pop(name)
    assert _reads_hosts(engine, lambda: failures.check(climate))
    with climate.engine.connect() as conn:
        assert not pool_membership.list_columns(conn).is_quiet, "it is doubted"
    clock.forward(seconds=climate.settings.failed_after + 1)
    failures.check(climate)
    with climate.engine.connect() as conn:
        assert [place.name for place in pool_membership.listed(conn, Pool.FAILED)] == [name]


@pytest.mark.usefixtures("lent")
@pytest.mark.parametrize(
    "change",
    [
        "switched_on = false",
        "pool = 'failed'",
        "pool = 'maintenance'",
        "doubted_since = now()",
    ],
)
def test_what_has_to_be_judged_is_not_quiet(climate: Climate, engine: Engine, change: str) -> None:
    with engine.begin() as conn:
        assert pool_membership.list_columns(conn).is_quiet
        conn.execute(text(f"UPDATE hosts SET {change} WHERE id = (SELECT min(id) FROM hosts)"))
        assert not pool_membership.list_columns(conn).is_quiet
        conn.rollback()


@pytest.mark.usefixtures("lent")
def test_a_host_that_the_cloud_has_elsewhere_is_seen_at_once(
    climate: Climate, cloud: FakeCloud, engine: Engine
) -> None:
    pool = next(pool for pool in cloud.pools() if pool != "freepool")
    name = min(cloud.pools()[pool])
    with climate.engine.begin() as conn:
        (lent,) = [place for place in pool_membership.listed(conn, Pool.LENT) if place.name == name]
    cloud.place(name, "freepool", lent.token)
    assert reconcile.correct(climate) == 1
    assert name in cloud.pools()[pool]


def _due(climate: Climate) -> list[str]:
    return [_name(one) for one in rounds.due(climate)]


def _name(one: rounds.Round) -> str:
    return f"{one.__module__.rpartition('.')[2]}.{getattr(one, '__name__', '')}"


@pytest.mark.usefixtures("lent")
def test_only_the_comparisons_with_the_cloud_run_while_nothing_is_the_matter(climate: Climate, engine: Engine) -> None:
    assert _due(climate) == QUIET
    with counted(engine) as seen:
        rounds.run_each(climate, rounds.due(climate))
    assert len(seen) <= 6, seen


@pytest.mark.usefixtures("lent")
@pytest.mark.parametrize("pool", sorted(set(Pool) - set(AT_REST)))
def test_all_rounds_over_hosts_run_while_a_host_is_on_its_way(climate: Climate, engine: Engine, pool: Pool) -> None:
    with engine.begin() as conn:
        conn.execute(hosts.update().where(hosts.c.pool == Pool.RESERVATION).values(pool=pool))
    own = (waiting_list.run_round, pool_scaling.run_round, kept_volumes.release)
    assert _due(climate) == [_name(one) for one in rounds.ROUNDS if one not in own]


@pytest.mark.usefixtures("lent")
@pytest.mark.parametrize(
    ("change", "name"),
    [
        ("UPDATE reservations SET missing = 1 WHERE status = 'active'", "healing.heal_all"),
        ("UPDATE hosts SET pool = 'multi-tenant' WHERE pool = 'lent'", "healing.heal_all"),
        ("UPDATE hosts SET removed_at = now() WHERE pool = 'lent'", "healing.heal_all"),
        ("UPDATE events SET status = 'ERROR' WHERE kind = 'end_lease'", "healing.heal_all"),
        (
            "INSERT INTO pool_terms (pool, target, updated_at) VALUES ('reservation', 3, now())",
            "pool_scaling.run_round",
        ),
        (
            "INSERT INTO pool_terms (pool, horizon, updated_at) VALUES ('reservation', 60, now())",
            "pool_scaling.run_round",
        ),
    ],
)
def test_a_round_with_work_runs(climate: Climate, engine: Engine, change: str, name: str) -> None:
    with engine.begin() as conn:
        conn.execute(text(change))
    assert name in _due(climate)


def test_a_target_of_the_settings_counts_too(climate: Climate) -> None:
    assert "pool_scaling.run_round" in _due(replace(climate, settings=replace(climate.settings, pool_target=3)))
    assert "pool_scaling.run_round" in _due(replace(climate, settings=replace(climate.settings, pool_horizon=60)))


def test_a_window_begins_and_ends_in_time(climate: Climate, cloud: FakeCloud, clock: Clock) -> None:
    name = min(cloud.pools()["freepool"])
    with climate.engine.connect() as conn:
        number = next(place.host for place in pool_membership.listed(conn) if place.name == name)
    order = WindowRequest(str(number), clock.time + timedelta(hours=1), clock.time + timedelta(hours=2), "disks")
    maintenance.plan(climate, ADMIN, order)
    assert _due(climate) == QUIET
    clock.forward(hours=1)
    assert _due(climate)[1] == "maintenance.run_round"
    rounds.run_each(climate, rounds.due(climate))
    assert name in cloud.pools()["maintenance"]
    clock.forward(hours=1)
    rounds.run_each(climate, rounds.due(climate))
    assert name in cloud.pools()["freepool"]
    assert _due(climate) == QUIET


def test_external_systems_are_asked_only_if_there_is_a_reason(climate: Climate, clock: Clock, engine: Engine) -> None:
    assert rounds.due_rounds(climate).outside, "hosts were registered, which usage has not looked at"
    usage.run_round(climate)
    clock.forward(minutes=2)
    assert not rounds.due_rounds(climate).outside
    assert rounds.due_rounds(replace(climate, settings=replace(climate.settings, evacuate_failed_hosts=True))).outside
    with engine.begin() as conn:
        delivery.notify(conn, clock.time, Notice("lease.ended", "it has ended", "p", "u"))
    assert rounds.due_rounds(climate).outside
    delivery.deliver(climate)
    assert not rounds.due_rounds(climate).outside, "nobody receives it"
    with engine.begin() as conn:
        row = "SELECT min(id), 'none', '{}', '{}', 'on', now(), now() FROM hosts"
        columns = "host, driver, settings, secrets, wanted, wanted_at, created_at"
        conn.execute(text(f"INSERT INTO host_power ({columns}) {row}"))
    assert rounds.due_rounds(climate).outside
