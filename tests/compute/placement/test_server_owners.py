"""The servers of one user are kept apart in a cloud, also by requests of the same moment."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from climate.compute.errors import NoValidHost
from climate.compute.models.flavor import Flavor
from climate.compute.models.server import ACTIVE, ERROR
from climate.compute.servers import resize, unshelve
from climate.compute.servers.actions import shelve
from climate.compute.store.nodes import server_owners
from tests.compute.cloud_factory import TINY, Place
from tests.compute.test_schedulers import under

NODES = ["n1", "n2", "n3", "n4"]
APART = "RamFilter,ComputeFilter,UserAntiAffinityFilter"


def test_a_user_gets_one_server_on_each_node_and_another_user_is_not_hindered(here: Place) -> None:
    cloud = under(here, "filter", scheduler_filters=APART)
    made = cloud.boot(count=3, least=3, networks=())
    assert sorted(server.node or "" for server in made) == ["n1", "n2", "n3"]
    assert cloud.boot(networks=(), project_id="second")[0].node == "n4"
    refused = cloud.boot(networks=())[0]
    assert refused.status == ERROR
    assert "The filter 'UserAntiAffinityFilter' left no host" in str(refused.fault)
    assert cloud.boot(networks=(), user_id="max")[0].node in NODES


def test_requests_of_the_same_moment_keep_apart_whatever_their_projects(here: Place) -> None:
    cloud = under(here, "filter", scheduler_filters=APART)
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda number: cloud.boot(networks=(), project_id=f"p{number}")[0], range(8)))
    assert Counter(server.node for server in made) == dict.fromkeys(NODES, 1) | {None: 4}


def test_a_server_does_not_stand_in_its_own_way(here: Place) -> None:
    cloud = under(here, "filter", scheduler_filters=APART)
    mine = cloud.boot_one(networks=())
    resize.resize(cloud.compute, mine.id, Flavor("u", "larger", 1, 1024, 1))
    cloud.settle()
    resize.confirm(cloud.compute, mine.id)
    others = cloud.boot(count=3, least=3, networks=())
    cloud.settle()
    shelve(cloud.compute, mine.id)
    cloud.settle()
    unshelve.unshelve(cloud.compute, mine.id)
    cloud.settle()
    found = cloud.look(mine.id)
    assert (found.status, found.node) == (ACTIVE, mine.node)
    assert mine.node not in [server.node for server in others]


def test_servers_are_read_by_owner(here: Place) -> None:
    first = here.boot(networks=())[0]
    second = here.boot(networks=(), project_id="second")[0]
    here.boot(networks=(), project_id="third", user_id="eve")
    with here.compute.engine.connect() as conn:
        everybody = server_owners.of(conn, None, ())
        own = server_owners.of(conn, ("demo", "dora"), ())
        without = server_owners.of(conn, ("demo", "dora"), (first.id,))
        on_node = server_owners.of(conn, None, (), [second.node_id or 0])
    assert sum(sum(owners.values()) for owners in everybody.values()) == 3
    assert sorted(owner for owners in own.values() for owner in owners) == [("demo", "dora"), ("second", "dora")]
    assert [owner for owners in without.values() for owner in owners] == [("second", "dora")]
    assert list(on_node) == [second.node_id]


def test_the_cheapest_node_has_no_server_of_the_user(here: Place) -> None:
    cloud = under(here, "least_cost", least_cost_functions="compute_same_user_cost_fn=1")
    assert [cloud.boot(networks=())[0].node for _ in range(4)] == NODES
    assert cloud.boot(networks=(), user_id="max", project_id="second")[0].node == "n1"


def test_a_refusal_at_the_claim_is_a_choice_lost(here: Place) -> None:
    """A request that has read the owners before another one came there chooses again."""
    cloud = under(here, "filter", scheduler_filters=APART)
    schedule, late = cloud.compute.schedule, []

    def slow(*asked):  # type: ignore[no-untyped-def]
        plan = schedule(*asked)
        if not late:
            late.append(cloud.boot(networks=(), project_id="second")[0].node)
        return plan

    slower = replace(cloud, compute=replace(cloud.compute, schedule=slow))
    assert slower.boot(TINY, networks=())[0].node != late[0]


def test_no_node_is_left_for_a_resize_beside_others_of_the_user(here: Place) -> None:
    first = here.boot(networks=(), zone="nova::n1", admin=True)[0]
    here.boot(networks=(), zone="nova::n1", admin=True)
    here.settle()
    cloud = under(here, "filter", scheduler_filters=APART)
    with pytest.raises(NoValidHost, match="UserAntiAffinityFilter"):
        resize.resize(cloud.compute, first.id, Flavor("u", "larger", 1, 1024, 1))
