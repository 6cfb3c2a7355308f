"""Networks that members create by the Network API, with their subnets and ports."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from climate.compute.network.network_options import NetworkOptions
from tests.api.compute.api_clients import Person, World, done, world
from tests.api.network.requests import N, refused

C = "/compute/v2.1"


@pytest.fixture
def there(cloud_database: str, tmp_path: Path) -> Iterator[World]:
    """A cloud with three VLANs for networks of projects."""
    with world(cloud_database, tmp_path, NetworkOptions(project_vlans=range(2000, 2003))) as found:
        yield found


def named(person: Person, name: str = "own") -> str:
    return str(done(person("POST", f"{N}/networks", {"network": {"name": name}}), 201)["network"]["id"])


def ranged(person: Person, network_id: str, cidr: str = "10.60.0.0/28", **subnet: Any) -> dict[str, Any]:
    body = {"network_id": network_id, "cidr": cidr, "ip_version": 4, **subnet}
    return dict(done(person("POST", f"{N}/subnets", {"subnet": body}), 201)["subnet"])


def changed(person: Person, subnet: dict[str, Any], **values: Any) -> dict[str, Any]:
    return dict(done(person("PUT", f"{N}/subnets/{subnet['id']}", {"subnet": values}))["subnet"])


def test_a_member_creates_a_network_and_boots_a_server_in_it(
    there: World, member: Person, stranger: Person, admin: Person
) -> None:
    network_id = named(member)
    made = member.get(f"{N}/networks/{network_id}")["network"]
    assert (made["status"], made["subnets"], made["shared"], made["project_id"]) == ("ACTIVE", [], False, "project")
    assert admin.get(f"{N}/networks/{network_id}")["network"]["provider:segmentation_id"] == 2000
    for method, path, body in (
        ("GET", f"networks/{network_id}", None),
        ("PUT", f"networks/{network_id}", {"network": {"name": "mine"}}),
        ("DELETE", f"networks/{network_id}", None),
        ("POST", "subnets", {"subnet": {"network_id": network_id, "cidr": "10.60.0.0/28"}}),
        ("POST", "ports", {"port": {"network_id": network_id}}),
    ):
        refused(stranger, method, path, body, 404)
    subnet = ranged(member, network_id, name="first", dns_nameservers=["9.9.9.9"])
    assert (subnet["name"], subnet["gateway_ip"], subnet["allocation_pools"]) == (
        "first", "10.60.0.1", [{"start": "10.60.0.2", "end": "10.60.0.14"}],
    )  # fmt: skip
    assert "subnet already" in refused(
        member, "POST", "subnets", {"subnet": {"network_id": network_id, "cidr": "10.61.0.0/28"}}, 409
    )
    server_id = member.booted(networks=[{"uuid": network_id}])
    there.settle()
    assert member.get(f"{C}/servers/{server_id}/ips/own")["own"][0]["addr"] == "10.60.0.2"
    assert done(stranger.boot(networks=[{"uuid": network_id}]), 400)
    for path in (f"networks/{network_id}", f"subnets/{subnet['id']}"):
        refused(member, "DELETE", path, None, 409)
    done(member("PUT", f"{N}/networks/{network_id}", {"network": {"name": "renamed"}}))
    assert member.get(f"{N}/networks?name=renamed")["networks"][0]["id"] == network_id
    done(member("DELETE", f"{C}/servers/{server_id}"), 204)
    there.settle()
    done(member("DELETE", f"{N}/subnets/{subnet['id']}"), 204)
    assert member.get(f"{N}/networks/{network_id}")["network"]["subnets"] == []
    ranged(member, network_id)
    done(member("DELETE", f"{N}/networks/{network_id}"), 204)
    refused(member, "GET", f"networks/{network_id}", None, 404)


def test_vlans_and_the_quota_have_an_end(member: Person, stranger: Person, admin: Person) -> None:
    done(admin("PUT", f"{N}/quotas/project", {"quota": {"network": 2}}))
    both = {"networks": [{"name": "a"}, {"name": "a"}]}
    assert len(done(member("POST", f"{N}/networks", both), 201)["networks"]) == 2
    assert "Quota exceeded" in refused(member, "POST", "networks", {"network": {"name": "c"}}, 409)
    assert member.get(f"{N}/quotas/project/details")["quota"]["network"] == {"limit": 2, "used": 2, "reserved": 0}
    refused(stranger, "POST", "networks", both, 409)
    last = named(stranger)
    assert "No tenant network" in refused(stranger, "POST", "networks", {"network": {"name": "c"}}, 409)
    done(admin("DELETE", f"{N}/networks/{last}"), 204)
    assert named(stranger)


@pytest.mark.parametrize(
    "network",
    [
        {"provider:network_type": "vlan"},
        {"provider:segmentation_id": 7},
        {"router:external": True},
        {"shared": True},
        {"project_id": "other"},
    ],
)
def test_members_do_not_choose_what_is_the_administrators(member: Person, network: dict[str, Any]) -> None:
    refused(member, "POST", "networks", {"network": {"name": "n", **network}}, 403)


@pytest.mark.parametrize(
    ("subnet", "word"),
    [
        ({"cidr": "10.10.0.0/28"}, "overlaps with another subnet"),
        ({"cidr": "198.51.100.0/28"}, "must be inside 10.0.0.0/8"),
        ({"cidr": "10.60.0.0/30"}, "network_size"),
        ({"gateway_ip": "10.60.0.15"}, "is not an address for an interface"),
        ({"gateway_ip": "10.61.0.1"}, "is not an address for an interface"),
        ({"allocation_pools": [{"start": "10.60.0.9", "end": "10.60.0.20"}]}, "is not inside"),
        ({"allocation_pools": [{"start": "10.60.0.1", "end": "10.60.0.9"}]}, "contains the gateway"),
        ({"allocation_pools": [{"start": "10.60.0.0", "end": "10.60.0.0"}]}, "no address"),
        ({"host_routes": [{"destination": "10.9.0.0/24"}]}, "host_routes must be like"),
        ({"enable_dhcp": False}, "served by DHCP"),
        ({"ip_version": 6}, "ip_version"),
    ],
)
def test_what_is_no_subnet_of_a_project(member: Person, subnet: dict[str, Any], word: str) -> None:
    body = {"subnet": {"network_id": named(member), "cidr": "10.60.0.0/28", **subnet}}
    assert word in refused(member, "POST", "subnets", body, 400)
    assert len(member.get(f"{N}/subnets")["subnets"]) == 1


def test_a_subnet_is_changed(member: Person) -> None:
    network_id = named(member)
    pools = [{"start": "10.60.0.5", "end": "10.60.0.6"}, {"start": "10.60.0.9", "end": "10.60.0.9"}]
    routes = [{"destination": "10.9.0.0/24", "nexthop": "10.60.0.4"}]
    subnet = ranged(member, network_id, gateway_ip=None, allocation_pools=pools, host_routes=routes)
    assert (subnet["gateway_ip"], subnet["allocation_pools"], subnet["host_routes"]) == (None, pools, routes)
    after = changed(member, subnet, name="new", gateway_ip="10.60.0.2", dns_nameservers=["9.9.9.9"], host_routes=[])
    assert (after["name"], after["gateway_ip"], after["host_routes"]) == ("new", "10.60.0.2", [])
    ports = []
    for address in ("10.60.0.5", "10.60.0.6", "10.60.0.9"):
        ports.append(done(member("POST", f"{N}/ports", {"port": {"network_id": network_id}}), 201)["port"])
        assert ports[-1]["fixed_ips"][0]["ip_address"] == address
    refused(member, "POST", "ports", {"port": {"network_id": network_id}}, 409)
    refused(member, "PUT", f"subnets/{subnet['id']}", {"subnet": {"gateway_ip": "10.60.0.3"}}, 409)
    refused(member, "PUT", f"subnets/{subnet['id']}", {"subnet": {"enable_dhcp": False}}, 409)
    assert changed(member, subnet, dns_nameservers=["1.1.1.1"])["dns_nameservers"] == ["1.1.1.1"]
    refused(member, "DELETE", f"subnets/{subnet['id']}", None, 409)
    done(member("PUT", f"{N}/ports/{ports[0]['id']}", {"port": {"fixed_ips": []}}))
    for port in ports[1:]:
        done(member("DELETE", f"{N}/ports/{port['id']}"), 204)
    moved = changed(member, subnet, gateway_ip="10.60.0.5", allocation_pools=[])
    assert [pool["start"] for pool in moved["allocation_pools"]] == ["10.60.0.1", "10.60.0.6"]
    done(member("DELETE", f"{N}/subnets/{subnet['id']}"), 204)
    kept = member.get(f"{N}/ports/{ports[0]['id']}")["port"]
    assert (kept["network_id"], kept["fixed_ips"]) == (network_id, [])
    refused(member, "DELETE", f"networks/{network_id}", None, 409)


def test_several_subnets_are_created_together_or_not_at_all(member: Person) -> None:
    first, second = named(member), named(member)
    wanted = [{"network_id": first, "cidr": "10.60.0.0/28"}, {"network_id": second, "cidr": "10.60.0.0/28"}]
    refused(member, "POST", "subnets", {"subnets": wanted}, 400)
    wanted[1]["cidr"] = "10.60.0.16/28"
    made = done(member("POST", f"{N}/subnets", {"subnets": wanted}), 201)["subnets"]
    assert [one["network_id"] for one in made] == [first, second]


def test_networks_of_administrators_stay_theirs(there: World, member: Person, admin: Person) -> None:
    wanted = {"name": "v", "provider:network_type": "vlan", "project_id": "project"}
    network_id = done(admin("POST", f"{N}/networks", {"network": wanted}), 201)["network"]["id"]
    refused(member, "POST", "subnets", {"subnet": {"network_id": network_id, "cidr": "10.60.0.0/28"}}, 403)
    subnet = ranged(admin, network_id)
    for method, path, body in (
        ("DELETE", f"networks/{network_id}", None),
        ("PUT", f"networks/{network_id}", {"network": {"name": "mine"}}),
        ("DELETE", f"subnets/{subnet['id']}", None),
        ("PUT", f"subnets/{subnet['id']}", {"subnet": {"name": "mine"}}),
    ):
        refused(member, method, path, body, 403)
    own = named(member)
    done(member("PUT", f"{N}/networks/{own}", {"network": {"admin_state_up": False}}), 400)
    done(admin("POST", f"{C}/os-networks/{network_id}/action", {"disassociate": None}), 202)


def test_administrators_make_a_network_external_before_it_has_a_subnet(admin: Person, member: Person) -> None:
    network_id = done(admin("POST", f"{N}/networks", {"network": {"name": "n"}}), 201)["network"]["id"]
    assert "n" not in [row["name"] for row in member.get(f"{N}/networks")["networks"]]
    body = {"network": {"router:external": True}}
    assert done(admin("PUT", f"{N}/networks/{network_id}", body))["network"]["router:external"] is True
    assert member.get(f"{N}/networks/{network_id}")["network"]["router:external"] is True
    refused(admin, "PUT", f"networks/{named(member)}", body, 409)
