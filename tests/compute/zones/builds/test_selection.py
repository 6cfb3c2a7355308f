"""Estimates over the tree: one plan of all zones, of which nothing is left behind."""

import json
from dataclasses import replace
from typing import Any

import pytest

from climate.compute.models.flavor import Flavor
from climate.compute.models.request import BootRequest
from climate.compute.nodes.services import IMAGE_ID
from climate.compute.scheduler.distributed.costs import NOOP
from climate.compute.scheduler.distributed.least_cost import host_filter
from climate.compute.store.zones import child_zones
from climate.compute.zones.builds import selection
from climate.compute.zones.builds.blobs import BlobKeys
from climate.compute.zones.builds.plan import ChildItem, LocalItem
from climate.compute.zones.builds.selection import PlanRequest
from climate.compute.zones.client_interface import ChildAnswer, ChildError, ChildRequest, ChildTimeout
from climate.compute.zones.models import ChildZone
from tests.compute.zones.build_plan_trees import changed, done, offered, refusal, spec, whole
from tests.compute.zones.tree import Tree, Zone

TINY = Flavor("1", "m1.tiny", 1, 512, 1)


class Canned:
    """Children that answer what they were told to."""

    def __init__(self, *answers: ChildAnswer | ChildError) -> None:
        self.answers = answers
        self.asked: list[tuple[ChildZone, ChildRequest]] = []

    def send(self, zone: ChildZone, request: ChildRequest, seconds: float | None = None) -> ChildAnswer:
        raise NotImplementedError

    def send_all(self, requests: Any, seconds: float | None = None) -> list[ChildAnswer | ChildError]:
        self.asked += requests
        return list(self.answers)


def weights(*values: float) -> ChildAnswer:
    return ChildAnswer(200, {"weights": [{"weight": value, "blob": f"blob {value}"} for value in values]})


def request(count: int = 1, **changes: Any) -> BootRequest:
    asked = {"project_id": "p", "user_id": "u", "name": "s", "flavor": TINY, "image_id": IMAGE_ID, "count": count}
    return BootRequest(**{**asked, **changes})


def canned(zone: Zone, *answers: ChildAnswer | ChildError, registered: int = 3) -> tuple[Any, Canned]:
    """The zone with so many children that answer as they were told to."""
    client = Canned(*answers)
    with zone.compute.engine.begin() as conn:
        for place in range(registered):
            values = {"api_url": f"http://c{place}", "username": "u", "password": zone.compute.zones.seal("secret")}
            child_zones.add(conn, values)
    return replace(zone.compute, zones=replace(zone.compute.zones, client=client)), client


def test_ds_1_each_zone_offers_as_many_places_as_servers_are_asked_for(lone: Tree) -> None:
    compute, client = canned(lone["parent"], *[weights(1, 2, 3, 4)] * 3)
    chosen = selection.select(compute, PlanRequest(request(4), "demo"))
    assert len(chosen.plan) == 16
    assert sum(isinstance(item, LocalItem) for item in chosen.plan) == 4
    assert [item.weight for item in chosen.plan] == sorted(item.weight for item in chosen.plan)
    sent = [one.body for _, one in client.asked]
    assert [one.path for _, one in client.asked] == ["/zones/select"] * 3
    assert all(body is not None and body["num_instances"] == 4 for body in sent)


def test_ds_7_no_hosts_and_no_children_make_an_empty_plan(lone: Tree) -> None:
    huge = replace(TINY, ram_mb=10**6)
    chosen = selection.select(lone["parent"].compute, PlanRequest(request(flavor=huge)))
    assert chosen.plan == ()
    assert chosen.reasons == ["this zone: no host is left for it"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (ChildTimeout("zone 1 (http://c0) did not answer within 5 s"), "zone 1: does not answer"),
        (
            ChildAnswer(400, {"badRequest": {"message": "Flavor x is missing."}}),
            "zone 1: HTTP 400: Flavor x is missing.",
        ),
        (ChildAnswer(500, None), "zone 1: HTTP 500"),
        (ChildAnswer(200, {"weights": "many"}), "zone 1: its answer has no list 'weights'"),
        (ChildAnswer(200, {"weights": []}), "zone 1: has no room for it"),
    ],
)
def test_a_child_that_offers_nothing_costs_its_reason_and_not_the_plan(
    lone: Tree, answer: ChildAnswer | ChildError, reason: str
) -> None:
    compute, _ = canned(lone["parent"], answer, weights(0.001), registered=2)
    chosen = selection.select(compute, PlanRequest(request()))
    assert [type(item) for item in chosen.plan] == [ChildItem, LocalItem]
    assert chosen.reasons == [reason]


def test_an_inactive_child_is_not_asked_and_that_is_reported(lone: Tree) -> None:
    compute, client = canned(lone["parent"], weights(0.001), registered=2)
    with compute.engine.begin() as conn:
        child_zones.change(conn, 1, {"is_active": False})
    chosen = selection.select(compute, PlanRequest(request()))
    assert [zone.id for zone, _ in client.asked] == [2]
    assert chosen.reasons == ["zone 1: was skipped: it has not answered lately"]


@pytest.mark.parametrize(
    "changes",
    [
        {"hints": {"reservation": "r"}},
        {"hints": {"group": "g"}},
        {"hints": {"same_host": ["s"]}},
        {"hints": {"different_host": "s"}},
        {"networks": ("net",)},
        {"destination": "h:n", "admin": True},
        {"zone": "nova:host", "admin": True},
        {"flavor": replace(TINY, extra_specs={"aggregate_instance_extra_specs:reservation": "r"})},
    ],
)
def test_a_request_that_names_something_of_this_zone_is_not_sent_to_children(
    lone: Tree, changes: dict[str, Any]
) -> None:
    compute, client = canned(lone["parent"], weights(1), registered=1)
    if "same_host" in str(changes) or "different_host" in str(changes):
        changes = {"hints": dict.fromkeys(changes["hints"], "6f70656e-0000-4000-8000-000000000000")}
    selection.select(compute, PlanRequest(request(**changes)))
    assert client.asked == []


