"""The reservation pool is filled and emptied by its backlog, in both directions, and says why."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine

from climate.cloud import FREEPOOL, CloudError
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import Forbidden, NotFound
from climate.domain.hosts.pool_scaling import Level
from climate.domain.hosts.pools import Pool
from climate.service.host_operations import draining, maintenance, pool_scaling, pools
from climate.service.host_operations.pool_scaling import explain, run_round
from climate.service.hosts import reconcile, reservable
from climate.service.journal import consistency_check
from climate.service.leases import leases
from climate.service.subleases import round as subleases
from climate.store.hosts import pool_membership
from tests.conftest import ADMIN, MEMBER, Clock
from tests.scenarios.test_statement_counts import cost
from tests.service.hosts.test_reconcile import place, put
from tests.service.lease_actions import held, hosts_wanted, make, run_due
from tests.service.subleases.steps import give, parent

HOUR = 3600
RULES = {"horizon": 48 * HOUR, "spare": 1, "margin": 0, "slack": 1, "dwell": HOUR}


def rule(climate: Climate, **changes: Any) -> None:
    pools.change(climate, ADMIN, Pool.RESERVATION, {**RULES, **changes})


def where(climate: Climate) -> Counter[str]:
    with climate.engine.connect() as conn:
        return Counter(str(one.pool) for one in pool_membership.listed(conn))


def sound(climate: Climate) -> bool:
    """Books, rows and cloud agree."""
    return (reconcile.correct(climate), consistency_check.differences(climate)) == (0, [])


def why(climate: Climate, number: int) -> str:
    return place(climate, number).reason


def test_idle_hosts_are_released_and_come_back_when_they_are_promised(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    make(climate, clock, hosts_wanted(3), start=24)
    rule(climate)
    assert run_round(climate) == 0, "they have not been idle for long"
    clock.forward(hours=2)
    assert [run_round(climate), run_round(climate)] == [3, 0]
    assert (where(climate), len(cloud.pools()[FREEPOOL])) == ({"reservation": 5, "multi-tenant": 3}, 5)
    assert sound(climate)
    make(climate, clock, hosts_wanted(2), start=22)
    assert [run_round(climate), run_round(climate)] == [1, 0]
    assert (where(climate), sound(climate)) == ({"reservation": 6, "multi-tenant": 2}, True)
    told = {why(climate, number) for number in range(1, 9)} - {""}
    assert told == {
        "5 hosts are enough: 3 are promised at once, 1 spare, 1 slack",
        "6 hosts are wanted: 5 are promised at once, 1 spare",
    }


def test_promises_beyond_the_horizon_do_not_count_but_bind_their_hosts(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(6), start=72)
    rule(climate)
    clock.forward(hours=2)
    assert run_round(climate) == 2
    found = explain(climate, ADMIN, Pool.RESERVATION)
    assert (found.plan.promised, found.plan.wanted, found.plan.most) == (0, 1, 2)
    assert {(one.host, one.reason) for one in found.plan.kept} == {(one, "promised to a lease") for one in held(lease)}
    clock.forward(hours=30)
    assert explain(climate, ADMIN, Pool.RESERVATION).plan.promised == 6
    assert (run_round(climate), where(climate)) == (1, {"reservation": 7, "multi-tenant": 1})


def test_the_peak_is_that_of_hosts_at_one_moment(climate: Climate, clock: Clock) -> None:
    for start, count in ((1, 3), (3, 4), (4, 1)):
        make(climate, clock, hosts_wanted(count), start=start, hours=2)
    only = '["==", "$hypervisor_hostname", "h1"]'
    room = {"resource_type": "virtual:instance", "amount": 2, "vcpus": 1, "memory_mb": 512, "disk_gb": 1}
    for _ in range(2):  # both on one host
        make(climate, clock, {**room, "affinity": True, "resource_properties": only}, start=10, hours=1)
    rule(climate)
    found = explain(climate, ADMIN, Pool.RESERVATION)
    hours = [(round((level.at - clock.time) / timedelta(hours=1)), level.hosts) for level in found.there.backlog]
    assert hours == [(1, 3), (3, 4), (4, 5), (5, 1), (6, 0), (10, 1), (11, 0)]
    assert found.there.peak == Level(clock.time + timedelta(hours=4), 5)


def test_hosts_that_are_allocated_or_cleaned_belong_to_the_pool_and_failed_ones_do_not(
    climate: Climate, clock: Clock
) -> None:
    make(climate, clock, hosts_wanted(3), start=0, hours=4)
    run_due(climate)
    rule(climate)
    found = explain(climate, ADMIN, Pool.RESERVATION)
    assert (found.there.size, found.plan.promised, len(found.there.members)) == (8, 3, 5)
    put(climate, next(one.host for one in found.there.members), Pool.FAILED)
    reservable.open_to_promises(climate, ADMIN, str(found.there.members[-1].host), False)
    assert explain(climate, ADMIN, Pool.RESERVATION).there.size == 6


def test_busy_hosts_are_drained_where_too_few_are_empty_and_opened_when_nobody_wants_them(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    for number in (1, 2, 3):
        put(climate, number, Pool.MULTI_TENANT)
    reconcile.correct(climate)
    servers = {name: [cloud.boot("p", name) for _ in range(count)] for name, count in (("h1", 2), ("h2", 1))}
    lease = make(climate, clock, hosts_wanted(5), start=24)
    rule(climate, spare=2, slack=0)
    assert [run_round(climate), run_round(climate)] == [2, 0]
    assert [place(climate, number).pool for number in (1, 2, 3)] == [
        Pool.MULTI_TENANT,
        Pool.DRAINING,
        Pool.RESERVATION,
    ]
    cloud.delete_server(servers["h2"][0], 1)
    assert (draining.run_round(climate), place(climate, 2).pool) == (1, Pool.RESERVATION)
    rule(climate, spare=3, slack=0)
    assert (run_round(climate), place(climate, 1).pool) == (1, Pool.DRAINING)
    leases.delete(climate, MEMBER, lease.id)
    assert (run_round(climate), place(climate, 1).pool) == (1, Pool.MULTI_TENANT)
    assert all(cloud.server(one) for one in servers["h1"])
    assert sound(climate)


def test_without_leave_to_drain_busy_hosts_stay_open(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    put(climate, 1, Pool.MULTI_TENANT)
    reconcile.correct(climate)
    cloud.boot("p", "h1")
    rule(climate, spare=8, drain=False)
    assert (run_round(climate), explain(climate, ADMIN, Pool.RESERVATION).plan.lacking) == (0, 1)
    cloud.failures = {"ordinary_hosts": CloudError("away")}
    rule(climate, spare=8, drain=True)
    assert run_round(climate) == 0, "nobody knows how many servers it has"


def test_closed_maintained_and_promised_hosts_are_not_released(climate: Climate, clock: Clock) -> None:
    reservable.open_to_promises(climate, ADMIN, "1", False)
    maintenance.plan(climate, ADMIN, maintenance.WindowRequest("2", None, None, "fans"))
    rule(climate, spare=0, slack=0)
    clock.forward(hours=2)
    maintenance.run_round(climate)
    assert run_round(climate) == 6
    assert where(climate)["multi-tenant"] == 6
    assert [place(climate, number).pool for number in (1, 2)] == [Pool.RESERVATION, Pool.MAINTENANCE]


def test_who_books_a_host_meanwhile_keeps_it(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    """The lease is made between the plan and the moves."""
    rule(climate, spare=0, slack=0)
    clock.forward(hours=2)
    before = pool_scaling.plan_moves(climate)
    lease = make(climate, clock, hosts_wanted(5), start=24)
    with climate.engine.begin() as conn:
        moved = pool_scaling.apply(conn, climate, before)
    assert {one.host for one in moved} == set(range(1, 9)) - held(lease)
    assert [one.host for one in before.plan.moves] == list(range(1, 9))


def test_the_target_is_the_least_and_without_a_horizon_the_only_rule(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    rule(climate, target=6)
    clock.forward(hours=2)
    assert (run_round(climate), where(climate)["reservation"]) == (1, 7)
    pools.change(climate, ADMIN, Pool.RESERVATION, {"horizon": 0, "target": 8})
    assert (run_round(climate), where(climate)["reservation"]) == (1, 8)
    pools.change(climate, ADMIN, Pool.RESERVATION, {"target": 2})
    clock.forward(hours=2)
    assert run_round(climate) == 0, "a fixed target releases nobody"


def test_a_cloud_that_does_not_follow_is_followed_up(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    rule(climate)
    clock.forward(hours=2)
    cloud.failures = {"place": CloudError("away")}
    assert run_round(climate) == 6
    cloud.failures = {}
    assert reconcile.correct(climate) == 6
    assert sound(climate)


def test_settings_hold_where_nobody_has_said_otherwise(climate: Climate, clock: Clock) -> None:
    settings = replace(climate.settings, pool_horizon=HOUR, pool_spare=5, pool_slack=0, pool_dwell=0)
    assert run_round(replace(climate, settings=settings)) == 3


def test_only_admins_see_the_plan_and_only_one_pool_has_one(climate: Climate) -> None:
    with pytest.raises(Forbidden):
        explain(climate, MEMBER, Pool.RESERVATION)
    with pytest.raises(NotFound, match="has no plan"):
        explain(climate, ADMIN, Pool.LENT)


def test_statements_do_not_grow_with_hosts_and_leases(climate: Climate, clock: Clock, engine: Engine) -> None:
    rule(climate)
    clock.forward(hours=2)
    one = cost(engine, lambda: explain(climate, ADMIN, Pool.RESERVATION))
    few = cost(engine, lambda: run_round(climate))
    for start in (1, 3, 5):
        make(climate, clock, hosts_wanted(1), start=start, hours=1)
    assert cost(engine, lambda: explain(climate, ADMIN, Pool.RESERVATION)) == one
    assert cost(engine, lambda: run_round(climate)) <= few + 3


def test_hosts_that_a_sub_lease_returns_to_its_parent_stay(climate: Climate, clock: Clock) -> None:
    long = parent(climate, clock, hosts_wanted(6), start=72)
    lease = give(climate, clock, long, start=72, hosts=6)
    rule(climate)
    clock.forward(hours=2)
    leases.delete(climate, MEMBER, lease.id)
    assert run_round(climate) == 2
    assert subleases.run_round(climate) == 1
    assert held(leases.get(climate, ADMIN, long.id)) == held(lease)
    assert {place(climate, number).pool for number in held(lease)} == {Pool.RESERVATION}
    assert sound(climate)
