"""Servers on offers: where they were promised, once, and for nobody else."""

import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text

from climate.compute.zones.builds import builds, plan
from climate.compute.zones.builds.blobs import BlobKeys
from tests.compute.zones.build_plan_trees import (
    REFUSAL,
    changed,
    done,
    names_here,
    offered,
    refusal,
    rows,
    server,
    whole,
)
from tests.compute.zones.tree import Tree, Zone


def order(zone: Zone, blob: Any, user: str = "admin", **changes: Any) -> Any:
    """Ask for a server on an offer, as a parent does."""
    body = server(imageRef="demo", flavorRef="m1.tiny", blob=blob, **changes)
    return zone.ask("POST", "/servers", body, user=user)


def made(zone: Zone, blob: Any, **changes: Any) -> str:
    return str(done(order(zone, blob, **changes), 202)["server"]["id"])


def build(number: int = 0, build_id: str = "") -> dict[str, Any]:
    """The build of a parent that an order names."""
    return {
        "id": build_id or str(uuid4()),
        "launch_index": number,
        "project_id": "their-project",
        "user_id": "their-user",
    }


def node_of(zone: Zone, blob: str) -> str:
    """The node that an offer of a zone names inside."""
    with zone.compute.engine.connect() as conn:
        now = zone.compute.now(conn)
    item = plan.read(zone.compute.zones.blobs.open(zone.compute.zones.own_id(), blob, now).item)
    assert isinstance(item, plan.LocalItem)
    return item.nodename


def nodes(zone: Zone) -> list[str]:
    query = "SELECT n.name FROM compute_servers s JOIN compute_nodes n ON n.id = s.node_id ORDER BY s.launch_index"
    with zone.compute.engine.connect() as conn:
        return list(conn.execute(text(query)).scalars())


def test_ds_8_a_server_lands_on_the_node_of_its_offer_without_scheduling(pair: Tree) -> None:
    left = pair["left"]
    found = offered(left, num_instances=4)
    wanted = [node_of(left, one["blob"]) for one in found]
    assert set(wanted) == {"left-n1", "left-n2"}
    for number, one in reversed(list(enumerate(found))):
        made(left, one["blob"], zone_build=build(number))
    assert nodes(left) == wanted


def test_what_the_user_asked_for_arrives(pair: Tree) -> None:
    left = pair["left"]
    (one,) = offered(left)
    given = {
        "name": "web-3",
        "metadata": {"a": "b"},
        "key_name": "their-key",
        "user_data": base64.b64encode(b"#!/bin/sh").decode(),
        "description": "hello",
        "accessIPv4": "192.0.2.1",
        "reservation_id": "r-theirs",
        "zone_build": build(2),
    }
    server_id = made(left, one["blob"], **given)
    (row,) = rows(left, "compute_servers")
    kept = {"name": "web-3", "metadata": {"a": "b"}, "key_name": "their-key", "user_data": given["user_data"]}
    kept |= {"description": "hello", "access_ipv4": "192.0.2.1", "build_id": "r-theirs", "launch_index": 2}
    assert {key: row[key] for key in kept} == kept
    assert str(row["id"]) == server_id
    left.settle()
    assert rows(left, "compute_servers")[0]["status"] == "ACTIVE"


def test_the_older_name_of_the_parameter_is_taken_too(pair: Tree) -> None:
    (one,) = offered(pair["left"])
    body = server(imageRef="demo", flavorRef="m1.tiny", zone_blob=one["blob"])
    assert done(pair["left"].ask("POST", "/servers", body), 202)["server"]["id"]


