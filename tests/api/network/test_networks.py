"""Networks and pools by the Network API: named, given their range, shown to whom they concern, dropped."""

from typing import Any
from uuid import uuid4

import pytest

from climate.compute.store.networks import network_hosts
from tests.api.compute.api_clients import Person, World, done
from tests.api.network.requests import N, booted, refused, taken

FIGURES = "network_ip_availabilities"


def named(admin: Person, **network: Any) -> dict[str, Any]:
    return dict(done(admin("POST", f"{N}/networks", {"network": {"name": "n", **network}}), 201)["network"])


def ranged(admin: Person, network_id: str, cidr: str, **subnet: Any) -> dict[str, Any]:
    body = {"network_id": network_id, "cidr": cidr, "ip_version": 4, "enable_dhcp": True, **subnet}
    return dict(done(admin("POST", f"{N}/subnets", {"subnet": body}), 201)["subnet"])


def names(person: Person, query: str = "") -> list[str]:
    return [row["name"] for row in person.get(f"{N}/networks{query}")["networks"]]


def test_a_network_is_named_and_then_given_its_subnet(there: World, admin: Person, member: Person) -> None:
    made = named(admin)
    assert (made["subnets"], made["status"]) == ([], "DOWN")
    assert "n" not in names(member)
    assert member("GET", f"{N}/networks/{made['id']}").status_code == 404
    assert there.here.count("compute_networks") == 1
    subnet = ranged(admin, made["id"], "10.30.0.0/24", dns_nameservers=["9.9.9.9"])
    assert (subnet["network_id"], subnet["gateway_ip"], subnet["dns_nameservers"]) == (
        made["id"], "10.30.0.1", ["9.9.9.9"],
    )  # fmt: skip
    assert member.get(f"{N}/networks/{made['id']}")["network"]["subnets"] == [subnet["id"]]
    assert member.get(f"{N}/subnets/{subnet['id']}")["subnet"] == subnet
    assert there.here.count("compute_network_outlines") == 0
    assert "subnet already" in refused(
        admin, "POST", "subnets", {"subnet": {"network_id": made["id"], "cidr": "10.31.0.0/24"}}, 409
    )
    done(admin("DELETE", f"{N}/networks/{made['id']}"), 204)
    assert names(admin) == ["private"]


def test_vlans_count_themselves_and_are_their_projects(admin: Person, member: Person, stranger: Person) -> None:
    first = named(admin, name="a", **{"provider:network_type": "vlan", "tenant_id": "project"})
    second = named(admin, name="b", **{"provider:network_type": "vlan"})
    third = named(admin, name="c", **{"provider:network_type": "vlan", "provider:segmentation_id": 7})
    for place, made in enumerate((first, second, third)):
        ranged(admin, made["id"], f"10.40.{place}.0/24")
    shown = {row["name"]: row for row in admin.get(f"{N}/networks?provider:network_type=vlan")["networks"]}
    assert [shown[name]["provider:segmentation_id"] for name in "abc"] == [101, 102, 7]
    assert (names(member), names(stranger)) == (["private", "a"], ["private"])
    assert stranger("GET", f"{N}/networks/{first['id']}").status_code == 404
    assert "provider:segmentation_id" not in member.get(f"{N}/networks/{first['id']}")["network"]
    assert "disassociated from project" in refused(admin, "DELETE", f"networks/{first['id']}", None, 409)


def test_a_vlan_that_is_named_is_of_one_network(admin: Person) -> None:
    """Neither a network that has no subnet yet nor one that is served gives its VLAN to another."""
    wanted = {"provider:network_type": "vlan", "provider:segmentation_id": 7}
    first = named(admin, name="first", **wanted)
    second = {"network": {"name": "second", **wanted}}
    assert "VLAN 7 " in refused(admin, "POST", "networks", second, 409)
    ranged(admin, first["id"], "10.40.0.0/24")
    assert "VLAN 7 " in refused(admin, "POST", "networks", second, 409)
    other = named(admin, name="other", **{"provider:network_type": "vlan"})
    ranged(admin, other["id"], "10.41.0.0/24")
    shown = {row["name"]: row for row in admin.get(f"{N}/networks?provider:network_type=vlan")["networks"]}
    assert {name: row["provider:segmentation_id"] for name, row in shown.items()} == {"first": 7, "other": 101}


