"""HostPools in every cloud: the pool of a reservation before anything is lent to it."""

import pytest

from climate.cloud import FREEPOOL, LeasePool, Refused
from climate.compute.errors import Conflict
from climate.compute.nodes import aggregates
from tests.conformance.conftest import BundledScene, Scene

WANTED = {"min": "1", "max": "2", "resource_properties": '["==", "$gpu", "a100"]'}


def test_a_promised_pool_is_there_and_empty_and_says_what_is_wanted(scene: Scene) -> None:
    cloud = scene.cloud
    number = cloud.promise_pool("r1", WANTED)
    assert cloud.promise_pool("r1", WANTED) == number
    assert cloud.lease_pools() == {"r1": LeasePool(number, WANTED)}
    assert cloud.pools() == {FREEPOOL: frozenset()}, "nothing is lent"
    assert (cloud.servers_in("r1"), scene.server("r1")) == ([], None)
    other = {"min": "3", "max": "3"}
    assert cloud.promise_pool("r1", other) == number
    assert cloud.lease_pools() == {"r1": LeasePool(number, other)}
    assert cloud.promise_pool("r2", WANTED) != number


def test_it_is_the_same_pool_when_hosts_move_in_and_is_gone_at_the_end(scene: Scene) -> None:
    cloud = scene.cloud
    number = cloud.promise_pool("r1", WANTED)
    cloud.enrol("h1", 1)
    cloud.lend("r1", "demo", ["h1"], 10)
    assert cloud.pools() == {FREEPOOL: frozenset(), "r1": {"h1"}}
    for _ in range(2):
        assert cloud.lease_pools() == {"r1": LeasePool(number, None)}
        assert cloud.promise_pool("r1", {"min": "9"}) == number
        cloud.forget_pool("r1")
    assert scene.server("r1") is not None
    cloud.take_back("r1", ["h1"], 11, "recycling")
    assert cloud.lease_pools() == {}


def test_one_that_was_never_allocated_is_forgotten_or_taken_back(scene: Scene) -> None:
    cloud = scene.cloud
    for pool in ("r1", "r2"):
        cloud.promise_pool(pool, WANTED)
    for _ in range(2):
        cloud.forget_pool("r1")
        cloud.take_back("r2", ["h1"], 11)
        assert cloud.lease_pools() == {}
    cloud.enrol("h1", 1)
    cloud.lend("r1", "demo", ["h1"], 12)
    assert cloud.pools()["r1"] == {"h1"}


def test_no_host_is_placed_in_a_pool_that_is_only_promised(scene: Scene) -> None:
    scene.cloud.promise_pool("r1", WANTED)
    with pytest.raises(Refused):
        scene.cloud.place("h1", "r1", 11)


def test_administrators_see_it_as_an_aggregate_and_leave_it_alone(bundled: BundledScene) -> None:
    compute = bundled.here.compute
    number = bundled.cloud.promise_pool("r1", WANTED)
    found = aggregates.get(compute, number)
    assert (found.name, found.nodes, found.metadata["climate:wanted:min"]) == ("r1", (), "1")
    for act in (
        lambda: aggregates.add_host(compute, number, "h1"),
        lambda: aggregates.set_metadata(compute, number, {"blazar:owner": "me"}),
        lambda: aggregates.delete(compute, number),
    ):
        with pytest.raises(Conflict):
            act()
