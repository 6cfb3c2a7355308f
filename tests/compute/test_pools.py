"""Pools and placement: what is lent is for its project alone, at every moment."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import event

from climate.compute.errors import Busy, Conflict, StaleToken
from climate.compute.models.server import ERROR
from climate.compute.reservations import pools as lending
from climate.compute.servers import actions
from climate.compute.servers.tasks import task_worker
from climate.compute.store.reservations import promised_pools
from tests.compute.cloud_factory import Place
from tests.lock_waits import await_blocked

NODES = ["n1", "n2", "n3", "n4"]


def lend(here: Place, *names: str, pool: str = "r1", token: int = 1) -> None:
    for name in names:
        lending.enrol(here.compute, name, 1)
    lending.lend(here.compute, pool, "demo", names, token)


def test_nobody_boots_on_what_is_kept_for_leases(here: Place) -> None:
    for name in NODES:
        lending.enrol(here.compute, name, 1)
    refused = here.boot()[0]
    assert refused.status == ERROR
    assert "'ReservationFilter'" in str(refused.fault)
    lending.withdraw(here.compute, "n4", 1)
    assert here.boot_one().node == "n4"


def test_an_allocated_node_is_for_the_hint_of_its_project_until_it_is_closed(here: Place) -> None:
    lend(here, "n1")
    hint = {"reservation": "r1"}
    assert here.boot_one(hints=hint).node == "n1"
    assert here.boot(hints=hint, project_id="other")[0].status == ERROR
    assert here.boot_one().node != "n1"
    assert here.boot(zone="nova::n1", admin=True)[0].status == ERROR
    lending.close(here.compute, "r1", 2)
    assert here.boot(hints=hint)[0].status == ERROR


def test_all_nodes_of_a_pool_are_open_when_it_is_allocated_again(here: Place) -> None:
    """Also those that were not named then, which the scheduler remembers as closed."""
    lend(here, "n1", "n2")
    lending.close(here.compute, "r1", 2)
    hint = {"reservation": "r1"}
    assert here.boot(hints=hint)[0].status == ERROR
    lending.lend(here.compute, "r1", "demo", ["n2"], 3)
    assert {here.boot_one(hints=hint).node for _ in range(2)} == {"n1", "n2"}


def test_a_pool_is_taken_back_when_it_is_empty(here: Place) -> None:
    lend(here, "n1", "n2")
    server = here.boot_one(hints={"reservation": "r1"})
    with pytest.raises(Busy, match="1 server"):
        lending.take_back(here.compute, "r1", [], 2)
    actions.request_task(here.compute, server.id, "deleting")
    here.settle()
    lending.take_back(here.compute, "r1", [], 2)
    assert lending.pools(here.compute) == {"freepool": {"n1", "n2"}}


def test_a_node_with_servers_or_an_allocated_one_is_not_enrolled(here: Place) -> None:
    busy = here.boot_one().node or ""
    with pytest.raises(Conflict, match="has servers"):
        lending.enrol(here.compute, busy, 1)
    free = next(name for name in NODES if name != busy)
    lend(here, free)
    for verb in (lending.enrol, lending.withdraw):
        with pytest.raises(Conflict, match="is lent"):
            verb(here.compute, free, 9)


def test_who_was_overtaken_is_refused_everywhere(here: Place) -> None:
    lend(here, "n1", token=5)
    for late in (
        lambda: lending.lend(here.compute, "r1", "demo", ["n1"], 4),
        lambda: lending.close(here.compute, "r1", 4),
        lambda: lending.take_back(here.compute, "r1", [], 4),
    ):
        with pytest.raises(StaleToken):
            late()
    lending.take_back(here.compute, "r1", [], 6)
    with pytest.raises(StaleToken):
        lending.lend(here.compute, "r2", "demo", ["n1"], 5)
    for verb in (lending.enrol, lending.withdraw):
        with pytest.raises(StaleToken):
            verb(here.compute, "n1", 5)
    with pytest.raises(StaleToken):
        lending.place(here.compute, "n1", None, 5)
    assert lending.pools(here.compute) == {"freepool": {"n1"}}


def test_lending_is_few_statements_and_one_commit_however_many_hosts(here: Place) -> None:
    for name in NODES:
        lending.enrol(here.compute, name, 1)
    for pool in ("r1", "r2"):
        lending.promise(here.compute, pool, {})
    seen: list[str] = []

    @event.listens_for(here.compute.engine, "before_cursor_execute")
    def executes(conn: Any, cursor: Any, statement: str, *rest: Any) -> None:
        seen.append(statement)

    @event.listens_for(here.compute.engine, "commit")
    def commits(conn: Any) -> None:
        seen.append("COMMIT")

    lending.lend(here.compute, "r1", "demo", ["n1"], 1)
    one = len(seen)
    lending.lend(here.compute, "r2", "demo", ["n2", "n3", "n4"], 1)
    assert len(seen) == 2 * one
    assert one <= 5
    assert seen.count("COMMIT") == 2


def test_booting_and_moving_between_pools_never_mix(here: Place) -> None:
    """Threads boot without a hint while one lends and takes back: no server of theirs is ever in a pool."""
    rounds = 12

    def boots(number: int) -> None:
        for _ in range(rounds):
            server = here.boot(networks=(), project_id=f"p{number}")[0]
            if server.status != ERROR:
                actions.request_task(here.compute, server.id, "deleting")
                task_worker.run_task(here.compute, server.id)

    def moves() -> list[str]:
        strangers: list[str] = []
        token = 0
        for _ in range(rounds * 2):
            token += 1
            for name in NODES:
                try:
                    lending.enrol(here.compute, name, token)
                except Conflict:
                    continue
            kept = sorted(lending.pools(here.compute)["freepool"])
            lending.lend(here.compute, "r1", "demo", kept, token)
            strangers += [server.id for server in lending.servers_in(here.compute, "r1")]
            lending.close(here.compute, "r1", token)
            lending.take_back(here.compute, "r1", [], token)
            for name in kept:
                lending.withdraw(here.compute, name, token)
        return strangers

    with ThreadPoolExecutor(5) as pool:
        mover = pool.submit(moves)
        list(pool.map(boots, range(4)))
        assert mover.result() == []
    assert here.drift() == []


def test_many_lend_in_the_same_second(here: Place) -> None:
    for name in NODES:
        lending.enrol(here.compute, name, 1)

    def one(number: int) -> bool:
        try:
            lending.lend(here.compute, f"r{number}", "demo", [NODES[number % 4], NODES[(number + 1) % 4]], 1)
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(one, range(16))) == 2
    pools = lending.pools(here.compute)
    assert pools["freepool"] == frozenset()
    assert sorted(name for names in pools.values() for name in names) == NODES


def test_a_pool_that_two_promise_at_once_is_one(here: Place) -> None:
    """The second waits for the first, whose row it cannot see in the statement that waited."""
    engine, wanted = here.compute.engine, {"vcpus": "4"}
    with ThreadPoolExecutor(1) as pool:
        with engine.begin() as conn:
            first = promised_pools.promise(conn, "r1", wanted)
            second = pool.submit(lending.promise, here.compute, "r1", wanted)
            await_blocked(engine, second.done)
        assert second.result(60) == first