def test_a_node_without_room_any_more_is_an_error_and_no_other_node_is_taken(pair: Tree) -> None:
    left = pair["left"]
    (one,) = offered(left, num_instances=1)
    with left.compute.engine.begin() as conn:
        full = "UPDATE compute_nodes SET used_ram_mb = 12288 WHERE name = :name"
        conn.execute(text(full), {"name": node_of(left, one["blob"])})
    before = whole(left)
    said = refusal(order(left, one["blob"]), 409)
    assert "The place that was offered for the server is gone" in said
    assert "left-n" not in said
    after = whole(left)
    assert {table for table in before if before[table] != after[table]} <= {"compute_quotas"}


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE compute_nodes SET maintenance = 'work' WHERE name = :name",
        "UPDATE compute_nodes SET present = false WHERE name = :name",
        "UPDATE compute_services SET enabled = false WHERE true OR host = :name",
    ],
)
def test_a_node_that_must_not_be_used_any_more_is_an_error(pair: Tree, spoil: str) -> None:
    left = pair["left"]
    (one,) = offered(left)
    name = {"name": node_of(left, one["blob"])}
    try:
        with left.compute.engine.begin() as conn:
            conn.execute(text(spoil), name)
        assert "offered for the server is gone" in refusal(order(left, one["blob"]), 409)
    finally:
        with left.compute.engine.begin() as conn:
            conn.execute(text("UPDATE compute_nodes SET maintenance = NULL, present = true"))
            conn.execute(text("UPDATE compute_services SET enabled = true"))
    assert names_here(left) == []


def flipped(blob: str) -> str:
    raw = bytearray(base64.b64decode(blob))
    raw[-1] ^= 1
    return base64.b64encode(bytes(raw)).decode()


@pytest.fixture
def blob(pair: Tree) -> Iterator[str]:
    """An offer of the left zone, which is as it was before when the test ends."""
    left = pair["left"]
    (one,) = offered(left)
    before = whole(left)
    yield one["blob"]
    assert whole(left) == before


def test_a_forged_blob_is_refused_before_anything_is_done(pair: Tree, blob: str) -> None:
    for forged in (flipped(blob), blob[:-4], "x" * 100, base64.b64encode(b"\x01" + bytes(60)).decode()):
        assert refusal(order(pair["left"], forged), 400) == REFUSAL


def test_what_is_no_text_or_too_long_is_refused(pair: Tree, blob: str) -> None:
    for wrong in (7, ["x"], {"a": 1}, "A" * 200_000):
        assert refusal(order(pair["left"], wrong), 400) == REFUSAL
    assert order(pair["left"], "A" * 2**20).status_code == 413


def test_a_blob_of_another_zone_is_refused(pair: Tree, blob: str) -> None:
    (foreign,) = offered(pair["right"])
    assert refusal(order(pair["left"], foreign["blob"]), 400) == REFUSAL


def test_a_blob_of_another_zone_with_the_same_key_is_refused(pair: Tree, blob: str) -> None:
    left, right = pair["left"], pair["right"]
    with changed(right, zones=replace(right.compute.zones, blobs=left.compute.zones.blobs)):
        (foreign,) = offered(right)
    assert refusal(order(left, foreign["blob"]), 400) == REFUSAL


def test_an_expired_blob_is_refused(pair: Tree, blob: str) -> None:
    left = pair["left"]
    old = replace(left.compute.zones.blobs, seconds=-1.0)
    with changed(left, zones=replace(left.compute.zones, blobs=old)):
        assert refusal(order(left, blob), 400) == REFUSAL


def test_a_blob_whose_key_is_gone_is_refused_and_one_of_an_old_key_is_not(pair: Tree, blob: str) -> None:
    left = pair["left"]
    with changed(left, zones=replace(left.compute.zones, blobs=BlobKeys.read("another key of left", 600))):
        assert refusal(order(left, blob), 400) == REFUSAL


def test_a_key_is_rotated_while_offers_are_under_way(pair: Tree) -> None:
    left = pair["left"]
    (one,) = offered(left)
    both = BlobKeys.read("another key of left, the secret key of left", 600)
    with changed(left, zones=replace(left.compute.zones, blobs=both)):
        assert made(left, one["blob"])


def test_only_administrators_use_offers(pair: Tree, blob: str) -> None:
    assert "administrators" in refusal(order(pair["left"], blob, user="demo"), 403)


