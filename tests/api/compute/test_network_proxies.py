"""Networks and floating addresses as compute had them below 2.36."""

from typing import Any
from uuid import uuid4

import pytest

from tests.api.compute.api_clients import Person, World, done, message
from tests.api.compute.test_addresses import addresses, booted, dhcp, pool

C = "/compute/v2.1"
FLOATING, BULK = f"{C}/os-floating-ips", f"{C}/os-floating-ips-bulk"

__all__ = ["dhcp", "pool"]


def made(admin: Person, **network: Any) -> list[dict[str, Any]]:
    body = {"network": {"label": "n", "cidr": "10.0.0.0/8", **network}}
    return list(done(admin("POST", f"{C}/os-networks", body))["networks"])


def test_networks_are_cut_out_of_a_range(admin: Person, member: Person) -> None:
    found = made(
        admin, manager="vlan", num_networks=3, network_size=16, vlan_start=200, vpn_start=1000, cidr="10.0.0.0/24"
    )
    assert [(one["label"], one["cidr"], one["vlan"], one["bridge"]) for one in found] == [
        ("n_0", "10.0.0.0/28", 200, "br200"),
        ("n_1", "10.0.0.16/28", 201, "br201"),
        ("n_2", "10.0.0.32/28", 202, "br202"),
    ]
    last = found[2]
    assert (last["gateway"], last["vpn_private_address"], last["dhcp_start"], last["vpn_public_port"]) == (
        "10.0.0.33", "10.0.0.34", "10.0.0.35", 1002,
    )  # fmt: skip
    assert last["netmask"] == "255.255.255.240"
    assert admin.get(f"{C}/os-networks/{last['id']}")["network"] == last
    assert [one["label"] for one in member.get(f"{C}/os-networks")["networks"]] == ["private"]
    assert "host" not in member.get(f"{C}/os-networks")["networks"][0]


def test_whose_a_network_is(admin: Person, member: Person) -> None:
    first, second = made(admin, manager="vlan", num_networks=2, network_size=16, cidr="10.0.0.0/24")
    path = f"{C}/os-networks/{first['id']}"
    body = {"associate": {"project_id": "project"}}
    assert admin("POST", f"{path}/action", body).status_code == 202
    assert member.get(path)["network"]["label"] == "n_0"
    assert "another project" in message(
        admin("POST", f"{path}/action", {"associate": {"project_id": "other"}}), 409, "conflictingRequest"
    )
    assert "disassociated" in message(admin("DELETE", path), 409, "conflictingRequest")
    assert admin("POST", f"{path}/action", {"disassociate": None}).status_code == 202
    assert admin("DELETE", path).status_code == 202
    assert admin("GET", path).status_code == 404
    assert admin("POST", f"{C}/os-networks/add", {"id": second["id"], "project_id": "project"}).status_code == 202
    assert admin("POST", f"{C}/os-networks/add", {"id": None}).status_code == 409
    flat = admin.get(f"{C}/os-networks")["networks"][0]["id"]
    assert "is shared" in message(admin("POST", f"{C}/os-networks/{flat}/action", body), 400, "badRequest")


