"""What surrounds servers: discovery, flavors, images, networks, and what administrators see."""

from typing import Any
from uuid import uuid4

import pytest

from climate.compute.nodes.services import IMAGE_ID
from tests.api.compute.api_clients import NODES, SERVICE, Person, World, done, message

C = "/compute/v2.1"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJzV0m9b4k8cRkzJ9o4eVvY2k1fWm5H4mE5mJ0C0Yb3A me@here"


@pytest.mark.parametrize("path", ["/compute", "/compute/v2.1", "/image", "/image/v2", "/network", "/network/v2.0"])
def test_versions_are_reported_to_everybody(there: World, path: str) -> None:
    for spelled in (path, f"{path}/"):
        answer = there.app.test_client().get(spelled)
        assert answer.status_code in (200, 300)
        body: Any = answer.json
        versions = body["versions"] if "versions" in body else [body["version"]]
        assert versions[0]["links"][0]["href"].startswith(f"http://here/{path.split('/')[1]}/v2")
    if path == "/compute/v2.1":
        assert (body["version"]["version"], body["version"]["min_version"]) == ("2.79", "2.1")


@pytest.mark.parametrize(
    "path", [f"{C}/servers", f"{C}/flavors", f"{C}/limits", "/image/v2/images", "/network/v2.0/networks"]
)
def test_nothing_else_is_reported_to_strangers(there: World, path: str) -> None:
    assert there.app.test_client().get(path).status_code == 401


def test_flavors(member: Person, admin: Person, stranger: Person) -> None:
    names = [one["name"] for one in member.get(f"{C}/flavors/detail?is_public=None")["flavors"]]
    assert "m1.tiny" in names
    assert "secret" not in names
    assert "secret" in [one["name"] for one in admin.get(f"{C}/flavors?is_public=None")["flavors"]]
    assert message(member("GET", f"{C}/flavors/m1.tiny"), 404, "itemNotFound")
    assert message(member("GET", f"{C}/flavors/secret"), 404, "itemNotFound")
    assert member.get(f"{C}/flavors/2")["flavor"]["ram"] == 2048
    body = {"flavor": {"name": "big", "id": None, "vcpus": 2, "ram": 64, "disk": 1, "swap": 0}}
    assert message(member("POST", f"{C}/flavors", body), 403, "forbidden")
    made = done(admin("POST", f"{C}/flavors", body))["flavor"]
    assert message(admin("POST", f"{C}/flavors", body), 409, "conflictingRequest")
    specs = f"{C}/flavors/{made['id']}/os-extra_specs"
    assert done(admin("POST", specs, {"extra_specs": {"a": "b"}})) == {"extra_specs": {"a": "b"}}
    assert stranger.get(f"{C}/flavors/{made['id']}", "2.61")["flavor"]["extra_specs"] == {"a": "b"}
    assert done(admin("DELETE", f"{specs}/a")) is None
    assert member.get(specs) == {"extra_specs": {}}
    assert done(admin("DELETE", f"{C}/flavors/{made['id']}"), 202) is None
    assert message(admin("DELETE", f"{C}/flavors/{made['id']}"), 404, "itemNotFound")
    for wrong in ({"vcpus": 0}, {"ram": "x"}, {"disk": -1}, {"ram": 1 << 40}, {"name": ""}):
        assert message(admin("POST", f"{C}/flavors", {"flavor": {**body["flavor"], **wrong}}), 400, "badRequest")
    page = member.get(f"{C}/flavors?limit=2")
    assert len(page["flavors"]) == 2
    assert page["flavors_links"][0]["rel"] == "next"


