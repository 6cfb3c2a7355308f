"""Services and hosts, as an administrator sees and steers them over the wire."""

from typing import Any

import pytest
from sqlalchemy import text

from climate.compute.nodes import services
from climate.compute.store.networks import network_hosts
from tests.api.compute.api_clients import SERVICE, Person, World, done, message

C = "/compute/v2.1"
OLD, NEW = {"OpenStack-API-Version": "compute 2.11"}, {"OpenStack-API-Version": "compute 2.79"}


def service(admin: Person) -> Any:
    return admin.get(f"{C}/os-services?host={SERVICE}", "2.79")["services"][0]


def put(admin: Person, path: str, body: Any, version: dict[str, str] = NEW) -> Any:
    return admin("PUT", f"{C}{path}", body, headers=version)


def test_a_disabled_service_takes_no_new_servers_and_says_why(there: World, admin: Person) -> None:
    before = admin.booted()
    path = f"/os-services/{service(admin)['id']}"
    answer = done(put(admin, path, {"status": "disabled", "disabled_reason": "new disks"}))["service"]
    assert (answer["status"], answer["disabled_reason"], answer["state"]) == ("disabled", "new disks", "up")
    there.settle()
    assert admin.status(before) == "ACTIVE"
    assert admin.status(admin.booted()) == "ERROR"
    nodes = admin.get(f"{C}/os-hypervisors/detail", "2.79")["hypervisors"]
    assert {(node["status"], node["service"]["disabled_reason"]) for node in nodes} == {("disabled", "new disks")}
    answer = done(put(admin, path, {"status": "enabled"}))["service"]
    assert (answer["status"], answer["disabled_reason"]) == ("enabled", None)
    after = admin.booted()
    there.settle()
    assert admin.status(after) == "ACTIVE"


def test_a_service_is_down_when_an_administrator_says_so(there: World, admin: Person) -> None:
    path = f"/os-services/{service(admin)['id']}"
    answer = done(put(admin, path, {"forced_down": True}))["service"]
    assert (answer["state"], answer["forced_down"], answer["status"]) == ("down", True, "enabled")
    services.refresh(there.here.compute)
    assert service(admin)["state"] == "down"
    assert admin.status(admin.booted()) == "ERROR"
    assert done(put(admin, path, {"forced_down": False}))["service"]["state"] == "up"


def test_the_old_forms_answer_what_was_asked_for(admin: Person) -> None:
    whose = {"host": SERVICE, "binary": "nova-compute"}
    reason = {"disabled_reason": "disks"}
    assert done(put(admin, "/os-services/disable", whose, OLD)) == {"service": {**whose, "status": "disabled"}}
    answer = done(put(admin, "/os-services/disable-log-reason", {**whose, **reason}, OLD))
    assert answer == {"service": {**whose, "status": "disabled", **reason}}
    assert done(put(admin, "/os-services/enable", whose, OLD)) == {"service": {**whose, "status": "enabled"}}
    answer = done(put(admin, "/os-services/force-down", {**whose, "forced_down": True}, OLD))
    assert answer == {"service": {**whose, "forced_down": True}}
    assert service(admin)["forced_down"] is True
    assert isinstance(admin.get(f"{C}/os-services", "2.1")["services"][0]["id"], int)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "No updates were requested"),
        ({"status": "off"}, "enabled or disabled"),
        ({"disabled_reason": "x"}, "requires that status"),
        ({"status": "enabled", "disabled_reason": "x"}, "requires that status"),
        ({"status": "disabled", "disabled_reason": " "}, "1 to 255 characters"),
        ({"status": "disabled", "disabled_reason": "x" * 256}, "1 to 255 characters"),
        ({"forced_down": "perhaps"}, "true or false"),
        ({"status": ["disabled"]}, "enabled or disabled"),
        ({"host": "x"}, "no key 'host'"),
    ],
)
def test_what_cannot_be_changed_is_said(admin: Person, body: dict[str, Any], says: str) -> None:
    assert says in message(put(admin, f"/os-services/{service(admin)['id']}", body), 400, "badRequest")


def test_a_service_that_is_not_there_is_not_found(admin: Person) -> None:
    for name in ("enable", "none", "1", "00000000-0000-4000-8000-000000000000"):
        message(put(admin, f"/os-services/{name}", {"status": "enabled"}), 404, "itemNotFound")
        message(admin("DELETE", f"{C}/os-services/{name}", headers=NEW), 404, "itemNotFound")
    whose = {"host": SERVICE, "binary": "nova-compute"}
    message(put(admin, "/os-services/force-down", {**whose, "forced_down": True}, {}), 404, "itemNotFound")
    message(put(admin, "/os-services/enable", {**whose, "host": "other"}, OLD), 404, "itemNotFound")
    message(put(admin, "/os-services/enable", {**whose, "binary": "nova-conductor"}, OLD), 404, "itemNotFound")
    message(put(admin, "/os-services/enable", {"binary": "nova-compute"}, OLD), 400, "badRequest")


def test_a_service_is_forgotten_when_it_is_down_and_holds_nothing(there: World, admin: Person) -> None:
    path = f"{C}/os-services/{service(admin)['id']}"

    def refused() -> str:
        return message(admin("DELETE", path, headers=NEW), 409, "conflictingRequest")

    assert "is up" in refused()
    server = admin.booted()
    there.settle()
    done(put(admin, f"/os-services/{service(admin)['id']}", {"forced_down": True}))
    assert "still has servers (1)" in refused()
    done(admin("DELETE", f"{C}/servers/{server}"), 204)
    there.settle()
    assert "kept or lent for leases (2)" in refused()
    with there.climate.engine.begin() as conn:
        conn.execute(text("UPDATE compute_nodes SET pool = NULL"))
    done(admin("DELETE", path, headers=NEW), 204)
    assert admin.get(f"{C}/os-services", "2.79") == {"services": []}
    assert admin.get(f"{C}/os-hypervisors", "2.79") == {"hypervisors": []}


