"""Builds over the tree: carried out by weight, resumed after a crash, and never doubled."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text

from climate.compute.models.request import BootRequest
from climate.compute.nodes.services import IMAGE_ID
from climate.compute.placement import decisions
from climate.compute.store.projects import flavors
from climate.compute.zones.builds import builds, provisioning
from tests.campaign import cases
from tests.compute.zones.build_plan_trees import (
    built,
    carry_out,
    done,
    look,
    make_due,
    names_here,
    refusal,
    rows,
    server,
)
from tests.compute.zones.tree import Tree, Zone


class Crash(BaseException):
    """The process dies."""


def everything(tree: Tree) -> list[str]:
    """Names of the servers of all zones."""
    return sorted(name for zone in tree.zones.values() for name in names_here(zone))


def numbered(count: int) -> list[str]:
    return sorted(f"s-{number + 1}" for number in range(count))


def fill(zone: Zone, free_mb: int = 0) -> None:
    """Leave so much memory on each node of a zone."""
    with zone.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_nodes SET used_ram_mb = 12288 - :free"), {"free": free_mb})


def disturbed(tree: Tree, name: str, before: Callable[[dict[str, Any]], None] | None = None) -> None:
    """Let a zone do what it is asked for on POST /servers, and its answer be lost; `before` comes first."""
    inner = tree.applications[name]

    def application(environ: dict[str, Any], start_response: Any) -> Any:
        if environ["REQUEST_METHOD"] != "POST" or not environ["PATH_INFO"].endswith("/servers"):
            return inner(environ, start_response)
        if before:
            before(environ)
        list(inner(environ, lambda *_: None))
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [b"the answer is lost"]

    tree.applications[name] = application


def test_b2_a_build_is_spread_by_weight_over_the_tree(plans: Tree) -> None:
    build = built(plans["parent"], num_instances=20, metadata={"a": "b"})
    assert (build["state"], build["requested"], build["placed"], build["fault"]) == ("done", 20, 20, None)
    assert everything(plans) == numbered(20)
    counts = {name: len(names_here(zone)) for name, zone in plans.zones.items()}
    assert counts == {"parent": 6, "left": 6, "right": 4, "grandchild": 4}
    assert [one["launch_index"] for one in build["servers"]] == list(range(20))
    ids = {str(row["id"]) for zone in plans.zones.values() for row in rows(zone, "compute_servers")}
    assert {one["id"] for one in build["servers"]} == ids
    for zone in plans.zones.values():
        assert all(row["metadata"] == {"a": "b"} for row in rows(zone, "compute_servers"))
        assert all(row["build_id"] == build["reservation_id"] for row in rows(zone, "compute_servers"))
        zone.settle()
        assert all(row["status"] == "ACTIVE" for row in rows(zone, "compute_servers"))


def test_the_servers_of_children_are_their_owners_in_the_parent(plans: Tree) -> None:
    parent = plans["parent"]
    build = built(parent, num_instances=8)
    owned = rows(parent, "compute_zone_servers")
    assert {row["project_id"] for row in owned} == {build["project_id"]}
    assert {str(row["server_id"]) for row in owned} == {one["id"] for one in build["servers"] if one["zone"]}
    assert {row["build_id"] for row in owned} == {build["reservation_id"]}
    for row in rows(plans["right"], "compute_zone_offers"):
        assert row["owner_project"] == build["project_id"]


def test_b1_the_answer_comes_before_any_server(plans: Tree) -> None:
    parent = plans["parent"]
    answer = done(parent.ask("POST", "/zones/boot", server(num_instances=4)))
    assert set(answer) == {"reservation_id"}
    assert everything(plans) == []
    build = look(parent, answer["reservation_id"])
    assert (build["state"], build["requested"], build["placed"]) == ("queued", 4, 0)
    carry_out(parent)
    assert everything(plans) == numbered(4)


def test_ds_13_a_reservation_id_is_created_or_echoed(pair: Tree) -> None:
    parent = pair["parent"]
    body = server(name="server_test", metadata={"hello": "world", "open": "stack"}, personality=[])
    assert done(parent.ask("POST", "/zones/boot", body))["reservation_id"]
    body["server"]["reservation_id"] = "myresid"
    assert done(parent.ask("POST", "/zones/boot", body)) == {"reservation_id": "myresid"}
    assert "in use" in refusal(parent.ask("POST", "/zones/boot", body), 409)


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 1),
        ({"num_instances": 3}, 3),
        ({"num_instances": "3"}, 3),
        ({"min_count": "2", "max_count": "3"}, 3),
        ({"min_count": 2}, 2),
        ({"max_count": 2}, 2),
    ],
)
def test_b11_the_number_of_servers(pair: Tree, changes: dict[str, Any], count: int) -> None:
    build = built(pair["parent"], **changes)
    assert (build["requested"], build["placed"]) == (count, count)


@pytest.mark.parametrize(
    "changes",
    [
        {"num_instances": 0},
        {"num_instances": -1},
        {"num_instances": 10**6},
        {"num_instances": "many"},
        {"num_instances": True},
        {"num_instances": None},
        {"num_instances": 2, "max_count": 2},
        {"min_count": 0},
        {"max_count": 10**6},
        {"min_count": 3, "max_count": 2},
        {"name": ""},
        {"name": 7},
        {"name": ...},
        {"imageRef": "nothing"},
        {"flavorRef": "nothing"},
        {"personality": [{"path": "/etc/x", "contents": "eA=="}]},
        {"reservation_id": ""},
        {"blob": "x"},
    ],
)
def test_a_build_that_makes_no_sense_is_refused(pair: Tree, changes: dict[str, Any]) -> None:
    refusal(pair["parent"].ask("POST", "/zones/boot", server(**changes)), 400)
    assert rows(pair["parent"], "compute_zone_builds") == []


def test_a_build_that_waits_for_a_lease_is_refused_with_what_to_do(pair: Tree) -> None:
    hints = {"OS-SCH-HNT:scheduler_hints": {"reserved": "True", "lease_params": "{}"}}
    text = refusal(pair["parent"].ask("POST", "/zones/boot", server() | hints), 400)
    assert "POST /servers" in text


def test_builds_are_for_administrators(pair: Tree) -> None:
    refusal(pair["parent"].ask("POST", "/zones/boot", server(), user="demo"), 403)


def test_a_build_that_finds_less_says_how_many_and_why(plans: Tree) -> None:
    for zone in plans.zones.values():
        fill(zone, free_mb=1024)
    fill(plans["right"])
    build = built(plans["parent"], num_instances=20)
    assert (build["state"], build["requested"], build["placed"]) == ("done", 20, 12)
    assert build["fault"].startswith("12 of 20 servers were placed. No valid host was found for 8:")
    assert "zone 2: has no room for it" in build["fault"]
    assert len(everything(plans)) == 12


def test_b13_a_build_that_finds_nothing_tells_its_owner(plans: Tree) -> None:
    for zone in plans.zones.values():
        fill(zone)
    build = built(plans["parent"], num_instances=2)
    assert (build["placed"], build["unknown"], build["servers"]) == (0, 0, [])
    assert "No valid host was found for 2: this zone: no host is left for it; zone 1:" in build["fault"]
    assert "-n1" not in build["fault"]
    assert everything(plans) == []


def test_a_child_that_lacks_the_flavor_is_skipped_with_that_reason(pair: Tree) -> None:
    parent = pair["parent"]
    wanted = {"flavor": {"name": "odd", "vcpus": 1, "ram": 64, "disk": 1, "id": "odd"}}
    done(parent.ask("POST", "/flavors", wanted))
    try:
        build = built(parent, num_instances=3, flavorRef="odd")
    finally:
        parent.ask("DELETE", "/flavors/odd")
    assert build["placed"] == 3
    assert len(names_here(parent)) == 3
    (reason,) = [zone["reason"] for zone in build["zones"] if zone["zone_id"] == 1]
    assert "Flavor odd could not be found in this zone." in reason


def test_a_child_that_cannot_be_reached_costs_nothing_but_its_share(pair: Tree) -> None:
    pair.cut("left")
    build = built(pair["parent"], num_instances=4)
    assert (build["placed"], build["state"]) == (4, "done")
    assert len(names_here(pair["parent"])) == 4


def test_a_child_that_goes_between_estimate_and_order_leaves_its_share_to_others(plans: Tree) -> None:
    inner = plans.applications["right"]

    def refuses(environ: dict[str, Any], start_response: Any) -> Any:
        if environ["PATH_INFO"].endswith("/servers"):
            fill(plans["right"])
        return inner(environ, start_response)

    plans.applications["right"] = refuses
    build = built(plans["parent"], num_instances=20)
    assert (build["placed"], build["fault"]) == (20, None)
    assert names_here(plans["right"]) == []
    assert everything(plans) == numbered(20)


def test_an_answer_that_is_lost_is_found_again_and_nothing_is_doubled(plans: Tree) -> None:
    parent = plans["parent"]
    disturbed(plans, "right")
    build = built(parent, num_instances=20)
    made = len(names_here(plans["right"]))
    assert (build["state"], build["unknown"], made) == ("waiting", 4, 4)
    assert build["placed"] == 16
    assert "4 may be in a zone that does not answer" in build["fault"]
    assert everything(plans) == numbered(20)
    plans.mend("right")
    make_due(parent)
    carry_out(parent)
    again = look(parent, build["reservation_id"])
    assert (again["state"], again["placed"], again["unknown"], again["fault"]) == ("done", 20, 0, None)
    assert everything(plans) == numbered(20)
    assert len(rows(parent, "compute_zone_servers")) == 14


def test_a_child_that_is_away_when_it_is_asked_again_may_have_built(plans: Tree) -> None:
    """It has got the first order, and died before it could answer."""
    parent = plans["parent"]
    disturbed(plans, "right")
    build = built(parent, num_instances=20)
    plans.cut("right")
    for _ in range(2):
        make_due(parent)
        carry_out(parent)
        waits = look(parent, build["reservation_id"])
        assert (waits["state"], waits["placed"], waits["unknown"]) == ("waiting", 16, 4)
    plans.mend("right")
    make_due(parent)
    carry_out(parent)
    again = look(parent, build["reservation_id"])
    assert (again["state"], again["placed"], again["unknown"], again["fault"]) == ("done", 20, 0, None)
    assert everything(plans) == numbered(20)


def test_a_build_that_waits_asks_again_at_growing_intervals(pair: Tree) -> None:
    parent = pair["parent"]
    disturbed(pair, "left")
    fill(parent)
    build = built(parent)
    assert build["state"] == "waiting"
    assert builds.to_ring(parent.compute, again=0) == []
    pauses = []
    for _ in range(3):
        make_due(parent)
        carry_out(parent)
        (row,) = rows(parent, "compute_zone_builds")
        with parent.compute.engine.connect() as conn:
            pauses.append((row["due_at"] - parent.compute.now(conn)).total_seconds())
    assert pauses == sorted(pauses)
    assert pauses[-1] > 2 * provisioning.FIRST_WAIT
    assert names_here(pair["left"]) == ["s"]


def test_a_build_does_not_wait_for_a_child_that_was_removed(pair: Tree) -> None:
    parent = pair["parent"]
    disturbed(pair, "left")
    fill(parent)
    build = built(parent)
    assert "1 build waits for its answer" in refusal(parent.ask("DELETE", "/zones/1"), 409)
    done(parent.ask("DELETE", "/zones/1?force=1"))
    make_due(parent)
    carry_out(parent)
    again = look(parent, build["reservation_id"])
    assert (again["state"], again["placed"], again["unknown"]) == ("done", 0, 1)


@pytest.mark.parametrize("moment", cases(range(1, 9), {2, 5, 7}))
def test_a_worker_that_dies_anywhere_loses_and_doubles_nothing(plans: Tree, moment: int) -> None:
    """The worker dies at a moment around its orders; another one goes on."""
    parent = plans["parent"]
    reservation = done(parent.ask("POST", "/zones/boot", server(num_instances=12)))["reservation_id"]
    seen = Counter[str]()

    def crash(environ: dict[str, Any]) -> None:
        seen["orders"] += 1
        if seen["orders"] == moment:
            raise Crash

    for name in ("left", "right"):
        inner = plans.applications[name]

        def application(environ: dict[str, Any], start_response: Any, inner: Any = inner) -> Any:
            is_order = environ["REQUEST_METHOD"] == "POST" and environ["PATH_INFO"].endswith("/servers")
            answer = inner(environ, start_response)
            if is_order:
                crash(environ)
            return answer

        plans.applications[name] = application
    with pytest.raises(Crash):
        carry_out(parent)
    for name in ("left", "right"):
        plans.mend(name)
    make_due(parent)
    carry_out(parent)
    build = look(parent, reservation)
    assert (build["state"], build["placed"], build["fault"]) == ("done", 12, None)
    assert everything(plans) == numbered(12)
    assert len(rows(parent, "compute_zone_servers")) == 12 - len(names_here(parent))


def test_two_workers_do_not_carry_out_one_build(pair: Tree) -> None:
    parent = pair["parent"]
    done(parent.ask("POST", "/zones/boot", server(num_instances=4)))
    (build_id,) = builds.to_ring(parent.compute, again=0)
    asked: list[str] = []

    def meanwhile(environ: dict[str, Any]) -> None:
        asked.append("order")
        provisioning.run(parent.compute, build_id)

    inner = pair.applications["left"]

    def application(environ: dict[str, Any], start_response: Any) -> Any:
        if environ["PATH_INFO"].endswith("/zones/select"):
            meanwhile(environ)
        return inner(environ, start_response)

    pair.applications["left"] = application
    provisioning.run(parent.compute, build_id)
    assert asked == ["order"]
    assert everything(pair) == numbered(4)
    provisioning.run(parent.compute, build_id)
    assert everything(pair) == numbered(4)


def test_a_worker_that_was_taken_over_writes_nothing(pair: Tree) -> None:
    parent = pair["parent"]
    reservation = done(parent.ask("POST", "/zones/boot", server(num_instances=4)))["reservation_id"]
    (build_id,) = builds.to_ring(parent.compute, again=0)
    inner = pair.applications["left"]

    def application(environ: dict[str, Any], start_response: Any) -> Any:
        if environ["PATH_INFO"].endswith("/zones/select"):
            pair.mend("left")
            make_due(parent)
            provisioning.run(parent.compute, build_id)
        return inner(environ, start_response)

    pair.applications["left"] = application
    provisioning.run(parent.compute, build_id)
    assert look(parent, reservation)["placed"] == 4
    assert everything(pair) == numbered(4)


def test_b16_the_quota_of_the_parent_counts_servers_in_children(pair: Tree) -> None:
    parent = pair["parent"]
    fill(parent)
    build = built(parent, num_instances=3)
    project = build["project_id"]
    quota = f"/os-quota-sets/{project}"
    used = done(parent.ask("GET", f"{quota}/detail"))["quota_set"]
    assert {name: used[name]["in_use"] for name in ("instances", "cores", "ram")} == {
        "instances": 3,
        "cores": 3,
        "ram": 1536,
    }
    done(parent.ask("PUT", quota, {"quota_set": {"instances": 5}}))
    assert "Quota exceeded" in refusal(parent.ask("POST", "/zones/boot", server(num_instances=3)), 403)
    assert built(parent, min_count=1, max_count=3)["requested"] == 2
    refusal(parent.ask("POST", "/servers", server()), 403)


def test_what_a_build_has_still_to_place_counts_against_the_quota(pair: Tree) -> None:
    parent = pair["parent"]
    reservation = done(parent.ask("POST", "/zones/boot", server(num_instances=3)))["reservation_id"]
    project = look(parent, reservation)["project_id"]
    detail = f"/os-quota-sets/{project}/detail"
    assert done(parent.ask("GET", detail))["quota_set"]["instances"]["in_use"] == 3
    carry_out(parent)
    assert done(parent.ask("GET", detail))["quota_set"]["instances"]["in_use"] == 3


def test_what_could_not_be_placed_counts_no_more(pair: Tree) -> None:
    parent = pair["parent"]
    for zone in pair.zones.values():
        fill(zone)
    build = built(parent, num_instances=3)
    detail = f"/os-quota-sets/{build['project_id']}/detail"
    assert done(parent.ask("GET", detail))["quota_set"]["instances"]["in_use"] == 0


def test_a_request_for_this_zone_stays_here(pair: Tree) -> None:
    parent = pair["parent"]
    group = done(
        parent.ask("POST", "/os-server-groups", {"server_group": {"name": "g", "policies": ["anti-affinity"]}})
    )
    hints = {"OS-SCH-HNT:scheduler_hints": {"group": group["server_group"]["id"]}}
    body = server(num_instances=2) | hints
    reservation = done(parent.ask("POST", "/zones/boot", body))["reservation_id"]
    carry_out(parent)
    assert look(parent, reservation)["placed"] == 2
    assert len({row["node_id"] for row in rows(parent, "compute_servers")}) == 2
    assert pair.asked == []


def test_z10_a_server_that_no_node_takes_is_placed_in_a_child(plans: Tree) -> None:
    parent = plans["parent"]
    fill(parent)
    made = done(parent.ask("POST", "/servers", server(name="web"), user="demo"), 202)["server"]["id"]
    places = [name for name, zone in plans.zones.items() if names_here(zone)]
    assert len(places) == 1
    assert places != ["parent"]
    (owned,) = rows(parent, "compute_zone_servers")
    assert str(owned["server_id"]) == made
    shown = done(parent.ask("GET", f"/servers/{made}", user="demo"))["server"]
    assert shown["name"] == "web"


def test_a_build_that_is_carried_out_at_once_is_not_rung_for(pair: Tree) -> None:
    compute = pair["parent"].compute
    with compute.engine.connect() as conn:
        flavor = next(one for one in flavors.listed(conn) if one.id == "1")
    request = BootRequest("p", "u", "s", flavor, IMAGE_ID, count=2, least=2)
    worker = str(uuid4())
    build = builds.create(compute, request, worker=worker)
    assert builds.to_ring(compute, again=0) == []
    provisioning.run(compute, build.id)
    assert everything(pair) == []
    provisioning.run(compute, build.id, worker)
    assert everything(pair) == numbered(2)


def test_all_of_the_least_or_nothing_is_placed_at_once(pair: Tree) -> None:
    for zone in pair.zones.values():
        fill(zone, free_mb=512)
    body = server(min_count=5, max_count=6)
    made = done(pair["parent"].ask("POST", "/servers", body, user="demo"), 202)["server"]["id"]
    assert done(pair["parent"].ask("GET", f"/servers/{made}", user="demo"))["server"]["status"] == "ERROR"
    assert names_here(pair["left"]) == []
    assert len(rows(pair["parent"], "compute_servers")) == 5


def test_the_quota_of_the_account_is_not_shown_to_users(pair: Tree) -> None:
    parent, left = pair["parent"], pair["left"]
    fill(parent)
    project = done(left.person("admin").ask("GET", "/identity/v3/auth/projects"))["projects"][0]["id"]
    done(left.ask("PUT", f"/os-quota-sets/{project}", {"quota_set": {"instances": 0}}))
    build = built(parent)
    assert build["placed"] == 0
    assert "HTTP 403: the account of this zone lacks the permission there" in build["fault"]


def test_a_server_that_is_taken_here_asks_no_child(pair: Tree) -> None:
    done(pair["parent"].ask("POST", "/servers", server(), user="demo"), 202)
    assert pair.asked == []


def test_a_server_that_nobody_takes_is_in_error_with_all_reasons(pair: Tree) -> None:
    parent = pair["parent"]
    for zone in pair.zones.values():
        fill(zone)
    made = done(parent.ask("POST", "/servers", server(), user="demo"), 202)["server"]["id"]
    fault = done(parent.ask("GET", f"/servers/{made}", user="demo"))["server"]["fault"]["message"]
    assert "There are not enough hosts available" in fault
    assert "zone 1: has no room for it" in fault


def test_a_server_of_a_child_that_does_not_tell_is_not_asked_for_again(pair: Tree) -> None:
    parent = pair["parent"]
    fill(parent)
    disturbed(pair, "left")
    assert "continues" in refusal(parent.ask("POST", "/servers", server(), user="demo"), 503)
    pair.mend("left")
    make_due(parent)
    carry_out(parent)
    (owned,) = rows(parent, "compute_zone_servers")
    assert [str(owned["server_id"])] == [str(row["id"]) for row in rows(pair["left"], "compute_servers")]


def test_a_reserved_server_sleeps_in_the_zone_that_was_chosen(pair: Tree) -> None:
    parent, left = pair["parent"], pair["left"]
    fill(parent)
    params = json.dumps({"name": "later", "start": "2031-01-01 10:00", "end": "2031-01-01 12:00"})
    body = server() | {"OS-SCH-HNT:scheduler_hints": {"reserved": "True", "lease_params": params}}
    made = done(parent.ask("POST", "/servers", body, user="demo"), 202)["server"]["id"]
    (row,) = rows(left, "compute_servers")
    assert (str(row["id"]), row["status"]) == (made, "RESERVED")
    leases = done(left.person("admin").ask("GET", "/reservation/v1/leases"))["leases"]
    assert [lease["name"] for lease in leases] == ["later"]
    assert done(parent.person("admin").ask("GET", "/reservation/v1/leases"))["leases"] == []


def test_owners_see_their_builds_and_nobody_elses(pair: Tree) -> None:
    parent = pair["parent"]
    fill(parent)
    mine = built(parent)["reservation_id"]
    refusal(parent.ask("GET", f"/os-zone-builds/{mine}", user="demo"), 404)
    assert done(parent.ask("GET", "/os-zone-builds", user="demo"))["builds"] == []
    made = done(parent.ask("POST", "/servers", server(), user="demo"), 202)["server"]["id"]
    (theirs,) = done(parent.ask("GET", "/os-zone-builds", user="demo"))["builds"]
    build = look(parent, theirs["reservation_id"], "demo")
    assert [one["id"] for one in build["servers"]] == [made]
    assert not {"zones", "project_id", "id"} & set(build)
    assert len(done(parent.ask("GET", "/os-zone-builds"))["builds"]) == 2


def test_the_answers_of_all_zones_are_kept_with_the_decision(pair: Tree) -> None:
    parent = pair["parent"]
    build = built(parent, num_instances=4)
    here = next(one["id"] for one in build["servers"] if one["zone"] is None)
    kinds = [decision.kind for decision in decisions.of(parent.compute, here)]
    assert sorted(kinds) == ["placed", "zones"]
    there = next(one["id"] for one in build["servers"] if one["zone"])
    told = done(parent.ask("GET", f"/servers/{there}/scheduling"))["scheduling"]["decisions"]
    (decision,) = told
    assert [zone["zone_id"] for zone in decision["trail"]["zones"]] == [None, 1]
    assert decision["trail"]["zone"] == {"zone_id": 1, "launch_index": 2}
    assert "left-n" not in json.dumps(told)
    refusal(parent.ask("GET", f"/servers/{there}/scheduling", user="demo"), 403)
    for _ in range(50):
        decisions.forget(parent.compute)
    assert decisions.of(parent.compute, there)


def test_a_done_build_keeps_no_user_data(pair: Tree) -> None:
    built(pair["parent"], user_data="aGVsbG8=")
    (row,) = rows(pair["parent"], "compute_zone_builds")
    assert row["request"] == {}