def test_images(there: World, member: Person, stranger: Person, admin: Person) -> None:
    assert member.get("/image/v2/images?name=demo")["images"][0]["id"] == IMAGE_ID
    assert member("GET", "/image/v2/images/demo").status_code == 404
    assert member.get(f"/image/v2/images?id=in:{IMAGE_ID},{uuid4()}")["images"][0]["name"] == "demo"
    body = {"name": "mine", "disk_format": "raw", "container_format": "bare", "owner_specified.openstack.md5": ""}
    made = done(member("POST", "/image/v2/images", body), 201)
    assert (made["status"], made["owner_specified.openstack.md5"]) == ("queued", "")
    path = f"/image/v2/images/{made['id']}"
    octets = {"Content-Type": "application/octet-stream"}
    content = b"x" * (2 << 20)
    assert member("PUT", f"{path}/file", data=content, headers=octets).status_code == 204
    assert member("PUT", f"{path}/file", data=content, headers=octets).status_code == 409
    shown = member.get(path)
    assert (shown["status"], shown["size"], shown["os_hash_algo"]) == ("active", 2 << 20, "sha512")
    assert member("GET", f"{path}/file").data == content
    assert stranger("GET", path).status_code == 404
    assert stranger("DELETE", f"/image/v2/images/{IMAGE_ID}").status_code == 403
    patch = {"Content-Type": "application/openstack-images-v2.1-json-patch"}
    changes = '[{"op": "replace", "path": "/name", "value": "new"}, {"op": "add", "path": "/color", "value": "red"}]'
    changed = done(member("PATCH", path, data=changes, headers=patch))
    assert (changed["name"], changed["color"]) == ("new", "red")
    for wrong, status in (
        ('[{"op": "replace", "path": "/visibility", "value": "public"}]', 403),
        ('[{"op": "replace", "path": "/owner", "value": "me"}]', 403),
        ('[{"op": "move", "path": "/name"}]', 400),
        ("{}", 400),
    ):
        assert member("PATCH", path, data=wrong, headers=patch).status_code == status
    assert member("POST", "/image/v2/images", {"name": "x", "visibility": "public"}).status_code == 403
    assert member("POST", "/image/v2/images", {"name": "x", "disk_format": "floppy"}).status_code == 400
    assert member("DELETE", path).status_code == 204
    assert member("GET", path).status_code == 404
    assert list(there.here.compute.images.iterdir()) == []


def test_networks_and_ports(there: World, member: Person, stranger: Person) -> None:
    network = member.get("/network/v2.0/networks?name=private")["networks"][0]
    assert member.get("/network/v2.0/networks?name=other")["networks"] == []
    assert member.get("/network/v2.0/networks?router:external=True")["networks"] == []
    assert message_of_network(member, "/network/v2.0/networks/private")
    assert member.get(f"/network/v2.0/networks/{network['id']}")["network"] == network
    subnet = member.get(f"/network/v2.0/subnets?network_id={network['id']}")["subnets"][0]
    assert subnet["id"] == network["subnets"][0]
    server_id = member.booted(networks=[{"uuid": network["id"]}])
    ports = member.get(f"/network/v2.0/ports?device_id={server_id}")["ports"]
    assert [port["fixed_ips"][0]["ip_address"] for port in ports] == ["10.10.0.2"]
    assert stranger.get(f"/network/v2.0/ports?device_id={server_id}")["ports"] == []
    assert member.get("/network/v2.0/floatingips") == {"floatingips": []}
    assert message_of_network(member, "/network/v2.0/extensions/network_availability_zone")
    assert member.get(f"{C}/os-networks")["networks"][0]["label"] == "private"
    assert member.get(f"{C}/os-networks/{network['id']}")["network"]["id"] == network["id"]
    assert message(member("GET", f"{C}/os-networks/private"), 404, "itemNotFound")


def message_of_network(who: Person, path: str) -> str:
    body = done(who("GET", path), 404)
    return str(body["NeutronError"]["message"])


