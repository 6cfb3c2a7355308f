"""Whose servers are on a node: counted, and kept apart by the bundled filter and cost."""

import numpy as np
import pytest

from climate.compute.models.request import Spec
from climate.compute.placement.server_owners import Occupants
from climate.compute.scheduler.distributed.costs import SAME_USER
from climate.compute.scheduler.distributed.least_cost import least_cost
from climate.compute.scheduler.filtering.scheduler import select
from climate.compute.scheduler.filters.affinity import USER_APART
from climate.compute.scheduler.scheduler_parts import Cost, Rules, Sees
from climate.compute.scheduler.weighers import RAM
from tests.compute.node_tables import hosts

THERE = Occupants({1: {("demo", "dora"): 2, ("demo", "max"): 1}, 3: {("other", "dora"): 1}, 9: {("demo", "max"): 4}})
SPEC = Spec("demo", 1, 512, 1024, user_id="dora", occupants=THERE)
NODES = np.array([1, 2, 3, 4])


def test_servers_are_counted_by_project_and_by_user() -> None:
    assert THERE.count(NODES).tolist() == [3, 0, 1, 0]
    assert THERE.count(NODES, project_id="demo").tolist() == [3, 0, 0, 0]
    assert THERE.count(NODES, user_id="dora").tolist() == [2, 0, 1, 0]
    assert THERE.count(NODES, project_id="demo", user_id="max").tolist() == [1, 0, 0, 0]
    assert [THERE.count(NODES[place : place + 1])[0] for place in range(4)] == [3, 0, 1, 0]
    assert Occupants().count(NODES).tolist() == [0, 0, 0, 0]


def test_one_more_server_leaves_the_old_numbers_alone() -> None:
    more = THERE.joined_by(2, ("demo", "dora")).joined_by(1, ("demo", "max"))
    assert more.count(NODES, user_id="dora").tolist() == [2, 1, 1, 0]
    assert more.count(NODES, user_id="max").tolist() == [2, 0, 0, 0]
    assert THERE.count(NODES).tolist() == [3, 0, 1, 0]


def test_nodes_with_more_servers_than_before_are_named() -> None:
    assert THERE.fewer_than(THERE.joined_by(2, ("demo", "dora"))) == [2]
    assert THERE.fewer_than(THERE.joined_by(1, ("third", "eve"))) == [1]
    assert THERE.joined_by(1, ("third", "eve")).fewer_than(THERE) == []


def test_the_filter_puts_no_server_beside_another_of_its_user_nor_two_of_one_request() -> None:
    plan = select(hosts({}, {}, {}, {}), SPEC, 2, Rules((USER_APART,), (RAM,)))
    assert [pick.node for pick in plan.picks] == ["n2", "n4"]
    removed = plan.trail["filters"][0]["removed"]
    assert [(entry["node"], entry["why"]) for entry in removed] == [
        ("n1", "has a server of the same user."),
        ("n3", "has a server of the same user."),
    ]


def test_the_cost_prefers_nodes_without_servers_of_the_user_and_uses_the_others_when_it_must() -> None:
    table = hosts({}, {}, {}, {"up": False})
    plan = least_cost(table, SPEC, 4, Rules((), (), costs=(SAME_USER,)))
    assert [pick.node for pick in plan.picks] == ["n2", "n2", "n3", "n1"]


@pytest.mark.parametrize("sees", Sees)
def test_rules_see_as_much_as_the_most_curious_of_them(sees: Sees) -> None:
    rules = Rules((), (RAM,), costs=(Cost("c", SAME_USER.of, sees=sees),))
    assert (rules.occupants_read(), rules.kept()) == (sees, Sees.NOTHING)
    both = Rules((USER_APART,), (), sees=sees)
    assert (both.occupants_read(), both.kept()) == (max(sees, Sees.OWN), Sees.OWN)