def test_a_node_in_maintenance_takes_no_new_servers(there: World, admin: Person) -> None:
    body = {"maintenance_mode": "enable", "reason": "new fan"}
    answer = done(put(admin, "/os-hosts/std-1", body, OLD))
    assert answer == {"host": "std-1", "maintenance_mode": "on_maintenance"}
    nodes = admin.get(f"{C}/os-hypervisors/detail?with_maintenance=true", "2.79")["hypervisors"]
    told = {node["hypervisor_hostname"]: node["climate:maintenance"] for node in nodes}
    assert told == {"gpu-1": None, "gpu-2": None, "std-1": "new fan"}
    nodes = admin.get(f"{C}/os-hypervisors/detail", "2.79")["hypervisors"]
    seen = {node["hypervisor_hostname"]: node for node in nodes}
    assert "climate:maintenance" not in seen["std-1"]
    assert (seen["std-1"]["status"], seen["gpu-1"]["status"]) == ("disabled", "enabled")
    assert seen["std-1"]["service"]["disabled_reason"] == "it is in maintenance: new fan"
    assert admin.status(admin.booted()) == "ERROR"
    answer = done(put(admin, "/os-hosts/std-1", {"maintenance_mode": "disable"}, OLD))
    assert answer == {"host": "std-1", "maintenance_mode": "off_maintenance"}
    server = admin.booted()
    there.settle()
    assert admin.status(server) == "ACTIVE"


def test_hosts_are_listed_and_shown_as_clients_before_2_43_know_them(there: World, admin: Person) -> None:
    assert admin.get(f"{C}/os-hosts") == {"hosts": [{"host_name": SERVICE, "service": "compute", "zone": "nova"}]}
    assert admin.get(f"{C}/os-hosts?zone=other") == {"hosts": []}
    assert admin.get(f"{C}/os-hosts?zone=") == admin.get(f"{C}/os-hosts")
    admin.booted()
    there.settle()
    total, used = (part["resource"] for part in admin.get(f"{C}/os-hosts/{SERVICE}")["host"])
    assert total == {"host": SERVICE, "project": "(total)", "cpu": 24, "memory_mb": 24576, "disk_gb": 300}
    assert used == {"host": SERVICE, "project": "(used_now)", "cpu": 1, "memory_mb": 512, "disk_gb": 1}
    assert done(put(admin, f"/os-hosts/{SERVICE}", {"status": "disable"}, OLD))["status"] == "disabled"
    assert service(admin)["status"] == "disabled"
    message(admin("GET", f"{C}/os-hosts/none"), 404, "itemNotFound")
    message(admin("GET", f"{C}/os-hosts", headers=NEW), 404, "itemNotFound")
    for body in ({}, {"maintenance_mode": "on"}, {"maintenance_mode": "disable", "reason": "x"}, {"power": "off"}):
        message(put(admin, "/os-hosts/std-1", body, OLD), 400, "badRequest")
    message(put(admin, "/os-hosts/none", {"maintenance_mode": "enable"}, OLD), 404, "itemNotFound")
    message(put(admin, "/os-hosts/none", {"status": "enable"}, OLD), 404, "itemNotFound")
    both = {"status": "enable", "maintenance_mode": "enable"}  # a node, but no service: neither is done
    message(put(admin, "/os-hosts/std-1", both, OLD), 404, "itemNotFound")
    nodes = admin.get(f"{C}/os-hypervisors/detail?with_maintenance=1", "2.79")["hypervisors"]
    assert {node["climate:maintenance"] for node in nodes} == {None}
    assert done(put(admin, f"/os-hosts/{SERVICE}", both, OLD))["status"] == "enabled"
    assert service(admin)["status"] == "enabled"


def test_none_of_it_is_for_members(member: Person) -> None:
    body = {"status": "disabled"}
    for method, path in (
        ("PUT", "/os-services/00000000-0000-4000-8000-000000000000"),
        ("DELETE", "/os-services/1"),
        ("GET", "/os-hosts"),
        ("GET", "/os-hosts/std-1"),
        ("PUT", "/os-hosts/std-1"),
    ):
        message(member(method, f"{C}{path}", body if method == "PUT" else None), 403, "forbidden")


def test_prometheus_gets_services_nodes_and_servers(there: World, admin: Person) -> None:
    admin.booted()
    there.settle()
    done(put(admin, "/os-hosts/gpu-1", {"maintenance_mode": "enable"}, OLD))
    lines = admin("GET", "/metrics", headers={"Accept": "*/*"}).get_data(as_text=True).splitlines()
    for line in (
        'climate_compute_services{state="up"} 1.0',
        'climate_compute_services{state="down"} 0.0',
        'climate_compute_nodes{state="up"} 2.0',
        'climate_compute_nodes{state="maintenance"} 1.0',
        'climate_compute_servers{status="ACTIVE"} 1.0',
        'climate_compute_servers{status="ERROR"} 0.0',
    ):
        assert line in lines


def test_hosts_of_networks_are_listed_beside_those_of_servers(there: World, admin: Person) -> None:
    with there.here.compute.engine.begin() as conn:
        network_hosts.beat(conn, "net-1", there.here.compute.now(conn))
    hosts = admin.get(f"{C}/os-hosts")["hosts"]
    assert {"host_name": "net-1", "service": "network", "zone": "internal"} in hosts
    assert {one["service"] for one in hosts} == {"compute", "network"}
    assert [one["host_name"] for one in admin.get(f"{C}/os-hosts?zone=internal")["hosts"]] == ["net-1"]