def test_administrators_see_nodes_and_services(admin: Person, member: Person) -> None:
    for path in (
        "os-hypervisors",
        "os-hypervisors/detail",
        "os-services",
        "os-aggregates",
        "os-availability-zone/detail",
    ):
        assert message(member("GET", f"{C}/{path}"), 403, "forbidden")
    nodes = admin.get(f"{C}/os-hypervisors/detail", "2.53")["hypervisors"]
    assert [node["hypervisor_hostname"] for node in nodes] == list(NODES)
    first = nodes[0]
    assert (first["vcpus"], first["service"]["host"], first["state"]) == (8, SERVICE, "up")
    assert admin.get(f"{C}/os-hypervisors/{first['id']}", "2.53")["hypervisor"] == first
    assert message(admin("GET", f"{C}/os-hypervisors/gpu-1"), 404, "itemNotFound")
    assert isinstance(admin.get(f"{C}/os-hypervisors")["hypervisors"][0]["id"], int)
    assert admin.get(f"{C}/os-hypervisors/{first['id']}/uptime", "2.53")["hypervisor"]["uptime"]
    assert len(admin.get(f"{C}/os-hypervisors?hypervisor_hostname_pattern=gpu")["hypervisors"]) == 2
    assert len(admin.get(f"{C}/os-hypervisors/gpu/search")["hypervisors"]) == 2
    assert message(admin("GET", f"{C}/os-hypervisors/none/search"), 404, "itemNotFound")
    assert admin.get(f"{C}/os-hypervisors/statistics")["hypervisor_statistics"]["vcpus"] == 24
    page = admin.get(f"{C}/os-hypervisors?limit=2", "2.53")
    follow = page["hypervisors_links"][0]["href"].removeprefix("http://here")
    assert [node["hypervisor_hostname"] for node in admin.get(follow, "2.53")["hypervisors"]] == ["std-1"]
    services = admin.get(f"{C}/os-services?binary=nova-compute", "2.53")["services"]
    assert [(one["host"], one["state"], one["status"]) for one in services] == [(SERVICE, "up", "enabled")]
    assert admin.get(f"{C}/os-services?binary=other") == {"services": []}
    pool = admin.get(f"{C}/os-aggregates")["aggregates"][0]
    assert (pool["name"], pool["hosts"]) == ("freepool", ["gpu-1", "gpu-2"])
    assert admin.get(f"{C}/os-aggregates/{pool['id']}")["aggregate"]["name"] == "freepool"
    assert message(admin("GET", f"{C}/os-aggregates/freepool"), 404, "itemNotFound")


def test_zones_quotas_and_keys(admin: Person, member: Person) -> None:
    zones = member.get(f"{C}/os-availability-zone")["availabilityZoneInfo"]
    assert zones == [{"zoneName": "nova", "zoneState": {"available": True}, "hosts": None}]
    detail = admin.get(f"{C}/os-availability-zone/detail")["availabilityZoneInfo"][0]["hosts"]
    assert detail[SERVICE]["nova-compute"].keys() == {"available", "active", "updated_at"}
    assert member.get(f"{C}/os-quota-sets/project")["quota_set"]["instances"] == 50
    assert member.get(f"{C}/os-quota-sets/project/detail")["quota_set"]["cores"] == {
        "limit": 200,
        "in_use": 0,
        "reserved": 0,
    }
    assert admin.get(f"{C}/os-quota-sets/project/defaults", "2.57")["quota_set"]["ram"] == 512000
    assert message(member("GET", f"{C}/os-quota-sets/other"), 403, "forbidden")
    key = {"keypair": {"name": "k", "public_key": KEY}}
    assert done(member("POST", f"{C}/os-keypairs", key))["keypair"]["fingerprint"].count(":") == 15
    assert message(member("POST", f"{C}/os-keypairs", key), 409, "conflictingRequest")
    assert message(member("POST", f"{C}/os-keypairs", {"keypair": {"name": "x", "public_key": 7}}), 400, "badRequest")
    assert message(member("POST", f"{C}/os-keypairs", {"keypair": {"name": "x", "public_key": "?"}}), 400, "badRequest")
    assert [one["keypair"]["name"] for one in member.get(f"{C}/os-keypairs")["keypairs"]] == ["k"]
    assert member.get(f"{C}/os-keypairs/k")["keypair"]["public_key"] == KEY
    assert admin.get(f"{C}/os-keypairs") == {"keypairs": []}
    assert member("DELETE", f"{C}/os-keypairs/k").status_code == 202
    assert message(member("GET", f"{C}/os-keypairs/k"), 404, "itemNotFound")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", f"{C}/nothing", 404), ("PATCH", f"{C}/servers", 405), ("PUT", f"{C}/flavors", 405)],
)
def test_unknown_paths_and_methods(member: Person, method: str, path: str, status: int) -> None:
    answer = member(method, path)
    assert answer.status_code == status
    body: Any = answer.json
    assert next(iter(body.values()))["code"] == status
