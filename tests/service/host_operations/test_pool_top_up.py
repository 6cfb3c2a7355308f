"""The reservation pool is filled up to its target."""

import pytest
from sqlalchemy import Engine

from climate.cloud import FREEPOOL, CloudError
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.hosts.pools import Pool
from climate.service.host_operations import pool_moves, pools
from climate.service.host_operations.pool_top_up import top_up
from climate.service.hosts import reconcile, reservable
from climate.service.hosts.move_checks import RequestedMove
from climate.service.journal import consistency_check
from tests.conftest import ADMIN, Clock
from tests.scenarios.test_statement_counts import cost
from tests.service.hosts.test_reconcile import place, put
from tests.service.lease_actions import hosts_wanted, make, run_due


@pytest.fixture
def released(climate: Climate, cloud: FakeCloud) -> FakeCloud:
    """h1..h4 are in the multi-tenant pool, h1 with a server."""
    for number in range(1, 5):
        put(climate, number, Pool.MULTI_TENANT)
    reconcile.correct(climate)
    cloud.boot("p", "h1")
    return cloud


def target(climate: Climate, hosts: int) -> None:
    pools.change(climate, ADMIN, Pool.RESERVATION, {"target": hosts})


def kept(climate: Climate) -> set[int]:
    return {one.place.host for one in pools.hosts_of(climate, ADMIN, Pool.RESERVATION)}


def test_empty_hosts_are_taken_up_to_the_target(climate: Climate, released: FakeCloud) -> None:
    assert top_up(climate) == 0, "no target is set"
    target(climate, 6)
    assert [top_up(climate), top_up(climate)] == [2, 0]
    assert len(kept(climate)) == 6
    assert released.pools()[FREEPOOL] == {f"h{number}" for number in kept(climate)}
    taken = place(climate, min(kept(climate)))
    assert (taken.home, taken.reason) == (Pool.RESERVATION, "topped up to 6 hosts")


def test_a_host_with_servers_is_left_where_it_is(climate: Climate, released: FakeCloud) -> None:
    target(climate, 8)
    assert [top_up(climate), top_up(climate)] == [3, 0]
    assert kept(climate) == set(range(2, 9))
    assert (place(climate, 1).pool, reconcile.correct(climate), consistency_check.differences(climate)) == (
        Pool.MULTI_TENANT,
        0,
        [],
    )


def test_allocated_hosts_count_and_failed_ones_do_not(climate: Climate, clock: Clock, released: FakeCloud) -> None:
    make(climate, clock, hosts_wanted(3), start=0)
    run_due(climate)
    target(climate, 4)
    assert top_up(climate) == 0
    put(climate, min(kept(climate)), Pool.FAILED)
    assert top_up(climate) == 1


def test_a_host_that_is_closed_to_promises_is_not_taken(climate: Climate, released: FakeCloud) -> None:
    for number in ("2", "3"):
        reservable.open_to_promises(climate, ADMIN, number, False)
    target(climate, 8)
    assert top_up(climate) == 1
    assert kept(climate) == {4, 5, 6, 7, 8}


def test_a_cloud_that_is_away_or_answers_in_vain_leaves_the_books_alone(climate: Climate, released: FakeCloud) -> None:
    target(climate, 8)
    released.failures = {"place": CloudError("away")}
    assert top_up(climate) == 0
    released.failures, released.unheard = {}, {"place": 1}
    assert top_up(climate) == 2, "one answer was lost"
    assert reconcile.correct(climate) == 1
    assert (reconcile.correct(climate), top_up(climate), len(kept(climate))) == (0, 1, 7)


def test_whoever_moves_the_host_meanwhile_wins(climate: Climate, released: FakeCloud) -> None:
    moved: list[str] = []

    def rival(verb: str) -> None:
        if verb == "place" and not moved:
            moved.append(verb)
            for number in (2, 3, 4):
                put(climate, number, Pool.FAILED)

    target(climate, 8)
    released.watch = rival
    assert top_up(climate) == 0
    reconcile.correct(climate)
    assert {place(climate, number).pool for number in (2, 3, 4)} == {Pool.FAILED}
    assert released.pools()["failed"] == {"h2", "h3", "h4"}


def test_statements_do_not_grow_with_the_hosts(climate: Climate, engine: Engine, released: FakeCloud) -> None:
    target(climate, 5)
    one = cost(engine, lambda: top_up(climate))
    target(climate, 7)
    assert cost(engine, lambda: top_up(climate)) == one


def test_what_an_admin_takes_out_is_replaced(climate: Climate, released: FakeCloud) -> None:
    target(climate, 4)
    reservable.open_to_promises(climate, ADMIN, "5", False)
    pool_moves.move(climate, ADMIN, RequestedMove(["5"], Pool.MULTI_TENANT))
    assert top_up(climate) == 1
    assert 5 not in kept(climate)
