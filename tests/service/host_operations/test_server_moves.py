"""Servers leave hosts that drain or are worked on where the pool's terms or the window say so; others wait."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from climate.cloud import ACTIVE, FREEPOOL, CloudError
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.hosts.pools import Pool
from climate.service.host_operations import draining, maintenance, pool_moves, pools, server_moves
from climate.service.host_operations.maintenance import Changes, WindowRequest
from climate.service.hosts import inventory, reconcile
from climate.service.hosts.inventory import RegistrationOptions
from climate.service.hosts.move_checks import RequestedMove as Move
from climate.service.journal import consistency_check
from tests.conftest import ADMIN, Clock, cloud_host
from tests.service.hosts.test_reconcile import place, put


@pytest.fixture
def drained(climate: Climate, cloud: FakeCloud) -> list[str]:
    """Two servers on n1, which is draining; n2 is an ordinary host."""
    cloud.set_hosts([*cloud.hosts.values(), cloud_host("n1"), cloud_host("n2")])
    servers = [cloud.boot("p", "n1") for _ in range(2)]
    inventory.register(climate, ADMIN, "n1", {}, RegistrationOptions(drain=True))
    return servers


def agree(climate: Climate, **terms: Any) -> None:
    pools.change(climate, ADMIN, Pool.RESERVATION, terms)


def whereabouts(cloud: FakeCloud, servers: list[str]) -> Mapping[str, int]:
    found = [cloud.server(one) for one in servers]
    names = [one.host or "" for one in found if one]
    return {name: names.count(name) for name in names}


def test_servers_leave_a_draining_host_one_after_the_other(
    climate: Climate, cloud: FakeCloud, drained: list[str]
) -> None:
    agree(climate, move_servers=True)
    assert server_moves.run_round(climate) == 1
    assert whereabouts(cloud, drained) == {"n1": 1, "n2": 1}
    cloud.looks_until_moved = 2
    assert [server_moves.run_round(climate), server_moves.run_round(climate)] == [1, 0]
    assert draining.run_round(climate) == 0
    for server in drained * 3:
        cloud.server(server)
    assert whereabouts(cloud, drained) == {"n2": 2}
    assert draining.run_round(climate) == 1
    assert "n1" in cloud.pools()[FREEPOOL]
    assert cloud.doubled() == []


@pytest.mark.parametrize("terms", [{}, {"move_servers": False}])
def test_they_stay_where_nobody_agreed_to_it(
    climate: Climate, cloud: FakeCloud, drained: list[str], terms: dict[str, Any]
) -> None:
    if terms:
        agree(climate, **terms)
    assert server_moves.run_round(climate) == 0
    assert [verb for verb, _ in cloud.calls if verb == "move_server"] == []
    assert whereabouts(cloud, drained) == {"n1": 2}


def test_one_that_cannot_move_does_not_keep_the_others(climate: Climate, cloud: FakeCloud, drained: list[str]) -> None:
    agree(climate, move_servers=True)
    cloud.change(drained[0], "PAUSED")
    assert [server_moves.run_round(climate), server_moves.run_round(climate)] == [1, 0]
    assert whereabouts(cloud, drained) == {"n1": 1, "n2": 1}
    cloud.failures = {"servers_on": CloudError("away")}
    assert server_moves.run_round(climate) == 0


def test_one_that_cannot_move_now_does_not_keep_the_others(
    climate: Climate, cloud: FakeCloud, drained: list[str]
) -> None:
    agree(climate, move_servers=True)
    cloud.suspend(drained[0], 1 << 60)
    cloud.change(drained[0], ACTIVE)
    assert server_moves.run_round(climate) == 1, "the first server is fenced by a later claim"
    assert whereabouts(cloud, drained) == {"n1": 1, "n2": 1}


def test_a_move_whose_answer_was_lost_is_the_only_one(climate: Climate, cloud: FakeCloud, drained: list[str]) -> None:
    agree(climate, move_servers=True)
    cloud.looks_until_moved = 4
    cloud.unheard = {"move_server": 1}
    assert [server_moves.run_round(climate), server_moves.run_round(climate)] == [0, 0]
    assert [on for verb, on in cloud.calls if verb == "move_server"] in [[one] for one in drained]


def test_a_window_says_whether_servers_are_moved_away(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    cloud.set_hosts([*cloud.hosts.values(), cloud_host("n2")])
    for number in (1, 2):
        put(climate, number, Pool.MULTI_TENANT)
    reconcile.correct(climate)
    servers = [cloud.boot("p", "h1"), cloud.boot("p", "h2")]
    end = clock.time + timedelta(hours=1)
    ordered = [WindowRequest(number, None, end, "new fan", move_servers=number == "1") for number in ("1", "2")]
    first, second = (one.window for one in maintenance.plan_all(climate, ADMIN, ordered))
    maintenance.run_round(climate)
    reconcile.correct(climate)
    assert server_moves.run_round(climate) == 1
    assert whereabouts(cloud, servers) == {"n2": 1, "h2": 1}
    maintenance.change(climate, ADMIN, first.id, Changes(reason="new fans"))
    assert maintenance.get(climate, ADMIN, first.id).move_servers is True
    before = clock.time
    clock.forward(seconds=1)
    maintenance.change(climate, ADMIN, second.id, Changes(move_servers=True))
    assert maintenance.get(climate, ADMIN, second.id, before).move_servers is False
    assert server_moves.run_round(climate) == 1
    assert whereabouts(cloud, servers) == {"n2": 2}
    assert consistency_check.differences(climate) == []


def test_servers_stay_on_a_host_that_an_administrator_put_into_maintenance_without_a_window(
    climate: Climate, cloud: FakeCloud
) -> None:
    cloud.set_hosts([*cloud.hosts.values(), cloud_host("n2")])
    put(climate, 1, Pool.MULTI_TENANT)
    reconcile.correct(climate)
    server = cloud.boot("p", "h1")
    pool_moves.move(climate, ADMIN, Move(["1"], Pool.MAINTENANCE))
    assert place(climate, 1).pool is Pool.MAINTENANCE
    assert server_moves.run_round(climate) == 0
    assert whereabouts(cloud, [server]) == {"h1": 1}