@pytest.mark.parametrize(
    "changes",
    [
        {"max_count": 2},
        {"num_instances": 1},
        {"reservation_id": "no good id"},
        {"reservation_id": 7},
        {"zone_build": "x"},
        {"zone_build": {"id": "x", "more": 1}},
        {"zone_build": {"id": "../x"}},
        {"zone_build": {"id": "x", "launch_index": -1}},
        {"zone_build": {"id": "x", "launch_index": 1000}},
        {"zone_build": {"id": "x", "project_id": ""}},
        {"flavorRef": "m1.unknown"},
        {"imageRef": "plan9"},
        {"flavorRef": 7},
    ],
)
def test_an_order_that_makes_no_sense_is_refused(pair: Tree, blob: str, changes: dict[str, Any]) -> None:
    given = {"imageRef": "demo", "flavorRef": "m1.tiny", "blob": blob, **changes}
    assert refusal(pair["left"].ask("POST", "/servers", server(**given)), 400)


def test_b15_an_order_that_comes_twice_makes_one_server(pair: Tree) -> None:
    left = pair["left"]
    (one,) = offered(left)
    same = {"reservation_id": "r-same", "zone_build": build(3)}
    assert made(left, one["blob"], **same) == made(left, one["blob"], **same)
    assert names_here(left) == ["s"]


def test_an_order_that_comes_again_after_its_offer_has_expired_finds_its_server(pair: Tree) -> None:
    left = pair["left"]
    (one,) = offered(left)
    same = {"reservation_id": "r-same", "zone_build": build(3)}
    first = made(left, one["blob"], **same)
    old = replace(left.compute.zones.blobs, seconds=-1.0)
    with changed(left, zones=replace(left.compute.zones, blobs=old)):
        assert made(left, one["blob"], **same) == first


def test_orders_without_a_number_are_distinguished_by_their_offers(pair: Tree) -> None:
    left = pair["left"]
    first, second = offered(left, num_instances=2)
    one = made(left, first["blob"], reservation_id="r-same")
    assert made(left, first["blob"], reservation_id="r-same") == one
    assert made(left, second["blob"], reservation_id="r-same") != one
    assert len(names_here(left)) == 2


def test_an_offer_is_good_for_one_server(pair: Tree) -> None:
    left = pair["left"]
    (one,) = offered(left)
    made(left, one["blob"], zone_build=build(0))
    assert refusal(order(left, one["blob"], zone_build=build(1)), 400) == REFUSAL
    assert refusal(order(left, one["blob"]), 400) == REFUSAL
    assert names_here(left) == ["s"]


def test_the_same_order_many_times_at_once_makes_one_server(pair: Tree) -> None:
    left = pair["left"]
    (one,) = offered(left)
    same = {"zone_build": build(0)}
    left.person("admin")
    with ThreadPoolExecutor(6) as pool:
        found = set(pool.map(lambda _: made(left, one["blob"], **same), range(6)))
    assert len(found) == 1
    assert names_here(left) == ["s"]


def test_one_offer_for_many_servers_at_once_makes_one(pair: Tree) -> None:
    left = pair["left"]
    (one,) = offered(left)
    left.person("admin")
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda number: order(left, one["blob"], zone_build=build(number)), range(6)))
    assert sorted(answer.status_code for answer in answers) == [202, 400, 400, 400, 400, 400]
    assert names_here(left) == ["s"]


def test_whose_a_server_is_stands_in_the_child(pair: Tree) -> None:
    left = pair["left"]
    (one,) = offered(left)
    ours = build(4)
    server_id = made(left, one["blob"], zone_build=ours)
    found = done(left.ask("GET", f"/zones/builds/{ours['id']}"))["servers"]
    whose = {"project_id": "their-project", "user_id": "their-user"}
    assert found == [{"id": server_id, "launch_index": 4, **whose}]
    assert done(left.ask("GET", "/zones/builds/another"))["servers"] == []
    refusal(left.ask("GET", f"/zones/builds/{ours['id']}", user="demo"), 403)


