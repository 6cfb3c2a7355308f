"""The multi-tenant pool is every host that ordinary boots use; a busy one is drained before it is kept for leases."""

from dataclasses import replace

import pytest
from sqlalchemy import Engine

from climate.cloud import FREEPOOL, CloudError, Refused
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import Conflict
from climate.domain.hosts.pools import Pool
from climate.service.host_operations import draining, failures, pool_moves, pools
from climate.service.host_operations.pool_top_up import top_up
from climate.service.hosts import inventory, reconcile
from climate.service.hosts import unregistered_hosts as ordinary
from climate.service.hosts.inventory import RegistrationOptions
from climate.service.hosts.move_checks import RequestedMove
from climate.service.journal import consistency_check
from tests.conftest import ADMIN, Clock, cloud_host
from tests.scenarios.test_statement_counts import cost
from tests.service.hosts.test_reconcile import place, put
from tests.service.lease_actions import hosts_wanted, make

DRAIN = RegistrationOptions(drain=True)


@pytest.fixture
def ordinary_host(climate: Climate, cloud: FakeCloud) -> str:
    """n1, which nobody registered, with a server of somebody's."""
    cloud.set_hosts([*cloud.hosts.values(), cloud_host("n1")])
    return cloud.boot("p", "n1")


def empty(cloud: FakeCloud, server_id: str) -> None:
    cloud.delete_server(server_id, 1)


def multi_tenant(climate: Climate) -> tuple[int, int | None]:
    """How many hosts are in the pool, and how many of them nobody registered."""
    one = pools.get(climate, ADMIN, Pool.MULTI_TENANT)
    return one.hosts, one.unregistered


def test_hosts_that_nobody_registered_count_as_long_as_ordinary_boots_use_them(
    climate: Climate, cloud: FakeCloud, ordinary_host: str
) -> None:
    assert multi_tenant(climate) == (1, 1)
    put(climate, 1, Pool.MULTI_TENANT)
    reconcile.correct(climate)
    assert multi_tenant(climate) == (2, 1)
    assert pools.listed(climate, ADMIN)[0] == pools.get(climate, ADMIN, Pool.MULTI_TENANT)
    cloud.place("n1", "maintenance", 1)
    assert multi_tenant(climate) == (1, 0)
    cloud.failures = {"ordinary_hosts": CloudError("away")}
    assert multi_tenant(climate) == (1, None)
    assert {one.unregistered for one in pools.listed(climate, ADMIN)} == {0, None}


def test_the_hosts_of_the_pool_are_seen_with_their_servers(
    climate: Climate, cloud: FakeCloud, ordinary_host: str
) -> None:
    put(climate, 1, Pool.MULTI_TENANT)
    reconcile.correct(climate)
    server = cloud.boot("p", "h1")
    (known,) = pools.hosts_of(climate, ADMIN, Pool.MULTI_TENANT)
    assert (known.place.name, known.server_count, known.servers) == ("h1", 1, None)
    (known,) = pools.hosts_of(climate, ADMIN, Pool.MULTI_TENANT, servers=True)
    assert [one.id for one in known.servers or ()] == [server]
    (stranger,) = ordinary.list_unregistered(climate, ADMIN, servers=True) or ()
    assert (stranger.host.name, stranger.host.servers) == ("n1", 1)
    assert [one.id for one in stranger.servers or ()] == [ordinary_host]
    cloud.failures = {"ordinary_hosts": CloudError("away")}
    assert ordinary.list_unregistered(climate, ADMIN, servers=False) is None
    assert pools.hosts_of(climate, ADMIN, Pool.MULTI_TENANT)[0].server_count is None


def test_a_busy_host_is_closed_then_drained_then_kept(climate: Climate, cloud: FakeCloud, ordinary_host: str) -> None:
    with pytest.raises(Conflict, match="drain=true"):
        inventory.register(climate, ADMIN, "n1", {})
    made = inventory.register(climate, ADMIN, "n1", {"gpu": "a100"}, DRAIN)
    assert (place(climate, made.id).pool, place(climate, made.id).home) == (Pool.DRAINING, Pool.MULTI_TENANT)
    assert (cloud.pools()["draining"], multi_tenant(climate)) == ({"n1"}, (0, 0))
    with pytest.raises(Refused):
        cloud.boot("p", "n1")
    (waiting,) = pools.hosts_of(climate, ADMIN, Pool.DRAINING)
    assert [one.id for one in waiting.servers or ()] == [ordinary_host]
    assert [draining.run_round(climate), reconcile.correct(climate)] == [0, 0]
    empty(cloud, ordinary_host)
    assert [draining.run_round(climate), draining.run_round(climate)] == [1, 0]
    taken = place(climate, made.id)
    assert (taken.pool, taken.home, taken.reason) == (Pool.RESERVATION, Pool.RESERVATION, draining.DRAINED)
    assert ("n1" in cloud.pools()[FREEPOOL], reconcile.correct(climate), consistency_check.differences(climate)) == (
        True,
        0,
        [],
    )


