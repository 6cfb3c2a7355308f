"""Requests that are forwarded again: one statement and one request to one child, with the rights of the first time."""

from uuid import uuid4

import pytest

from tests.api.compute.zones.test_no_children import counted
from tests.api.compute.zones.test_zone_routing import act, shown
from tests.compute.zones.tree import Tree


def test_known_server_costs_a_level_one_statement_and_one_request(family: Tree) -> None:
    server_id = family["grandchild"].boot()
    assert shown(family["parent"], server_id).status_code == 200
    family.asked.clear()
    with counted(family["parent"]) as above, counted(family["left"]) as between:
        assert shown(family["parent"], server_id).status_code == 200
    assert (len(above), len(between)) == (1, 1)
    path = f"/servers/{server_id}"
    assert family.asked == [("left", path), ("grandchild", path)]


def test_action_on_a_known_server_is_one_request_to_one_child(family: Tree) -> None:
    parent, server_id = family["parent"], family["right"].boot()
    assert shown(parent, server_id).status_code == 200
    family.asked.clear()
    assert act(parent, server_id, "os-stop") == 202
    assert family.asked == [("right", f"/servers/{server_id}/action")]


@pytest.mark.parametrize("is_placed", [False, True], ids=["found", "placed"])
def test_known_server_stays_hidden_from_others(family: Tree, is_placed: bool) -> None:
    parent, server_id = family["parent"], family["right"].boot(user="admin")
    if is_placed:
        parent.place(server_id, 2, user="admin")
    for _ in range(2):
        assert shown(parent, server_id).status_code == 200
    family.asked.clear()
    assert shown(parent, server_id, "demo").status_code == 404
    assert family.asked == []


def test_owner_of_a_known_server_costs_one_statement(family: Tree) -> None:
    parent, server_id = family["parent"], family["right"].boot(user="admin")
    parent.place(server_id, 2)
    assert shown(parent, server_id, "demo").status_code == 200
    with counted(parent) as seen:
        answer = shown(parent, server_id, "demo")
    assert answer.status_code == 200
    assert len(seen) == 1


def test_known_server_that_is_gone_is_looked_for_everywhere(family: Tree) -> None:
    parent, left = family["parent"], family["left"]
    server_id = left.boot()
    assert shown(parent, server_id).status_code == 200
    assert parent.ask("DELETE", f"/servers/{server_id}").status_code == 204
    left.settle()
    for _ in range(2):
        family.asked.clear()
        assert shown(parent, server_id).status_code == 404
    assert {zone for zone, _ in family.asked} == {"left", "right", "grandchild"}


def test_known_server_of_a_child_that_has_died(family: Tree) -> None:
    parent, server_id = family["parent"], family["right"].boot()
    assert shown(parent, server_id).status_code == 200
    family.cut("right")
    answer = shown(parent, server_id)
    assert answer.status_code == 404
    assert "do not answer: 2" in answer.get_json()["itemNotFound"]["message"]
    family.mend("right")
    assert shown(parent, server_id).status_code == 200
    family.cut("right")
    assert act(parent, server_id, "os-stop") == 503, "the child may have stopped it"


def test_known_server_that_is_shown_by_another_name_is_not_passed_on(family: Tree) -> None:
    parent, server_id = family["parent"], family["left"].boot()
    assert shown(parent, server_id).status_code == 200
    family.applications["left"] = family.applications["right"]
    assert shown(parent, server_id).status_code == 404
    assert shown(parent, str(uuid4())).status_code == 404
