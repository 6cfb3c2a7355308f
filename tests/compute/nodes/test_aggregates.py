"""Aggregates: who is in which, and what two administrators may not do at once."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from sqlalchemy import text

from climate.compute import Compute
from climate.compute.errors import BadRequest, Busy, ComputeError, Conflict, NotFound, NoValidHost
from climate.compute.models.aggregate import ORDINARY, POOL, Aggregate
from climate.compute.models.node import FREEPOOL
from climate.compute.nodes import aggregates
from climate.compute.reservations import pools as lending
from climate.compute.store.nodes import aggregates as rows
from climate.compute.store.nodes import scheduler_snapshot
from tests import lock_waits
from tests.compute.cloud_factory import SERVICE, TINY, Place, node, place

OWNER = "blazar:owner"
LENT = "11111111-1111-4111-8111-111111111111"


@pytest.fixture
def here(cloud_database: str, tmp_path: Path) -> Iterator[Place]:
    with place(cloud_database, tmp_path, [node(name) for name in ("n1", "n2", "n3")]) as found:
        yield found


@pytest.fixture
def cloud(here: Place) -> Compute:
    return here.compute


def named(cloud: Compute, name: str) -> Aggregate:
    return next(found for found in aggregates.listed(cloud) if found.name == name)


def pool_of(cloud: Compute, owner: str = "demo", name: str = LENT) -> Aggregate:
    return aggregates.set_metadata(cloud, aggregates.create(cloud, name).id, {OWNER: owner})


def test_a_node_is_in_many_ordinary_aggregates_and_known_by_its_service_host_too(cloud: Compute) -> None:
    fast, big = aggregates.create(cloud, "fast"), aggregates.create(cloud, "big")
    assert aggregates.add_host(cloud, fast.id, "n2").nodes == ("n2",)
    assert aggregates.add_host(cloud, big.id, SERVICE).nodes == ("n1", "n2", "n3")
    with pytest.raises(Conflict, match="already has host n2"):
        aggregates.add_host(cloud, fast.id, "n2")
    assert aggregates.add_host(cloud, fast.id, SERVICE).nodes == ("n1", "n2", "n3")
    assert aggregates.remove_host(cloud, big.id, "n1").nodes == ("n2", "n3")
    assert aggregates.remove_host(cloud, big.id, SERVICE).nodes == ()
    with pytest.raises(NotFound, match="big has no host n1"):
        aggregates.remove_host(cloud, big.id, "n1")
    with pytest.raises(NotFound, match="Compute host nobody"):
        aggregates.add_host(cloud, big.id, "nobody")


def test_metadata_is_added_changed_and_taken_away(cloud: Compute) -> None:
    made = aggregates.create(cloud, "a", "east")
    assert made.metadata == {"availability_zone": "east"}
    changed = aggregates.set_metadata(cloud, made.id, {"ssd": "true", "gpu": "none"})
    assert changed.metadata == {"availability_zone": "east", "ssd": "true", "gpu": "none"}
    assert aggregates.set_metadata(cloud, made.id, {"gpu": None, "never": None}).metadata == {
        "availability_zone": "east",
        "ssd": "true",
    }
    assert aggregates.update(cloud, made.id, "b", "west").zone == "west"
    with pytest.raises(Conflict, match="freepool already exists"):
        aggregates.update(cloud, made.id, FREEPOOL)


def test_a_node_is_in_one_availability_zone(cloud: Compute) -> None:
    east, west = aggregates.create(cloud, "e", "east"), aggregates.create(cloud, "w", "west")
    aggregates.add_host(cloud, east.id, "n1")
    with pytest.raises(Conflict, match="n1 is in the availability zone east by aggregate e"):
        aggregates.add_host(cloud, west.id, "n1")
    plain = aggregates.create(cloud, "p")
    aggregates.add_host(cloud, plain.id, "n1")
    for change in (
        lambda: aggregates.set_metadata(cloud, plain.id, {"availability_zone": "west"}),
        lambda: aggregates.update(cloud, plain.id, zone="west"),
    ):
        with pytest.raises(Conflict, match="availability zone east"):
            change()
    assert aggregates.set_metadata(cloud, plain.id, {"availability_zone": "east"}).zone == "east"
    assert {found.zone for found in lending.nodes(cloud)} == {"east", None}
    for wrong in ("", "  ", "a:b", "a,b", "internal"):
        with pytest.raises(BadRequest, match="name of one zone"):
            aggregates.create(cloud, "x", wrong)


def test_only_an_empty_aggregate_is_deleted(cloud: Compute) -> None:
    made = aggregates.create(cloud, "a")
    aggregates.add_host(cloud, made.id, "n1")
    with pytest.raises(BadRequest, match="not empty"):
        aggregates.delete(cloud, made.id)
    aggregates.remove_host(cloud, made.id, "n1")
    aggregates.delete(cloud, made.id)
    for verb in (aggregates.get, aggregates.delete):
        with pytest.raises(NotFound):
            verb(cloud, made.id)
    with pytest.raises(Conflict, match="cannot be deleted"):
        aggregates.delete(cloud, named(cloud, FREEPOOL).id)


def test_the_owner_makes_a_pool_of_an_aggregate_and_of_its_nodes(cloud: Compute) -> None:
    made = aggregates.create(cloud, LENT)
    assert made.kind == ORDINARY
    aggregates.add_host(cloud, made.id, "n1")
    pool = aggregates.set_metadata(cloud, made.id, {OWNER: "demo"})
    assert (pool.kind, pool.nodes) == (POOL, ("n1",))
    assert lending.pools(cloud) == {FREEPOOL: frozenset(), LENT: {"n1"}}
    again = aggregates.set_metadata(cloud, made.id, {OWNER: None})
    assert (again.kind, again.nodes) == (ORDINARY, ("n1",))
    assert lending.pools(cloud) == {FREEPOOL: frozenset()}


def test_a_node_is_in_one_pool_and_is_removed_before_it_is_in_another(cloud: Compute) -> None:
    free, pool, other = named(cloud, FREEPOOL), pool_of(cloud), pool_of(cloud, "other", "second")
    aggregates.add_host(cloud, other.id, "n2")
    with pytest.raises(Conflict, match="n2 is in the pool second"):
        aggregates.add_host(cloud, pool.id, "n2")
    aggregates.add_host(cloud, free.id, "n1")
    ordinary = aggregates.create(cloud, "o")
    aggregates.add_host(cloud, ordinary.id, "n1")
    with pytest.raises(Conflict, match="n1 is in the pool freepool"):
        aggregates.set_metadata(cloud, ordinary.id, {OWNER: "demo"})
    assert aggregates.get(cloud, ordinary.id).kind == ORDINARY
    aggregates.remove_host(cloud, free.id, "n1")
    assert aggregates.add_host(cloud, pool.id, "n1").nodes == ("n1",)
    with pytest.raises(Conflict, match="cannot be renamed"):
        aggregates.update(cloud, pool.id, "other")


def test_a_node_moves_to_the_reservation_pool_and_back_without_being_anybodys(here: Place) -> None:
    cloud = here.compute
    free, pool = named(cloud, FREEPOOL), pool_of(cloud)
    aggregates.add_host(cloud, free.id, SERVICE)
    for target, name in ((pool, LENT), (free, FREEPOOL)):
        aggregates.add_host(cloud, target.id, "n1")
        assert "n1" in lending.pools(cloud)[name]
        assert not finds_a_node(here)
    with pytest.raises(NotFound, match="has no host n1"):
        aggregates.remove_host(cloud, pool.id, "n1")
    aggregates.add_host(cloud, pool.id, "n1")
    here.boot_one(TINY, hints={"reservation": LENT})
    with pytest.raises(Conflict, match="has servers"):
        aggregates.add_host(cloud, free.id, "n1")


def test_servers_of_others_keep_a_node_out_of_a_pool(here: Place) -> None:
    cloud = here.compute
    theirs = here.boot_one(TINY, project_id="other").node
    assert theirs is not None
    pool = pool_of(cloud)
    for aggregate in (pool, named(cloud, FREEPOOL)):
        with pytest.raises(Conflict, match="has servers"):
            aggregates.add_host(cloud, aggregate.id, theirs)
    own = pool_of(cloud, "other", "second")
    assert aggregates.add_host(cloud, own.id, theirs).nodes == (theirs,)


def test_a_pool_that_is_created_here_admits_its_owner_alone(here: Place) -> None:
    cloud = here.compute
    pool = pool_of(cloud)
    aggregates.add_host(cloud, pool.id, SERVICE)
    assert not finds_a_node(here)
    assert here.boot(TINY, hints={"reservation": LENT})[0].node in ("n1", "n2", "n3")
    aggregates.set_metadata(cloud, pool.id, {"climate:closed": "true", OWNER: "nobody"})
    assert not finds_a_node(here, hints={"reservation": LENT})


def test_the_scheduler_learns_of_a_pools_metadata_and_of_an_aggregates(cloud: Compute) -> None:
    pool, ordinary = pool_of(cloud), aggregates.create(cloud, "o")
    aggregates.add_host(cloud, pool.id, "n1")
    with cloud.engine.connect() as conn:
        seen = scheduler_snapshot.everything(conn).seen
    aggregates.set_metadata(cloud, pool.id, {OWNER: "nobody"})
    with cloud.engine.connect() as conn:
        told = scheduler_snapshot.changes(conn, seen)
    assert (list(told.nodes["name"]), list(told.nodes["owner"]), told.restructured) == (["n1"], ["nobody"], False)
    aggregates.set_metadata(cloud, ordinary.id, {"ssd": "true"})
    with cloud.engine.connect() as conn:
        assert scheduler_snapshot.changes(conn, told.seen).restructured


def test_what_a_lease_has_allocated_is_left_alone(cloud: Compute) -> None:
    lending.enrol(cloud, "n1", 1)
    lending.lend(cloud, LENT, "demo", ["n1"], 7)
    lent = named(cloud, LENT)
    with pytest.raises(Conflict, match=f"n1 is in the pool {LENT}"):
        aggregates.add_host(cloud, named(cloud, FREEPOOL).id, "n1")
    for change in (
        lambda: aggregates.add_host(cloud, lent.id, "n2"),
        lambda: aggregates.remove_host(cloud, lent.id, "n1"),
        lambda: aggregates.set_metadata(cloud, lent.id, {"climate:closed": None}),
        lambda: aggregates.update(cloud, lent.id, "mine"),
        lambda: aggregates.delete(cloud, lent.id),
    ):
        with pytest.raises(Conflict, match="change the lease instead"):
            change()
    assert named(cloud, LENT) == lent


def test_what_is_registered_for_leases_and_what_the_compute_api_keeps_are_two_things(cloud: Compute) -> None:
    free, pool = named(cloud, FREEPOOL), pool_of(cloud)
    lending.enrol(cloud, "n1", 1)
    aggregates.add_host(cloud, free.id, "n2")
    for change in (
        lambda: aggregates.remove_host(cloud, free.id, "n1"),
        lambda: aggregates.remove_host(cloud, free.id, SERVICE),
        lambda: aggregates.add_host(cloud, pool.id, "n1"),
    ):
        with pytest.raises(Conflict, match="n1 is registered for leases"):
            change()
    aggregates.set_metadata(cloud, free.id, {"note": "changes no node's owner"})
    assert lending.pools(cloud, own=True)[FREEPOOL] == {"n1"}
    lending.withdraw(cloud, "n2", 1)
    with pytest.raises(Busy, match="n2 is not in the reservation pool"):
        lending.lend(cloud, "22222222-2222-4222-8222-222222222222", "demo", ["n2"], 1)
    with pytest.raises(Conflict, match="n2 is kept in freepool by the compute API"):
        lending.enrol(cloud, "n2", 1)
    assert lending.pools(cloud)[FREEPOOL] == {"n1", "n2"}
    aggregates.remove_host(cloud, free.id, "n2")
    lending.enrol(cloud, "n2", 1)
    lending.withdraw(cloud, "n1", 1)
    assert lending.pools(cloud, own=True)[FREEPOOL] == {"n2"}


def test_the_reservation_pool_is_allocated_to_nobody_and_has_no_zone(cloud: Compute) -> None:
    free = named(cloud, FREEPOOL)
    with pytest.raises(Conflict, match="pool without an owner"):
        aggregates.set_metadata(cloud, free.id, {OWNER: "demo"})
    for change in (
        lambda: aggregates.set_metadata(cloud, free.id, {"availability_zone": "z"}),
        lambda: aggregates.update(cloud, pool_of(cloud).id, zone="z"),
    ):
        with pytest.raises(BadRequest, match="is a pool"):
            change()


def test_two_administrators_never_put_a_node_into_two_pools_or_zones(cloud: Compute) -> None:
    pools = [pool_of(cloud, name=f"p{place}").id for place in range(4)]
    zones = [aggregates.create(cloud, f"z{place}", f"zone{place}").id for place in range(4)]
    for ids in (pools, zones):
        start, answers = Barrier(len(ids)), []

        def ask(number: int, start: Barrier = start) -> bool:
            start.wait()
            return not refused(lambda: aggregates.add_host(cloud, number, "n3"))

        with ThreadPoolExecutor(len(ids)) as people:
            answers = list(people.map(ask, ids))
        assert answers.count(True) == 1
        assert [aggregates.get(cloud, number).nodes for number in ids].count(("n3",)) == 1


def test_a_zone_that_is_set_while_a_node_is_added_is_seen(cloud: Compute) -> None:
    west = aggregates.create(cloud, "w", "west")
    aggregates.add_host(cloud, west.id, "n1")
    for turn in range(8):
        plain = aggregates.create(cloud, f"p{turn}")
        changes: list[Callable[[], Any]] = [
            lambda number=plain.id: aggregates.add_host(cloud, number, "n1"),
            lambda number=plain.id: aggregates.set_metadata(cloud, number, {"availability_zone": "east"}),
        ]
        with ThreadPoolExecutor(2) as people:
            assert sum(people.map(refused, changes)) == 1


def finds_a_node(here: Place, **wanted: Any) -> bool:
    try:
        return here.boot(TINY, **wanted)[0].node is not None
    except NoValidHost:
        return False


def refused(change: Callable[[], Any]) -> bool:
    try:
        change()
    except ComputeError:
        return True
    return False


@pytest.mark.parametrize("name", ["draining", "failed"])
def test_an_ordinary_aggregate_is_not_renamed_to_a_pool_without_owner(cloud: Compute, name: str) -> None:
    made = aggregates.create(cloud, "a")
    aggregates.add_host(cloud, made.id, "n1")
    with pytest.raises(Conflict, match=f"{name} is the name of a pool"):
        aggregates.update(cloud, made.id, name)
    assert (aggregates.get(cloud, made.id).kind, aggregates.get(cloud, made.id).nodes) == (ORDINARY, ("n1",))


def test_a_name_that_another_aggregate_gets_meanwhile_is_taken(cloud: Compute) -> None:
    made = aggregates.create(cloud, "a")
    with cloud.engine.connect() as conn, ThreadPoolExecutor(1) as other:
        rows.insert(conn, "b", ORDINARY, {})
        renaming = other.submit(aggregates.update, cloud, made.id, "b")
        lock_waits.await_blocked(cloud.engine, renaming.done)
        conn.commit()
        with pytest.raises(Conflict, match="Aggregate b already exists"):
            renaming.result()
    assert aggregates.get(cloud, made.id).name == "a"


def test_a_pool_that_a_node_enters_meanwhile_is_not_deleted(cloud: Compute) -> None:
    lending.enrol(cloud, "n1", 1)
    made = aggregates.create(cloud, "failed")
    with cloud.engine.connect() as conn, ThreadPoolExecutor(1) as other:
        conn.execute(text("SELECT FROM compute_aggregates WHERE name = 'failed' FOR KEY SHARE"))  # as `pools.place`
        deleting = other.submit(aggregates.delete, cloud, made.id)
        lock_waits.await_blocked(cloud.engine, deleting.done)
        conn.execute(text("UPDATE compute_nodes SET pool = 'failed' WHERE name = 'n1'"))
        conn.commit()
        with pytest.raises(BadRequest, match="not empty"):
            deleting.result()
