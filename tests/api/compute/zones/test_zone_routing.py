"""Requests about servers of other zones: who reaches what, and what comes back."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from climate.compute.zones import polling, registry
from climate.configuration import zones
from tests.compute.zones.tree import LATEST, C, Tree, Zone
from tests.flask_apps import app_of
from tests.identity.identity_factory import Asker


def shown(zone: Zone, server_id: str, user: str = "admin") -> Any:
    return zone.ask("GET", f"/servers/{server_id}", user=user, headers=LATEST)


def act(zone: Zone, server_id: str, action: str, user: str = "admin", details: Any = None) -> int:
    return zone.ask("POST", f"/servers/{server_id}/action", {action: details}, user).status_code


OPERATIONS = (
    ("os-stop", "SHUTOFF"),
    ("os-start", "ACTIVE"),
    ("pause", "PAUSED"),
    ("unpause", "ACTIVE"),
    ("suspend", "SUSPENDED"),
    ("resume", "ACTIVE"),
)
"""Operations on a server, and its status after each."""


def test_administrator_reaches_a_server_two_zones_below(family: Tree) -> None:
    parent, grandchild = family["parent"], family["grandchild"]
    server_id = grandchild.boot()
    answer = shown(parent, server_id)
    assert answer.status_code == 200
    server = answer.get_json()["server"]
    assert (server["id"], server["status"]) == (server_id, "ACTIVE")
    for action, status in OPERATIONS:
        assert act(parent, server_id, action) == 202
        grandchild.settle()
        assert shown(parent, server_id).get_json()["server"]["status"] == status
    assert parent.ask("DELETE", f"/servers/{server_id}").status_code == 204
    grandchild.settle()
    assert shown(parent, server_id).status_code == 404


def test_zone_may_have_two_parents_and_serves_both(family: Tree) -> None:
    parents = family["left"], family["right"]
    grandchild = family["grandchild"]
    family["right"].adopt(grandchild)
    for zone in parents:
        polling.poll(zone.compute)
        assert [child.name for child in registry.listed(zone.compute)] == ["grandchild"]
    assert registry.listed(grandchild.compute) == [], "a zone does not know its parents"
    server_id = grandchild.boot()
    for zone in (*parents, family["parent"]):
        assert shown(zone, server_id).get_json()["server"]["id"] == server_id
    listed = family["parent"].ask("GET", "/servers?recurse_zones=1&all_tenants=1").get_json()["servers"]
    assert [server["id"] for server in listed].count(server_id) == 1, "two ways lead to it"
    assert act(family["right"], server_id, "os-stop") == 202
    grandchild.settle()
    assert shown(family["left"], server_id).get_json()["server"]["status"] == "SHUTOFF"


def test_other_operations_reach_the_server(family: Tree) -> None:
    parent, server_id = family["parent"], family["right"].boot(metadata={"a": "b"})
    assert parent.ask("GET", f"/servers/{server_id}/metadata").get_json() == {"metadata": {"a": "b"}}
    assert parent.ask("PUT", f"/servers/{server_id}/metadata/k", {"meta": {"k": "v w"}}).status_code == 200
    assert parent.ask("GET", f"/servers/{server_id}/metadata/k").get_json() == {"meta": {"k": "v w"}}
    renamed = parent.ask("PUT", f"/servers/{server_id}", {"server": {"name": "other"}})
    assert renamed.get_json()["server"]["name"] == "other"
    console = parent.ask("POST", f"/servers/{server_id}/action", {"os-getConsoleOutput": {}})
    assert console.status_code == 200
    assert "output" in console.get_json()
    assert parent.ask("GET", f"/servers/{server_id}/os-instance-actions").status_code == 200
    assert act(parent, server_id, "unpause") == 409


def test_members_find_no_servers_of_children(family: Tree) -> None:
    server_id = family["left"].boot()
    for method, path, body in (
        ("GET", "", None),
        ("DELETE", "", None),
        ("PUT", "", {"server": {"name": "x"}}),
        ("POST", "/action", {"os-stop": None}),
        ("GET", "/metadata", None),
        ("GET", "/os-instance-actions", None),
    ):
        answer = family["parent"].ask(method, f"/servers/{server_id}{path}", body, user="demo")
        assert answer.status_code == 404, (method, path)
    assert family.asked == []


def test_owner_reaches_a_placed_server_and_others_do_not(family: Tree) -> None:
    parent, left = family["parent"], family["left"]
    owned, others = left.boot(user="admin"), left.boot(user="admin")
    parent.place(owned, 1, user="demo")
    parent.place(others, 1, user="admin")
    assert shown(parent, owned, "demo").get_json()["server"]["id"] == owned
    assert act(parent, owned, "os-stop", "demo") == 202
    left.settle()
    assert shown(left, owned).get_json()["server"]["status"] == "SHUTOFF"
    assert shown(parent, others, "demo").status_code == 404
    assert act(parent, others, "os-stop", "demo") == 404
    assert parent.ask("DELETE", f"/servers/{others}", user="demo").status_code == 404
    assert shown(parent, others).status_code == 200
    assert {zone for zone, _ in family.asked} == {"left"}, "the zone is known, and no other is asked"


def test_member_gains_no_right_of_the_account_in_the_child(family: Tree) -> None:
    parent, left = family["parent"], family["left"]
    server_id = left.boot(user="admin")
    parent.place(server_id, 1, user="demo")
    assert act(parent, server_id, "os-resetState", "demo", {"state": "error"}) == 403
    foreign = left.boot(user="demo")
    parent.place(foreign, 1, user="demo")
    assert shown(parent, foreign, "demo").status_code == 404, "it is no server of the parent's account"
    member = shown(parent, server_id, "demo").get_json()["server"]
    assert not [key for key in member if key.startswith("OS-EXT-SRV-ATTR")]


def test_no_name_of_a_host_leaves_a_zone(family: Tree) -> None:
    parent, left = family["parent"], family["left"]
    server_id = left.boot()
    action = left.ask("GET", f"/servers/{server_id}/os-instance-actions").get_json()["instanceActions"]
    paths = ["", "/metadata", "/ips", "/os-interface", "/os-instance-actions", "/scheduling"]
    paths += [f"/os-instance-actions/{one['request_id']}" for one in action]
    told = [parent.ask("GET", f"/servers/{server_id}{path}", headers=LATEST).get_data(as_text=True) for path in paths]
    service_host = left.compute.service_host
    assert f'"{service_host}"' in shown(left, server_id).get_data(as_text=True), "at home it is shown"
    assert not [text for text in told if "left-n" in text or f'"{service_host}"' in text]


def test_unknown_server_is_not_found(family: Tree) -> None:
    parent, unknown = family["parent"], str(uuid4())
    assert shown(parent, unknown).status_code == 404
    assert {zone for zone, _ in family.asked} == {"left", "right", "grandchild"}
    assert act(parent, unknown, "os-stop") == 404
    assert parent.ask("DELETE", f"/servers/{unknown}").status_code == 404


@pytest.mark.parametrize("server_id", ["7", "no-id", "x" * 36, "{00000000-0000-0000-0000-00000000000}"])
def test_zn_13_ids_of_other_shapes_are_never_routed(family: Tree, server_id: str) -> None:
    assert shown(family["parent"], server_id).status_code == 404
    assert family.asked == []


def test_server_of_this_zone_is_never_asked_for_elsewhere(family: Tree) -> None:
    parent = family["parent"]
    server_id = parent.boot(user="admin")
    assert shown(parent, server_id, "demo").status_code == 404
    assert parent.ask("GET", f"/servers/{server_id}/metadata/absent").status_code == 404
    assert family.asked == []


def test_zn_13_without_routing_nothing_is_found(family: Tree) -> None:
    parent, server_id = family["parent"], family["left"].boot()
    off = replace(parent.compute, zones=replace(parent.compute.zones, routing=False))
    asker = Asker(app_of(replace(parent.deployment, compute=off)), parent.token("admin"))
    assert asker.ask("GET", f"{C}/servers/{server_id}").status_code == 404
    assert family.asked == []


def test_dead_child_costs_no_answer(family: Tree) -> None:
    parent, server_id = family["parent"], family["right"].boot()
    family.cut("left")
    assert shown(parent, server_id).status_code == 200
    nobody = shown(parent, str(uuid4()))
    assert nobody.status_code == 404
    assert "do not answer: 1" in nobody.get_json()["itemNotFound"]["message"]


def test_placed_server_of_a_dead_child_is_unavailable(family: Tree) -> None:
    parent, server_id = family["parent"], family["left"].boot(user="admin")
    parent.place(server_id, 1)
    family.cut("left")
    assert shown(parent, server_id, "demo").status_code == 503
    assert act(parent, server_id, "os-stop", "demo") == 503


def test_placed_server_that_is_gone_is_forgotten(family: Tree) -> None:
    parent, left = family["parent"], family["left"]
    server_id = left.boot(user="admin")
    parent.place(server_id, 1)
    assert parent.ask("DELETE", f"/servers/{server_id}", user="demo").status_code == 204
    left.settle()
    assert shown(parent, server_id, "demo").status_code == 404
    family.asked.clear()
    assert shown(parent, server_id, "demo").status_code == 404
    assert family.asked == []


@pytest.mark.parametrize("answer", [{"zone": {"name": "x"}}, {"server": {"id": str(uuid4())}}, [], {"server": 5}])
def test_child_that_shows_something_else_does_not_have_the_server(family: Tree, answer: Any) -> None:
    parent, left = family["parent"], family["left"]
    server_id = family["right"].boot()

    def application(environ: dict[str, Any], start_response: Any) -> Any:
        if "/servers/" not in environ["PATH_INFO"]:
            return left.app(environ, start_response)
        start_response("200 OK", [("Content-Type", "application/json")])
        return [json.dumps(answer).encode()]

    family.applications["left"] = application
    assert shown(parent, server_id).get_json()["server"]["id"] == server_id
    assert shown(parent, str(uuid4())).status_code == 404


@pytest.fixture
def hanging(family: Tree) -> Iterator[list[str]]:
    """Zone `left` answers nothing until the test is over; the list has what it was asked."""
    over, asked = threading.Event(), []

    def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        asked.append(environ["PATH_INFO"])
        over.wait()
        start_response("503 Over", [])
        return []

    family.applications["left"] = application
    yield asked
    over.set()


def test_hanging_child_costs_its_deadline_once(family: Tree, hanging: list[str]) -> None:
    parent, server_ids = family["parent"], [family["right"].boot() for _ in range(3)]
    settings = replace(parent.deployment.settings, zone_timeout_seconds=1.0)
    engine, vault = parent.compute.engine, parent.deployment.climate.vault
    quick = zones.options(settings, engine, vault, family.transport)
    asker = Asker(
        app_of(replace(parent.deployment, compute=replace(parent.compute, zones=quick))), parent.token("admin")
    )
    for server_id in server_ids:
        asker.ask("GET", f"{C}/servers/{server_id}")
    assert len(hanging) == 1, "later requests do not wait for it again"


def test_parent_without_patience_makes_no_child_skipped(family: Tree, hanging: list[str]) -> None:
    parent, unknown = family["parent"], str(uuid4())
    hurried = {"X-Zone-Chain": "above", "X-Zone-Seconds": "0.001"}
    assert parent.ask("GET", f"/servers/{unknown}", headers=hurried).status_code == 404
    with parent.compute.engine.connect() as conn:
        now = parent.compute.now(conn)
    assert all(zone.is_asked(now) for zone in registry.listed(parent.compute))


def test_cycle_of_zones_ends_and_is_named(family: Tree) -> None:
    parent, grandchild = family["parent"], family["grandchild"]
    grandchild.adopt(parent)
    assert shown(parent, str(uuid4())).status_code == 404
    assert len(family.asked) <= 4, "each edge of the tree is asked once"
    (seen,) = grandchild.ask("GET", "/zones/detail").get_json()["zones"]
    assert "come back" in seen["last_error"]
