"""The pools as admins see them."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import Engine

from climate.cloud import CloudError
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import Conflict, Forbidden, InvalidInput, InvalidPeriod, NotFound
from climate.domain.facts import HostOpened
from climate.domain.hosts.pools import Pool
from climate.service.host_operations import pools
from climate.service.host_operations.pools import Page
from climate.service.hosts import reservable
from climate.store.hosts.pool_settings import PoolSettings
from climate.store.hosts.pools import Count
from tests.conftest import ADMIN, MEMBER, Clock
from tests.scenarios.test_statement_counts import cost
from tests.service.hosts.test_reconcile import put
from tests.service.lease_actions import get, held, hosts_wanted, make, run_due


def counts(climate: Climate) -> dict[Pool, Count]:
    return {one.pool: one.count for one in pools.listed(climate, ADMIN) if one.count.hosts}


def test_every_pool_is_listed_with_what_is_promised_of_it(climate: Climate, clock: Clock) -> None:
    assert [one.pool for one in pools.listed(climate, ADMIN)] == list(Pool)
    assert counts(climate) == {Pool.RESERVATION: Count(8, 8, 0, 0, 0)}
    make(climate, clock, hosts_wanted(2), start=0)
    make(climate, clock, hosts_wanted(1), start=1)
    make(climate, clock, hosts_wanted(3), start=30)
    assert counts(climate)[Pool.RESERVATION] == Count(8, 8, 2, 3, 0)
    run_due(climate)
    put(climate, min({place.place.host for place in pools.hosts_of(climate, ADMIN, Pool.RESERVATION)}), Pool.FAILED)
    found = counts(climate)
    assert (found[Pool.LENT].hosts, found[Pool.LENT].promised_now, found[Pool.FAILED].hosts) == (2, 2, 1)
    assert sum(count.hosts for count in found.values()) == 8


def test_terms_are_the_settings_until_an_admin_sets_them(climate: Climate, clock: Clock) -> None:
    settings = replace(climate.settings, pool_target=3, host_on_end="release", max_grace_period=100)
    climate = replace(climate, settings=settings)
    assert pools.get(climate, ADMIN, Pool.RESERVATION).terms == PoolSettings("release", 0, "terminate", 3)
    changed = pools.change(climate, ADMIN, Pool.RESERVATION, {"target": 0, "on_end": "recycle", "grace_period": 100})
    assert (changed.terms, changed.own) == (
        PoolSettings("recycle", 100, "terminate", 0),
        {"target", "on_end", "grace_period"},
    )
    pools.change(climate, ADMIN, Pool.RESERVATION, {"target": 9}, dry_run=True)
    assert pools.change(climate, ADMIN, Pool.RESERVATION, {"on_end": None}).terms == PoolSettings(
        "release", 100, "terminate", 0
    )
    for wrong in (
        {"target": -1},
        {"grace_period": 101},
        {"on_end": "burn"},
        {"recycle_deadline": "wait"},
        {"x": 1},
        {},
    ):
        with pytest.raises(InvalidInput):
            pools.change(climate, ADMIN, Pool.RESERVATION, wrong)
    with pytest.raises(InvalidInput, match="Only the pool reservation"):
        pools.change(climate, ADMIN, Pool.LENT, {"target": 1})
    assert pools.get(climate, ADMIN, Pool.RESERVATION).terms == PoolSettings("release", 100, "terminate", 0)
    assert pools.get(climate, ADMIN, Pool.LENT).terms is None


def test_a_host_is_shown_with_its_lease_its_next_one_and_its_servers(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    first = make(climate, clock, hosts_wanted(8), start=0, hours=1)
    second = make(climate, clock, hosts_wanted(8), start=3, hours=1)
    make(climate, clock, hosts_wanted(8), start=5, hours=1)
    run_due(climate)
    server = cloud.boot("project", "h1")
    found = pools.hosts_of(climate, ADMIN, Pool.LENT, servers=True)
    assert [one.place.name for one in found] == [f"h{n}" for n in range(1, 9)]
    for one in found:
        assert one.lease == (first.id, "project")
        assert one.next is not None
        assert (one.next.lease_id, one.next.during.start) == (second.id, second.period.start)
    assert [[server.id for server in one.servers or ()] for one in found] == [[server], *[[]] * 7]
    assert [one.place.host for one in pools.hosts_of(climate, ADMIN, Pool.LENT, Page(3, 2))] == [4, 5]
    assert pools.hosts_of(climate, ADMIN, Pool.RESERVATION) == []


def test_a_recycling_host_says_what_it_waits_for(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = make(climate, clock, start=0)
    run_due(climate)
    number = min(held(lease))
    server = cloud.boot("project", f"h{number}")
    put(climate, number, Pool.RECYCLING, lease.reservations[0].id)
    (one,) = pools.hosts_of(climate, ADMIN, Pool.RECYCLING)
    assert [found.id for found in one.servers or ()] == [server]
    assert one.lease == (lease.id, "project")
    cloud.failures = {"servers_on": CloudError("away")}
    assert pools.hosts_of(climate, ADMIN, Pool.RECYCLING)[0].servers is None


def test_the_backlog_tells_which_hosts_are_promised_when(climate: Climate, clock: Clock) -> None:
    one = make(climate, clock, hosts_wanted(8), start=1, hours=2)
    make(climate, clock, hosts_wanted(8), start=24 * 30, hours=2)
    period, plans = pools.backlog(climate, ADMIN, Pool.RESERVATION)
    assert (period.start, period.end) == (clock.time, clock.time + timedelta(days=7))
    assert [plan.place.host for plan in plans] == list(range(1, 9))
    assert all([p.lease_id for p in plan.promises] == [one.id] for plan in plans)
    later = (one.period.end, one.period.end + timedelta(hours=1))
    assert all(not plan.promises for plan in pools.backlog(climate, ADMIN, Pool.RESERVATION, later)[1])
    assert [plan.place.host for plan in pools.backlog(climate, ADMIN, Pool.RESERVATION, page=Page(6))[1]] == [7, 8]
    for between in ((clock.time, clock.time), (None, clock.time), (clock.time, clock.time + timedelta(days=9999))):
        with pytest.raises(InvalidPeriod):
            pools.backlog(climate, ADMIN, Pool.RESERVATION, between)


def test_only_admins_see_pools(climate: Climate) -> None:
    for verb in (
        lambda: pools.listed(climate, MEMBER),
        lambda: pools.hosts_of(climate, MEMBER, Pool.LENT),
        lambda: pools.backlog(climate, MEMBER, Pool.LENT),
        lambda: pools.change(climate, MEMBER, Pool.RESERVATION, {"target": 1}),
        lambda: reservable.open_to_promises(climate, MEMBER, "1", False),
        lambda: reservable.history(climate, MEMBER, "1"),
    ):
        with pytest.raises(Forbidden):
            verb()


def test_statements_do_not_grow_with_hosts_and_leases(climate: Climate, clock: Clock, engine: Engine) -> None:
    verbs = (
        lambda: pools.listed(climate, ADMIN),
        lambda: pools.hosts_of(climate, ADMIN, Pool.RESERVATION),
        lambda: pools.backlog(climate, ADMIN, Pool.RESERVATION),
    )
    for number in range(2, 9):
        put(climate, number, Pool.MULTI_TENANT)
    few = [cost(engine, verb) for verb in verbs]
    for number in range(2, 9):
        put(climate, number, Pool.RESERVATION)
    for place in range(5):
        make(climate, clock, hosts_wanted(8), start=1 + 3 * place)
    assert [cost(engine, verb) for verb in verbs] == few
    assert max(few) <= 5


def test_a_closed_host_keeps_its_promises_and_gets_no_new_ones(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(8), start=1)
    for _ in range(2):
        assert not reservable.open_to_promises(climate, ADMIN, "3", False, "noisy fan").reservable
    assert held(get(climate, lease)) == set(range(1, 9))
    with pytest.raises(Conflict):
        make(climate, clock, hosts_wanted(8), start=5)
    assert 3 not in held(make(climate, clock, hosts_wanted(7), start=5))
    reservable.open_to_promises(climate, ADMIN, "3", True, dry_run=True)
    assert reservable.open_to_promises(climate, ADMIN, "3", True).reservable
    told = [entry.fact for entry in reservable.history(climate, ADMIN, "3") if isinstance(entry.fact, HostOpened)]
    assert [(fact.reservable, fact.reason) for fact in told] == [(False, "noisy fan"), (True, "")]
    for unknown in ("99", "x"):
        with pytest.raises(NotFound):
            reservable.history(climate, ADMIN, unknown)
    with pytest.raises(InvalidInput):
        reservable.open_to_promises(climate, ADMIN, "3", False, "x" * 256)
