"""Rounds over hosts with which nothing is the matter read no row of each of them."""

from collections.abc import Callable

import pytest
from sqlalchemy import Engine, text

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.hosts.pools import Pool
from climate.service.host_operations import failures
from climate.service.hosts import reconcile
from climate.store.hosts import pool_membership
from tests.conftest import Clock
from tests.scenarios.test_statement_counts import counted
from tests.service.lease_actions import hosts_wanted, make, run_due


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
    assert not _reads_hosts(engine, lambda: failures.look(climate))
    assert not _reads_hosts(engine, lambda: reconcile.mend(climate))


@pytest.mark.usefixtures("lent")
def test_a_host_of_which_the_cloud_knows_nothing_good_is_looked_at(
    climate: Climate, cloud: FakeCloud, clock: Clock, engine: Engine
) -> None:
    name = min(cloud.pools()["freepool"])
    cloud.hosts.pop(name)
    assert _reads_hosts(engine, lambda: failures.look(climate))
    with climate.engine.connect() as conn:
        assert not pool_membership.glance(conn).is_quiet, "it is doubted"
    clock.forward(seconds=climate.settings.failed_after + 1)
    failures.look(climate)
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
        assert pool_membership.glance(conn).is_quiet
        conn.execute(text(f"UPDATE hosts SET {change} WHERE id = (SELECT min(id) FROM hosts)"))
        assert not pool_membership.glance(conn).is_quiet
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
    assert reconcile.mend(climate) == 1
    assert name in cloud.pools()[pool]