@pytest.mark.parametrize(
    ("network", "status", "word"),
    [
        ({"name": "private"}, 409, "already"),
        ({"name": ""}, 400, "name"),
        ({"name": "n", "provider:network_type": "vxlan"}, 400, "flat or vlan"),
        ({"name": "n", "provider:network_type": "flat", "provider:segmentation_id": 5}, 400, "VLAN"),
        ({"name": "n", "provider:network_type": "vlan", "provider:segmentation_id": 4095}, 400, "4094"),
        ({"name": "n", "provider:network_type": "vlan", "shared": True}, 400, "one project's"),
        ({"name": "n", "tenant_id": "project"}, 400, "are shared"),
        ({"name": "n", "shared": False}, 400, "everybody's"),
        ({"name": "n", "provider:physical_network": "eth0 up; rm"}, 400, "interface"),
        ({"name": "n", "router:external": True, "provider:network_type": "vlan"}, 400, "external"),
        ({"name": "n", "router:external": "perhaps"}, 400, "router:external"),
        ({"name": "n", "tenant_id": "a", "project_id": "b"}, 400, "same"),
        ({"name": "n", "segments": []}, 400, "segments"),
        ([], 400, "network must be an object"),
    ],
)
def test_what_is_no_network(admin: Person, there: World, network: Any, status: int, word: str) -> None:
    assert word in refused(admin, "POST", "networks", {"network": network}, status)
    assert there.here.count("compute_network_outlines") == 0


@pytest.mark.parametrize(
    ("subnet", "status", "word"),
    [
        ({"cidr": "10.10.0.0/26"}, 409, "in use"),
        ({"cidr": "10.10.0.0/28"}, 409, "supernet"),
        ({"cidr": "10.0.0.0/8"}, 400, "network_size"),
        ({"cidr": "10.30.0.1/24"}, 400, "first one"),
        ({"cidr": "10.30.0.0/31"}, 400, "room"),
        ({"cidr": "127.0.0.0/24"}, 400, "reserved (loopback)"),
        ({"cidr": "224.0.0.0/24"}, 400, "reserved (multicast)"),
        ({"cidr": "0.0.0.0/24"}, 400, "reserved (this network)"),
        ({"cidr": "169.254.169.0/24"}, 400, "reserved (link-local"),
        ({"cidr": "10.30.0.0/29", "gateway_ip": "10.30.0.6"}, 400, "gateway_ip"),
        ({"cidr": "10.30.0.0/29", "gateway_ip": None}, 400, "gateway_ip"),
        ({"cidr": "fd00::/64", "ip_version": 6}, 400, "ip_version"),
        ({"cidr": None}, 400, "cidr"),
        ({"cidr": "10.30.0.0/24", "dns_nameservers": ["nobody"]}, 400, "dns_nameservers"),
        ({"cidr": "10.30.0.0/24", "dns_nameservers": "9.9.9.9"}, 400, "dns_nameservers"),
        ({"cidr": "10.30.0.0/24", "allocation_pools": [{"start": "10.30.0.9", "end": "10.30.0.19"}]}, 400, "external"),
        ({"cidr": "10.30.0.0/24", "host_routes": [1]}, 400, "host_routes"),
    ],
)  # fmt: skip
def test_what_is_no_subnet(admin: Person, there: World, subnet: Any, status: int, word: str) -> None:
    made = named(admin)
    body = {"subnet": {"network_id": made["id"], **subnet}}
    assert word in refused(admin, "POST", "subnets", body, status)
    assert (there.here.count("compute_networks"), there.here.count("compute_network_outlines")) == (1, 1)
    ranged(admin, made["id"], "10.30.0.0/29")


def test_pools_are_networks_outside(admin: Person, member: Person, pool: str) -> None:
    assert names(member, "?router:external=True") == ["public"]
    assert "public" not in names(member, "?router:external=False")
    shown = admin.get(f"{N}/networks/{pool}")["network"]
    assert (shown["shared"], shown["provider:physical_network"]) == (False, "eth0")
    subnet = member.get(f"{N}/subnets/{shown['subnets'][0]}")["subnet"]
    assert subnet["gateway_ip"] == "203.0.113.1"
    assert subnet["allocation_pools"] == [{"start": "203.0.113.10", "end": "203.0.113.14"}]
    overlapping = named(admin, name="other", **{"router:external": True})
    body = {"subnet": {"network_id": overlapping["id"], "cidr": "203.0.113.128/25"}}
    assert "overlaps" in refused(admin, "POST", "subnets", body, 409)
    outside = [{"start": "198.51.100.9", "end": "198.51.100.10"}]
    body = {"subnet": {"network_id": overlapping["id"], "cidr": "192.0.2.0/24", "allocation_pools": outside}}
    assert "not inside" in refused(admin, "POST", "subnets", body, 400)
    done(admin("DELETE", f"{N}/networks/{overlapping['id']}"), 204)