def test_select_answers_weights_and_blobs_and_nothing_else(plans: Tree) -> None:
    found = offered(plans["parent"], num_instances=4)
    assert len(found) == 4
    assert all(set(one) == {"weight", "blob"} for one in found)
    assert [one["weight"] for one in found] == sorted(one["weight"] for one in found)
    text = json.dumps(found)
    for zone in plans.zones.values():
        assert f"{zone.name}-n1" not in text


def test_the_spec_may_be_a_text_that_holds_an_object(plans: Tree) -> None:
    plain = done(plans["parent"].ask("POST", "/zones/select", spec()))
    twice = done(plans["parent"].ask("POST", "/zones/select", json.dumps(spec())))
    assert [one["weight"] for one in plain["weights"]] == [one["weight"] for one in twice["weights"]]


def test_ds_10_an_empty_spec_is_one_server_of_no_size(plans: Tree) -> None:
    found = done(plans["parent"].ask("POST", "/zones/select", "{}"))["weights"]
    assert len(found) == 1
    assert all(set(one) == {"weight", "blob"} for one in found)


def test_estimates_change_nothing_in_any_zone_and_not_the_next_estimate(plans: Tree) -> None:
    first = [one["weight"] for one in offered(plans["parent"], num_instances=9)]
    before = {name: whole(zone) for name, zone in plans.zones.items()}
    again = [[one["weight"] for one in offered(plans["parent"], num_instances=9)] for _ in range(5)]
    assert again == [first] * 5
    assert {name: whole(zone) for name, zone in plans.zones.items()} == before
    for zone in plans.zones.values():
        with zone.compute.engine.connect() as conn:
            held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM "
            query = f"{held} pg_database WHERE datname = current_database())"
            assert conn.exec_driver_sql(query).scalar_one() == 0


def test_the_scheduler_is_a_choice_and_the_simplest_weighs_everything_1(pair: Tree) -> None:
    left = pair["left"]
    rules = replace(left.compute.rules, costs=(NOOP,))
    simple = replace(left.compute, schedule=host_filter, rules=rules)
    chosen = selection.select(simple, PlanRequest(request(3)))
    assert [item.weight for item in chosen.plan] == [1, 1, 1]


def test_weights_of_a_child_are_brought_to_the_scale_of_its_parent(pair: Tree) -> None:
    parent = pair["parent"]
    with parent.compute.engine.begin() as conn:
        child_zones.change(conn, 1, {"weight_offset": 1000.0, "weight_scale": 10.0})
    raw = [one["weight"] for one in offered(pair["left"], num_instances=2)]
    chosen = selection.select(parent.compute, PlanRequest(request(2), "demo"))
    items = [item for item in chosen.plan if isinstance(item, ChildItem)]
    assert [item.raw_weight for item in items] == raw
    assert [item.weight for item in items] == [1000 + 10 * weight for weight in raw]
    (report,) = [one for one in chosen.reports if one.zone_id is not None]
    assert (report.offered, report.offset, report.scale) == (2, 1000, 10)


def test_without_a_key_a_zone_makes_no_estimates_and_says_so(pair: Tree) -> None:
    left = pair["left"]
    with changed(left, zones=replace(left.compute.zones, blobs=BlobKeys())):
        text = refusal(left.ask("POST", "/zones/select", spec()), 409)
        chosen = selection.select(pair["parent"].compute, PlanRequest(request(), "demo"))
    assert "CLIMATE_BUILD_PLAN_ENCRYPTION_KEY is not set" in text
    assert "CLIMATE_BUILD_PLAN_ENCRYPTION_KEY" in chosen.reasons[0]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"instance_type": {"name": "m1.unknown"}}, "Flavor m1.unknown could not be found in this zone."),
        ({"instance_type": {"name": "m1.tiny", "memory_mb": 513}}, "another size: ram_mb differs"),
        ({"instance_properties": {"image_name": "plan9"}}, "Image plan9 could not be found in this zone."),
        ({"num_instances": 0}, "from 1 to 1000"),
        ({"num_instances": 10**6}, "from 1 to 1000"),
        ({"num_instances": "4"}, "from 1 to 1000"),
        ({"num_instances": True}, "from 1 to 1000"),
        ({"instance_type": []}, "instance_type must be an object"),
        ({"instance_type": {"name": ""}}, "name must be a text"),
        ({"instance_type": {"name": "m1.tiny", "vcpus": -1}}, "vcpus must be a whole number"),
        ({"scheduler_hints": "x"}, "scheduler_hints must be an object"),
        ({"scheduler_hints": {"reservation": 7}}, "reservation"),
        ({"filter": 7}, "filter must be a text"),
        ({"blob": "x"}, "blob is for POST /servers"),
    ],
)
def test_a_spec_that_cannot_be_served_is_refused(pair: Tree, changes: dict[str, Any], says: str) -> None:
    assert says in refusal(pair["left"].ask("POST", "/zones/select", spec(**changes)), 400)


@pytest.mark.parametrize("body", ["[]", "7", '"x"', "{", "", [], 7])
def test_a_body_that_holds_no_spec_is_refused(pair: Tree, body: Any) -> None:
    assert refusal(pair["left"].ask("POST", "/zones/select", body), 400)


def test_estimates_are_for_administrators(pair: Tree) -> None:
    refusal(pair["left"].ask("POST", "/zones/select", spec(), user="demo"), 403)