@pytest.mark.parametrize(
    ("network", "status", "word"),
    [
        ({"cidr": "10.10.0.0/26"}, 409, "already"),
        ({"cidr": "10.10.0.0/27"}, 409, "supernet"),
        ({"cidr": "nobody"}, 400, "cidr"),
        ({"cidr": "10.1.0.0/24", "num_networks": 3, "network_size": 128}, 400, "do not fit"),
        ({"cidr": "10.1.0.0/24", "num_networks": 0}, 400, "num_networks"),
        ({"cidr": "10.1.0.0/24", "network_size": 5}, 400, "network_size"),
        ({"cidr": "10.1.0.0/24", "label": ""}, 400, "label"),
        ({"cidr": "10.1.0.0/24", "label": "private"}, 409, "label"),
        ({"cidr": "10.1.0.0/24", "manager": "quantum"}, 400, "manager"),
        ({"manager": "vlan", "vlan_start": 4094, "num_networks": 2, "network_size": 16}, 400, "4094"),
        ({"cidr": "10.1.0.0/24", "vlan": 5, "vlan_start": 5}, 400, "same"),
        ({"cidr": "10.1.0.0/24", "project_id": "project"}, 400, "are shared"),
        ({"cidr": "10.1.0.0/24", "gateway_v6": "fd00::1"}, 400, "cidr_v6"),
        ({"cidr": "10.1.0.0/24", "cidr_v6": "10.0.0.0/8"}, 400, "IPv6"),
        ({"cidr": "10.1.0.0/24", "bridge": "a bridge"}, 400, "bridge"),
        ({"cidr": "10.1.0.0/24", "dns1": "nobody"}, 400, "dns1"),
        ({"cidr": "10.1.0.0/24", "multi_host": True}, 400, "multi_host"),
        ([], 400, "object"),
    ],
)  # fmt: skip
def test_networks_that_there_cannot_be(there: World, admin: Person, network: Any, status: int, word: str) -> None:
    body = {"network": {"label": "n", "cidr": "10.1.0.0/24", **network} if isinstance(network, dict) else network}
    key = {400: "badRequest", 409: "conflictingRequest"}[status]
    assert word in message(admin("POST", f"{C}/os-networks", body), status, key)
    assert there.here.count("compute_networks") == 1


def test_bodies_that_say_nothing(admin: Person) -> None:
    network = admin.get(f"{C}/os-networks")["networks"][0]["id"]
    for path, body in (
        (f"os-networks/{network}/action", {}),
        (f"os-networks/{network}/action", {"disassociate": None, "associate": None}),
        (f"os-networks/{network}/action", {"associate": {}}),
        ("os-networks/add", {}),
        ("os-networks/add", {"id": "nobody"}),
        ("os-floating-ips", {"pools": "x"}),
        ("os-floating-ips-bulk", {"floating_ips_bulk_create": {}}),
        ("os-floating-ips-bulk", {"floating_ips_bulk_create": {"ip_range": "203.0.113.9-203.0.113.1"}}),
        ("os-floating-ips-bulk", {"floating_ips_bulk_create": {"ip_range": "0.0.0.0/0"}}),
        ("os-floating-ips-bulk", {"floating_ips_bulk_create": {"ip_range": "203.0.113.0/24", "host": "h"}}),
    ):
        assert admin("POST", f"{C}/{path}", body).status_code == 400, (path, body)


def test_floating_addresses_are_taken_and_given_back(
    there: World, member: Person, admin: Person, dhcp: str, pool: None
) -> None:
    assert member.get(f"{C}/os-floating-ip-pools") == {"floating_ip_pools": [{"name": "public"}]}
    answer = done(member("POST", FLOATING))
    mine = answer["floating_ip"]
    assert list(answer) == ["floating_ip"]
    assert mine == {
        "id": mine["id"], "ip": "203.0.113.10", "fixed_ip": None, "instance_id": None, "pool": "public",
    }  # fmt: skip
    server_id = booted(there, member, dhcp)
    body = {"associate_address": {"fixed_ip": "10.20.0.2"}}
    told = done(member("POST", f"{FLOATING}/{mine['id']}/associate", body))["associated"]
    assert told == {"floating_ip_id": mine["id"], "floating_ip": "203.0.113.10", "fixed_ip": "10.20.0.2"}
    assert member("POST", f"{FLOATING}/{mine['id']}/associate", body).status_code == 409
    (shown,) = member.get(FLOATING)["floating_ips"]
    assert shown == {**mine, "instance_id": server_id, "fixed_ip": "10.20.0.2"}
    (row,) = (one for one in admin.get(BULK)["floating_ip_info"] if one["project_id"])
    assert (row["address"], row["instance_uuid"]) == ("203.0.113.10", server_id)
    assert len(admin.get(f"{BULK}/service-1")["floating_ip_info"]) == 1
    assert admin("GET", f"{BULK}/nobody").status_code == 404
    told = done(member("POST", f"{FLOATING}/{mine['id']}/disassociate"))["disassociated"]
    assert told == {"floating_ip": "203.0.113.10", "fixed_ip": "10.20.0.2"}
    assert "not associated" in message(
        member("POST", f"{FLOATING}/{mine['id']}/disassociate"), 409, "conflictingRequest"
    )
    assert done(member("DELETE", f"{FLOATING}/{mine['id']}"), 202) is None
    assert member.get(FLOATING) == {"floating_ips": []}
    assert addresses(member, server_id) == ["10.20.0.2"]


