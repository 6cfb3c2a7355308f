"""Aggregates, availability zones and hypervisors over the API."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Engine, event

from climate.compute.nodes import services
from climate.compute.virt.in_memory import MemoryDriver
from climate.service.hosts import reconcile
from tests.api.compute.api_clients import NODES, SERVICE, Person, World, done, message

C = "/compute/v2.1"
AGGREGATES = f"{C}/os-aggregates"
HYPERVISORS = f"{C}/os-hypervisors"


def make(admin: Person, name: str, zone: str | None = None) -> int:
    return int(
        done(admin("POST", AGGREGATES, {"aggregate": {"name": name, "availability_zone": zone}}))["aggregate"]["id"]
    )


def act(admin: Person, number: int, action: str, **details: Any) -> Any:
    return done(admin("POST", f"{AGGREGATES}/{number}/action", {action: details}))["aggregate"]


def test_an_aggregate_from_its_making_to_its_end(admin: Person) -> None:
    number = make(admin, "a1", "z1")
    path = f"{AGGREGATES}/{number}"
    shown = admin.get(path, "2.41")["aggregate"]
    assert (shown["name"], shown["availability_zone"], shown["hosts"]) == ("a1", "z1", [])
    assert shown["uuid"]
    assert act(admin, number, "add_host", host="std-1")["hosts"] == ["std-1"]
    changed = act(admin, number, "set_metadata", metadata={"ssd": "true", "availability_zone": None})
    assert changed["metadata"] == {"ssd": "true"}
    assert done(admin("PUT", path, {"aggregate": {"name": "a2"}}))["aggregate"]["name"] == "a2"
    assert act(admin, number, "remove_host", host=SERVICE)["hosts"] == []
    assert done(admin("DELETE", path)) is None
    assert message(admin("GET", path), 404, "itemNotFound")


NO_AGGREGATES: list[Any] = [
    ({"aggregate": {"name": "freepool"}}, 409, "conflictingRequest"),
    ({"aggregate": {"name": ""}}, 400, "badRequest"),
    ({"aggregate": {"name": "a\nb"}}, 400, "badRequest"),
    ({"aggregate": {"name": "x" * 256}}, 400, "badRequest"),
    ({"aggregate": {"name": "x", "availability_zone": "a:b"}}, 400, "badRequest"),
    ({"aggregate": {"name": "x", "availability_zone": ""}}, 400, "badRequest"),
    ({"aggregate": {"name": "x", "availability_zone": "internal"}}, 400, "badRequest"),
    ({"aggregate": {"name": "x", "hosts": ["std-1"]}}, 400, "badRequest"),
    ({"aggregate": []}, 400, "badRequest"),
    ({}, 400, "badRequest"),
]


def test_an_aggregate_that_cannot_be_is_refused(admin: Person) -> None:
    for body, status, key in NO_AGGREGATES:
        assert message(admin("POST", AGGREGATES, body), status, key)
        assert len(admin.get(AGGREGATES)["aggregates"]) == 1


NO_ACTIONS: list[Any] = [
    ({"add_host": {"host": "nobody"}}, 404, "itemNotFound"),
    ({"add_host": {"host": 7}}, 400, "badRequest"),
    ({"add_host": {}}, 400, "badRequest"),
    ({"remove_host": {"host": "std-1"}}, 404, "itemNotFound"),
    ({"set_metadata": {"metadata": None}}, 400, "badRequest"),
    ({"set_metadata": {"metadata": {"a": 7}}}, 400, "badRequest"),
    ({"set_metadata": {"metadata": {"": "x"}}}, 400, "badRequest"),
    ({"set_metadata": {"metadata": {"a": "x" * 256}}}, 400, "badRequest"),
    ({"set_metadata": {"metadata": {"availability_zone": "a,b"}}}, 400, "badRequest"),
    ({"add_host": {"host": "std-1"}, "remove_host": {"host": "std-1"}}, 400, "badRequest"),
    ({"destroy": {}}, 400, "badRequest"),
    ({}, 400, "badRequest"),
]


def test_an_action_that_cannot_be_is_refused(admin: Person) -> None:
    path = f"{AGGREGATES}/{make(admin, 'a1')}"
    for body, status, key in NO_ACTIONS:
        before = admin.get(path)
        assert message(admin("POST", f"{path}/action", body), status, key)
        assert admin.get(path) == before
        for nobody in ("999999", "a1", "-1", "0x1", "99999999999999999999"):
            assert message(
                admin("POST", f"{AGGREGATES}/{nobody}/action", {"add_host": {"host": "std-1"}}), 404, "itemNotFound"
            )


def test_members_see_nothing_of_aggregates_and_hypervisors(member: Person) -> None:
    for method, path in (
        ("GET", AGGREGATES),
        ("POST", AGGREGATES),
        ("GET", f"{AGGREGATES}/1"),
        ("PUT", f"{AGGREGATES}/1"),
        ("DELETE", f"{AGGREGATES}/1"),
        ("POST", f"{AGGREGATES}/1/action"),
        ("GET", f"{HYPERVISORS}/1"),
        ("GET", f"{HYPERVISORS}/1/uptime"),
        ("GET", f"{HYPERVISORS}/gpu/search"),
        ("GET", f"{HYPERVISORS}/gpu/servers"),
        ("GET", f"{HYPERVISORS}/statistics"),
    ):
        assert message(member(method, path, {} if method in ("POST", "PUT") else None), 403, "forbidden")


def test_zones_come_from_aggregates_and_reach_nodes_services_and_servers(
    there: World, admin: Person, member: Person
) -> None:
    assert [zone["zoneName"] for zone in member.get(f"{C}/os-availability-zone")["availabilityZoneInfo"]] == ["nova"]
    act(admin, make(admin, "a1", "rack-1"), "add_host", host="std-1")
    zones = {zone["zoneName"]: zone for zone in admin.get(f"{C}/os-availability-zone/detail")["availabilityZoneInfo"]}
    assert list(zones) == ["nova", "rack-1", "internal"]
    assert zones["rack-1"]["hosts"][SERVICE]["nova-compute"]["available"] is True
    assert all(zone["zoneState"]["available"] for zone in zones.values())
    server = member.booted(availability_zone="rack-1")
    there.settle()
    assert member.get(f"{C}/servers/{server}")["server"]["OS-EXT-AZ:availability_zone"] == "rack-1"
    assert admin.get(f"{C}/servers/{server}")["server"]["OS-EXT-SRV-ATTR:hypervisor_hostname"] == "std-1"
    done(admin("PUT", f"{C}/os-hosts/std-1", {"maintenance_mode": "enable"}))
    short = {one["zoneName"]: one for one in member.get(f"{C}/os-availability-zone")["availabilityZoneInfo"]}
    assert short["rack-1"] == {"zoneName": "rack-1", "zoneState": {"available": False}, "hosts": None}


def test_hypervisors_show_their_servers_and_what_is_taken(there: World, admin: Person, member: Person) -> None:
    server = member.booted(name="web")
    there.settle()
    found = admin.get(f"{HYPERVISORS}?with_servers=true", "2.53")["hypervisors"]
    assert [one["hypervisor_hostname"] for one in found if one["servers"]] == ["std-1"]
    mine = next(one for one in found if one["servers"])
    assert mine["servers"] == [{"uuid": server, "name": "web"}]
    shown = admin.get(f"{HYPERVISORS}/{mine['id']}?with_servers=1", "2.53")["hypervisor"]
    assert (shown["servers"], shown["vcpus_used"], shown["memory_mb_used"], shown["running_vms"]) == (
        mine["servers"],
        1,
        512,
        1,
    )
    assert "servers" not in admin.get(f"{HYPERVISORS}/{mine['id']}", "2.53")["hypervisor"]
    old = admin.get(f"{HYPERVISORS}/std/servers", "2.52")["hypervisors"]
    assert (old[0]["servers"], isinstance(old[0]["id"], int)) == (mine["servers"], True)
    sums = admin.get(f"{HYPERVISORS}/statistics")["hypervisor_statistics"]
    assert (sums["count"], sums["vcpus"], sums["running_vms"]) == (len(NODES), 8 * len(NODES), 1)
    assert sums["free_ram_mb"] == sums["memory_mb"] - sums["memory_mb_used"]


def test_hypervisors_have_numbers_before_2_53_and_uuids_since(admin: Person) -> None:
    old, new = (admin.get(HYPERVISORS, version)["hypervisors"][0]["id"] for version in ("2.52", "2.53"))
    for version, right, wrong in (("2.52", old, new), ("2.53", new, old)):
        assert admin.get(f"{HYPERVISORS}/{right}", version)["hypervisor"]["id"] == right
        headers = {"OpenStack-API-Version": f"compute {version}"}
        for path in (f"{HYPERVISORS}/{wrong}", f"{HYPERVISORS}/gpu-1", f"{HYPERVISORS}/{uuid4()}/uptime"):
            assert message(admin("GET", path, headers=headers), 404, "itemNotFound")
    headers = {"OpenStack-API-Version": "compute 2.53"}
    assert message(admin("GET", f"{HYPERVISORS}/gpu/search", headers=headers), 404, "itemNotFound")
    page = admin.get(f"{HYPERVISORS}/detail?limit=2", "2.53")
    rest = admin.get(page["hypervisors_links"][0]["href"].removeprefix("http://here"), "2.53")
    names = [one["hypervisor_hostname"] for one in page["hypervisors"] + rest["hypervisors"]]
    assert (names, "hypervisors_links" in rest) == (list(NODES), False)
    last = rest["hypervisors"][-1]["id"]
    assert admin.get(f"{HYPERVISORS}/detail?limit=2&marker={last}", "2.53") == {"hypervisors": []}


def test_hosts_that_another_reservation_service_keeps_are_left_to_it(there: World, admin: Person) -> None:
    free = next(one["id"] for one in admin.get(AGGREGATES)["aggregates"] if one["name"] == "freepool")
    assert act(admin, free, "add_host", host="std-1")["hosts"] == ["gpu-1", "gpu-2", "std-1"]
    reconcile.correct(there.climate)
    assert admin.get(f"{AGGREGATES}/{free}")["aggregate"]["hosts"] == ["gpu-1", "gpu-2", "std-1"]
    answer = admin("POST", f"{AGGREGATES}/{free}/action", {"remove_host": {"host": "gpu-1"}})
    assert "registered for leases" in message(answer, 409, "conflictingRequest")
    assert act(admin, free, "remove_host", host="std-1")["hosts"] == ["gpu-1", "gpu-2"]


@contextmanager
def counted(engine: Engine) -> Iterator[list[str]]:
    """The statements that are sent meanwhile."""
    sent: list[str] = []

    def note(*given: Any) -> None:
        sent.append(given[2])

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(engine, "before_cursor_execute", note)


@pytest.mark.parametrize(
    "path",
    [
        "/image/v2/images",
        "/network/v2.0/ports",
        f"{C}/os-aggregates",
        f"{C}/os-hypervisors/detail?with_servers=1",
        f"{C}/os-availability-zone/detail",
        f"{C}/os-server-groups?all_projects=1",
        f"{C}/flavors/detail?is_public=None",
        f"{C}/os-keypairs",
    ],
)
def test_a_list_takes_as_many_statements_however_long_it_is(there: World, admin: Person, path: str) -> None:
    headers = {"OpenStack-API-Version": "compute 2.53"}
    costs = []
    for turn in range(2):
        with counted(there.here.compute.engine) as sent:
            done(admin("GET", path, headers=headers))
        costs.append(len(sent))
        for place in range(3 if turn == 0 else 0):
            act(admin, make(admin, f"a{place}", "z"), "add_host", host=SERVICE)
            group = {"server_group": {"name": f"g{place}", "policies": ["affinity"]}}
            hint = {"group": done(admin("POST", f"{C}/os-server-groups", group))["server_group"]["id"]}
            admin.booted(hint)
            done(admin("POST", f"{C}/os-keypairs", {"keypair": {"name": f"k{place}"}}))
            body = {"name": f"f{place}", "vcpus": 1, "ram": 64, "disk": 1}
            done(admin("POST", f"{C}/flavors", {"flavor": body}))
            done(admin("POST", "/image/v2/images", {"name": f"i{place}", "visibility": "public"}), 201)
    assert costs[0] == costs[1] > 0


def test_a_node_that_is_not_reported_any_more_is_shown_down_while_a_server_holds_it(
    there: World, admin: Person, member: Person
) -> None:
    held = member.booted()
    there.settle()
    services.refresh(replace(there.here.compute, driver=MemoryDriver([])))
    states = {row["hypervisor_hostname"]: row["state"] for row in admin.get(f"{HYPERVISORS}/detail")["hypervisors"]}
    assert states["std-1"] == "down"
    assert done(member("DELETE", f"/compute/v2.1/servers/{held}"), 204) is None
    there.settle()
    services.refresh(replace(there.here.compute, driver=MemoryDriver([])))
    left = [row["hypervisor_hostname"] for row in admin.get(HYPERVISORS)["hypervisors"]]
    assert "std-1" not in left