def test_its_servers_are_never_deleted_and_it_is_not_promised(
    climate: Climate, clock: Clock, cloud: FakeCloud, ordinary_host: str
) -> None:
    inventory.register(climate, ADMIN, "n1", {}, DRAIN)
    make(climate, clock, hosts_wanted(8), start=1)
    with pytest.raises(Conflict):
        make(climate, clock, hosts_wanted(9), start=5)
    clock.forward(hours=100)
    draining.run_round(climate)
    assert cloud.server(ordinary_host) is not None


def test_an_empty_host_is_kept_at_once_and_a_dry_run_changes_nothing(
    climate: Climate, cloud: FakeCloud, ordinary_host: str
) -> None:
    assert inventory.register(climate, ADMIN, "n1", {}, replace(DRAIN, dry_run=True)).name == "n1"
    assert multi_tenant(climate) == (1, 1)
    empty(cloud, ordinary_host)
    assert place(climate, inventory.register(climate, ADMIN, "n1", {}, DRAIN).id).pool is Pool.RESERVATION
    assert "n1" in cloud.pools()[FREEPOOL]


def test_a_cloud_that_refuses_has_the_host_off_the_books_and_one_that_died_is_followed(
    climate: Climate, cloud: FakeCloud, ordinary_host: str
) -> None:
    cloud.failures = {"place": Refused("kept from outside")}
    with pytest.raises(Conflict, match="outside"):
        inventory.register(climate, ADMIN, "n1", {}, DRAIN)
    assert multi_tenant(climate) == (1, 1)
    cloud.failures = {}
    number = inventory.register(climate, ADMIN, "n1", {}, DRAIN).id
    cloud.set_hosts(cloud.hosts.values())
    put(climate, number, Pool.DRAINING)  # as if whoever registered it had died before asking the cloud
    reconcile.correct(climate)
    assert cloud.pools()["draining"] == {"n1"}


def test_a_registered_host_is_drained_by_hand_and_let_go_again(climate: Climate, cloud: FakeCloud) -> None:
    pool_moves.move(climate, ADMIN, RequestedMove(["1"], Pool.MULTI_TENANT))
    server = cloud.boot("p", "h1")
    with pytest.raises(Conflict, match="draining"):
        pool_moves.move(climate, ADMIN, RequestedMove(["1"], Pool.RESERVATION))
    for pool in (Pool.DRAINING, Pool.MULTI_TENANT, Pool.DRAINING):
        pool_moves.move(climate, ADMIN, RequestedMove(["1"], pool))
        assert [name for name, its in cloud.pools().items() if "h1" in its] == (
            ["draining"] if pool is Pool.DRAINING else []
        )
    empty(cloud, server)
    assert draining.run_round(climate) == 1


def test_one_that_fails_meanwhile_is_an_ordinary_host_again(
    climate: Climate, clock: Clock, cloud: FakeCloud, ordinary_host: str
) -> None:
    number = inventory.register(climate, ADMIN, "n1", {}, DRAIN).id
    cloud.unwell["n1"] = "its service is down"
    for _ in range(2):
        failures.check(climate)
        clock.forward(seconds=climate.settings.failed_after + 1)
    assert place(climate, number).pool is Pool.FAILED
    cloud.unwell.clear()
    for _ in range(2):
        failures.check(climate)
        clock.forward(seconds=climate.settings.failed_after + 1)
    assert place(climate, number).pool is Pool.MULTI_TENANT
    assert cloud.server(ordinary_host) is not None


def test_whoever_moves_a_drained_host_meanwhile_wins(climate: Climate, cloud: FakeCloud, ordinary_host: str) -> None:
    number = inventory.register(climate, ADMIN, "n1", {}, DRAIN).id
    empty(cloud, ordinary_host)

    def rival(verb: str) -> None:
        if verb == "place":
            cloud.watch = None
            put(climate, number, Pool.MULTI_TENANT)

    cloud.watch = rival
    assert draining.run_round(climate) == 0
    reconcile.correct(climate)
    assert (place(climate, number).pool, multi_tenant(climate)) == (Pool.MULTI_TENANT, (1, 0))


def test_a_host_without_registration_is_never_topped_up(climate: Climate, cloud: FakeCloud, ordinary_host: str) -> None:
    empty(cloud, ordinary_host)
    pools.change(climate, ADMIN, Pool.RESERVATION, {"target": 20})
    assert (top_up(climate), multi_tenant(climate)) == (0, (1, 1))


def test_statements_do_not_grow_with_the_hosts(climate: Climate, engine: Engine, cloud: FakeCloud) -> None:
    costs = []
    for count in (1, 6):
        cloud.set_hosts([*cloud.hosts.values(), *(cloud_host(f"n{count}-{place}") for place in range(count))])
        for place_ in range(count):
            cloud.boot("p", f"n{count}-{place_}")
            inventory.register(climate, ADMIN, f"n{count}-{place_}", {}, DRAIN)
        costs.append(
            [cost(engine, lambda: draining.run_round(climate)), cost(engine, lambda: pools.listed(climate, ADMIN))]
        )
    assert costs[0] == costs[1]