def test_a_quota_of_one(member: Person, admin: Person, pool: None) -> None:
    body = {"quota_set": {"floating_ips": 1}}
    assert done(admin("PUT", f"{C}/os-quota-sets/project", body))["quota_set"]["floating_ips"] == 1
    done(member("POST", FLOATING, {"pool": None}))
    told = message(member("POST", FLOATING, {"pool": None}), 403, "forbidden")
    assert told == "Address quota exceeded. You cannot allocate any more addresses"
    limits = member.get(f"{C}/limits")["limits"]["absolute"]
    assert (limits["maxTotalFloatingIps"], limits["totalFloatingIpsUsed"]) == (1, 1)
    detail = member.get(f"{C}/os-quota-sets/project/detail")["quota_set"]["floating_ips"]
    assert detail == {"limit": 1, "in_use": 1, "reserved": 0}
    assert "floating_ips" not in member.get(f"{C}/os-quota-sets/project", "2.36")["quota_set"]
    headers = {"OpenStack-API-Version": "compute 2.36"}
    assert admin("PUT", f"{C}/os-quota-sets/project", body, headers=headers).status_code == 400


def test_the_pool_has_an_end(member: Person, admin: Person, pool: None) -> None:
    for _ in range(4):
        done(member("POST", FLOATING, {"pool": "public"}))
    assert message(member("POST", FLOATING), 404, "itemNotFound") == "Zero floating ips available."
    assert member("POST", FLOATING, {"pool": "nobody"}).status_code == 404
    held = {"ip_range": "203.0.113.13-203.0.113.20"}
    assert "203.0.113.13" in message(admin("PUT", f"{BULK}/delete", held), 409, "conflictingRequest")
    more = {"floating_ips_bulk_create": {"ip_range": "203.0.113.13-203.0.113.14", "pool": "public"}}
    done(admin("POST", BULK, more))
    assert "already" in message(admin("POST", BULK, more), 409, "conflictingRequest")
    assert done(member("POST", FLOATING))["floating_ip"]["ip"] == "203.0.113.14"


def test_pools_are_created_and_emptied(admin: Person, member: Person) -> None:
    wanted = {"floating_ips_bulk_create": {"ip_range": "198.51.100.16/28", "pool": "p", "interface": "eth1"}}
    assert done(admin("POST", BULK, wanted))["floating_ips_bulk_create"]["interface"] == "eth1"
    assert len(admin.get(BULK)["floating_ip_info"]) == 14
    other = {"floating_ips_bulk_create": {"ip_range": "198.51.100.17", "pool": "p", "interface": "eth2"}}
    assert "cannot be changed" in message(admin("POST", BULK, other), 400, "badRequest")
    overlapping = {"floating_ips_bulk_create": {"ip_range": "198.51.100.0/24", "pool": "q"}}
    assert "overlaps" in message(admin("POST", BULK, overlapping), 409, "conflictingRequest")
    assert done(admin("PUT", f"{BULK}/delete", {"ip_range": "198.51.100.16/28"})) == {
        "floating_ips_bulk_delete": "198.51.100.16/28"
    }
    assert admin.get(BULK) == {"floating_ip_info": []}
    assert admin("PUT", f"{BULK}/delete", {"ip_range": "192.0.2.0/24"}).status_code == 404
    for method, path, body in (("GET", BULK, None), ("POST", BULK, wanted), ("POST", f"{C}/os-networks", wanted)):
        assert member(method, path, body).status_code == 403


def test_the_network_service_is_asked_from_2_36_on(admin: Person, member: Person) -> None:
    headers = {"OpenStack-API-Version": "compute 2.36"}
    for path in ("os-networks", f"os-networks/{uuid4()}", "os-floating-ips", "os-floating-ip-pools"):
        assert member("GET", f"{C}/{path}", headers=headers).status_code == 404
    assert admin("GET", BULK, headers=headers).status_code == 404
    assert member("GET", f"{C}/os-networks", headers={"OpenStack-API-Version": "compute 2.35"}).status_code == 200
