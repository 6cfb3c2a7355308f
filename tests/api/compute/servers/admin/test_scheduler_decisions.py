"""Why a server is where it is: all of it for administrators, and no node's name for anybody else."""

from typing import Any
from uuid import uuid4

import pytest

from tests.api.compute.api_clients import NODES, SERVICE, Person, World, done, message

SERVERS = "/compute/v2.1/servers"
NAMES = (*NODES, SERVICE)
TOO_LARGE = "5"
"""m1.xlarge: more memory than any node has."""


def explained(admin: Person, server_id: str) -> list[dict[str, Any]]:
    told = admin.get(f"{SERVERS}/{server_id}/scheduling")["scheduling"]
    assert told["server_id"] == server_id
    assert told["reservation_id"].startswith("r-")
    return list(told["decisions"])


def stages(decision: dict[str, Any]) -> dict[str, tuple[int, int]]:
    return {stage["name"]: (stage["start"], stage["end"]) for stage in decision["trail"]["filters"]}


def test_an_administrator_sees_each_filter_each_weight_and_the_choice(
    there: World, admin: Person, member: Person
) -> None:
    (decision,) = explained(admin, member.booted())
    assert (decision["kind"], decision["error"], decision["after"], decision["lost"]) == ("placed", None, None, [])
    assert next(iter(stages(decision))) == "ReservationFilter"
    assert stages(decision)["ReservationFilter"] == (3, 1)
    assert decision["trail"]["filters"][0]["removed"][0]["node"] == "gpu-1"
    assert decision["trail"]["asked"]["ram_mb"] == 512
    assert decision["trail"]["chosen"]["node"] == "std-1"
    assert decision["trail"]["chosen"]["host"] == SERVICE


def test_each_server_of_a_build_shows_its_own_node(there: World, admin: Person, member: Person) -> None:
    member.booted(min_count=2, max_count=2)
    two = admin.get(f"{SERVERS}/detail?all_tenants=1")["servers"]
    told = [explained(admin, server["id"])[0]["trail"] for server in two]
    assert [trail["chosen"]["node"] for trail in told] == ["std-1", "std-1"]
    assert told[0]["asked"]["servers"] == 2
    assert all("picks" not in trail for trail in told)


def test_a_refusal_says_what_was_asked_and_which_filter_left_none(there: World, admin: Person, member: Person) -> None:
    refused = member.booted(flavorRef=TOO_LARGE)
    server = member.get(f"{SERVERS}/{refused}")["server"]
    assert server["status"] == "ERROR"
    fault = server["fault"]["message"]
    assert fault.startswith("No valid host was found. There are not enough hosts available.")
    assert "RamFilter" in fault
    assert "16384" in fault
    (decision,) = explained(admin, refused)
    assert (decision["kind"], decision["error"]) == ("refused", fault)
    assert decision["trail"]["refused"] == "RamFilter"
    assert decision["trail"]["chosen"] is None
    last = decision["trail"]["filters"][-1]
    assert (last["name"], last["end"]) == ("RamFilter", 0)
    assert [gone["node"] for gone in last["removed"]] == ["std-1"]
    assert "8192" in last["removed"][0]["why"]


def test_whoever_is_refused_reads_no_name_of_a_node_anywhere(there: World, member: Person) -> None:
    refused = member.booted(flavorRef=TOO_LARGE)
    there.settle()
    paths = [f"{SERVERS}/{refused}", f"{SERVERS}/detail", f"{SERVERS}/{refused}/os-instance-actions"]
    for path in paths:
        said = member("GET", path).get_data(as_text=True)
        assert not [name for name in NAMES if name in said], path


def test_after_a_failure_the_retry_is_reported_and_its_reason_names_no_node_to_the_owner(
    there: World, admin: Person, member: Person
) -> None:
    there.here.driver.broken = set(NODES)
    failed = member.booted()
    there.settle()
    server = member.get(f"{SERVERS}/{failed}")["server"]
    assert server["status"] == "ERROR"
    assert "Last exception: node (its host) cannot make a server" in server["fault"]["message"]
    assert not [name for name in NAMES if name in member("GET", f"{SERVERS}/{failed}").get_data(as_text=True)]
    placed, retried = explained(admin, failed)
    assert placed["trail"]["chosen"]["node"] == "std-1"
    assert retried["kind"] == "retry"
    assert retried["after"] == {"host": SERVICE, "node": "std-1", "reason": "node std-1 cannot make a server"}
    assert retried["trail"]["refused"] == "RetryFilter"


@pytest.mark.parametrize("what", ["scheduling", "diagnostics"])
@pytest.mark.parametrize("kind", ["member", "reader", "stranger"])
def test_only_administrators_are_notified(there: World, member: Person, kind: str, what: str) -> None:
    made = member.booted()
    for server_id in (made, str(uuid4())):
        refusal = message(Person(there.app, kind)("GET", f"{SERVERS}/{server_id}/{what}"), 403, "forbidden")
        assert not [name for name in NAMES if name in refusal]


def test_diagnostics_tell_the_node_and_the_member_of_a_cluster(there: World, admin: Person, member: Person) -> None:
    made = member.booted()
    told = admin.get(f"{SERVERS}/{made}/diagnostics")
    server = there.here.look(made)
    assert told == {"state": server.status.lower(), "host": SERVICE, "node": server.node, "member": None}


def test_of_a_server_that_there_is_not_nothing_is_reported(there: World, admin: Person) -> None:
    for server_id in (str(uuid4()), "none", "x" * 300):
        message(admin("GET", f"{SERVERS}/{server_id}/scheduling"), 404, "itemNotFound")


def test_a_host_filter_is_named_by_a_text(there: World, member: Person) -> None:
    said = message(member.boot({"host_filter": 5}), 400, "badRequest")
    assert "host_filter" in said
    assert done(member("GET", SERVERS))["servers"] == []