def test_used_offers_are_forgotten_when_they_are_over_and_their_servers_gone(pair: Tree) -> None:
    left = pair["left"]
    first, second = offered(left, num_instances=2)
    kept = made(left, first["blob"], zone_build=build(0))
    gone = made(left, second["blob"], zone_build=build(0))
    left.settle()
    left.ask("DELETE", f"/servers/{gone}")
    left.settle()
    builds.sweep(left.compute)
    assert len(rows(left, "compute_zone_offers")) == 2
    with left.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_zone_offers SET expires_at = now() - interval '1 s'"))
    builds.sweep(left.compute)
    assert [str(row["server_id"]) for row in rows(left, "compute_zone_offers")] == [kept]


def test_the_quota_of_the_account_holds_in_the_child(pair: Tree) -> None:
    left = pair["left"]
    (one,) = offered(left)
    project = done(left.person("admin").ask("GET", "/identity/v3/auth/projects"))["projects"][0]["id"]
    done(left.ask("PUT", f"/os-quota-sets/{project}", {"quota_set": {"instances": 0}}))
    assert "Quota exceeded" in refusal(order(left, one["blob"]), 403)


def grandchild_offer(plans: Tree) -> str:
    """An offer that the left zone makes for its own child."""
    left, grandchild = plans["left"], plans["grandchild"]
    with left.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_zones SET weight_offset = -1000"))
    (one, *_) = offered(left)
    raw = base64.b64decode(one["blob"])
    assert grandchild.name.encode() not in raw
    return str(one["blob"])


def test_an_offer_of_a_grandchild_goes_through_both_levels(plans: Tree) -> None:
    left, grandchild = plans["left"], plans["grandchild"]
    blob = grandchild_offer(plans)
    same = {"name": "deep", "reservation_id": "r-deep", "zone_build": build(1), "metadata": {"a": "b"}}
    server_id = made(left, blob, **same)
    assert made(left, blob, **same) == server_id
    (row,) = rows(grandchild, "compute_servers")
    assert (str(row["id"]), row["name"], row["build_id"], row["metadata"]) == (server_id, "deep", "r-deep", {"a": "b"})
    assert names_here(left) == []
    (owned,) = rows(left, "compute_zone_servers")
    assert (str(owned["server_id"]), owned["build_id"]) == (server_id, "r-deep")
    (used,) = rows(grandchild, "compute_zone_offers")
    assert (used["owner_project"], used["owner_user"]) == ("their-project", "their-user")
    assert refusal(order(left, blob, zone_build=build(2)), 400) == REFUSAL


def test_each_level_opens_its_own_layer_only(plans: Tree) -> None:
    blob = grandchild_offer(plans)
    assert refusal(order(plans["grandchild"], blob), 400) == REFUSAL
    assert refusal(order(plans["parent"], blob), 400) == REFUSAL


def test_a_grandchild_without_room_is_reported_and_the_offer_is_not_spent(plans: Tree) -> None:
    left, grandchild = plans["left"], plans["grandchild"]
    blob = grandchild_offer(plans)
    with grandchild.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_nodes SET used_ram_mb = 12288"))
    said = refusal(order(left, blob), 409)
    assert "gone" in said
    assert "grandchild-n" not in said
    assert rows(left, "compute_zone_offers") == []
    with grandchild.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_nodes SET used_ram_mb = 0"))
    assert made(left, blob)


def test_a_grandchild_that_does_not_answer_is_asked_again_by_the_next_order(plans: Tree) -> None:
    left, grandchild = plans["left"], plans["grandchild"]
    blob = grandchild_offer(plans)
    same = {"zone_build": build(0)}
    plans.applications[grandchild.name] = hanging
    assert "repeat the request" in refusal(order(left, blob, **same), 503)
    assert refusal(order(left, blob, zone_build=build(1)), 400) == REFUSAL
    plans.cut(grandchild.name)
    assert "repeat the request" in refusal(order(left, blob, **same), 503), "it may have built the first order"
    plans.mend(grandchild.name)
    assert made(left, blob, **same) == str(rows(grandchild, "compute_servers")[0]["id"])


def hanging(environ: dict[str, Any], start_response: Any) -> Any:
    """An application whose answers nobody understands."""
    start_response("200 OK", [("Content-Type", "text/plain"), ("X-Subject-Token", "t")])
    return [b"?"]