def test_what_a_pool_hands_out_is_said_anew(admin: Person, member: Person, pool: str) -> None:
    subnet_id = admin.get(f"{N}/networks/{pool}")["network"]["subnets"][0]

    def said(*stretches: tuple[str, str]) -> dict[str, Any]:
        return {"subnet": {"allocation_pools": [{"start": first, "end": last} for first, last in stretches]}}

    path = f"{N}/subnets/{subnet_id}"
    mine = taken(member, pool, floating_ip_address="203.0.113.12")
    wider = said(("203.0.113.8", "203.0.113.12"), ("203.0.113.40", "203.0.113.41"))
    assert done(admin("PUT", path, wider))["subnet"]["allocation_pools"] == wider["subnet"]["allocation_pools"]
    assert "203.0.113.12 is allocated" in refused(
        admin, "PUT", f"subnets/{subnet_id}", said(("203.0.113.8", "203.0.113.11")), 409
    )
    assert admin.get(path)["subnet"]["allocation_pools"] == wider["subnet"]["allocation_pools"]
    assert "allocated" in refused(admin, "DELETE", f"networks/{pool}", None, 409)
    assert "is deleted with its network" in refused(admin, "DELETE", f"subnets/{subnet_id}", None, 409)
    done(member("DELETE", f"{N}/floatingips/{mine['id']}"), 204)
    done(admin("DELETE", f"{N}/networks/{pool}"), 204)
    assert "public" not in names(admin)


def test_networks_that_cannot_be_changed_say_so(there: World, admin: Person, member: Person, served: str) -> None:
    assert "cannot be changed" in refused(admin, "PUT", f"networks/{served}", {"network": {"name": "n"}}, 409)
    assert refused(member, "PUT", f"networks/{served}", {"network": {"name": "n"}}, 403)


def test_unknown_networks_subnets_and_ports_are_not_found(admin: Person, member: Person) -> None:
    unknown = str(uuid4())
    for asker in (admin, member):
        for kind in ("network", "subnet", "port"):
            for method, body in (("PUT", {kind: {"name": "n"}}), ("DELETE", None)):
                assert refused(asker, method, f"{kind}s/{unknown}", body, 404)
        assert refused(asker, "POST", "ports", {"port": {"network_id": unknown}}, 404)
    assert refused(member, "POST", "ports", {"port": {}}, 400)


def test_only_administrators_make_and_drop_networks(admin: Person, member: Person, pool: str) -> None:
    subnet = member.get(f"{N}/networks/{pool}")["network"]["subnets"][0]
    for method, path, body in (
        ("POST", "networks", {"network": {"name": "n"}}),
        ("DELETE", f"networks/{pool}", None),
        ("POST", "subnets", {"subnet": {"network_id": pool, "cidr": "10.0.0.0/24"}}),
        ("PUT", f"subnets/{subnet}", {"subnet": {}}),
        ("DELETE", f"subnets/{subnet}", None),
        ("GET", "network-ip-availabilities", None),
        ("PUT", "quotas/project", {"quota": {"floatingip": 1}}),
        ("DELETE", "quotas/project", None),
    ):
        assert refused(member, method, path, body, 403)
    for path in (f"networks/{uuid4()}", "networks/name", f"subnets/{uuid4()}"):
        refused(admin, "DELETE", path, None, 404)


def test_a_network_in_use_stays(there: World, admin: Person, member: Person, served: str) -> None:
    server_id = booted(there, member, served)
    assert "addresses in use" in refused(admin, "DELETE", f"networks/{served}", None, 409)
    figures = {row["network_name"]: row for row in admin.get(f"{N}/network-ip-availabilities")[FIGURES]}
    assert (figures["dhcp"]["total_ips"], figures["dhcp"]["used_ips"]) == (13, 1)
    assert admin.get(f"{N}/network-ip-availabilities/{served}")["network_ip_availability"]["used_ips"] == 1
    assert admin.get(f"{N}/network-ip-availabilities?network_id={served}&ip_version=4")[FIGURES][0]["id"] == served
    member("DELETE", f"/compute/v2.1/servers/{server_id}")
    there.settle()


def test_network_services_are_agents(there: World, admin: Person) -> None:
    compute = there.here.compute
    with compute.engine.begin() as conn:
        network_hosts.beat(conn, "net-1", compute.now(conn))
    (agent,) = admin.get(f"{N}/agents")["agents"]
    assert (agent["binary"], agent["alive"], agent["configurations"]) == ("nova-network", True, {"networks": 0})
    assert admin.get(f"{N}/agents/{agent['id']}")["agent"] == agent
    assert admin.get(f"{N}/agents?host=nobody") == {"agents": []}
    member = Person(there.app, "member")
    assert member.get(f"{N}/agents") == {"agents": []}
    refused(member, "GET", f"agents/{agent['id']}", None, 403)


def test_extensions_are_no_more_than_there_is(member: Person) -> None:
    listed = member.get(f"{N}/extensions")["extensions"]
    aliases = {row["alias"] for row in listed}
    assert {"external-net", "quotas"} <= aliases
    shown = [member.get(f"{N}/extensions/{one['alias']}")["extension"] for one in listed]
    assert shown == listed
    assert {one["name"] for one in member.get(N)["resources"]} == {"network", "subnet", "port", "floatingip"}
    assert member("GET", f"{N}/extensions/network_availability_zone").status_code == 404
