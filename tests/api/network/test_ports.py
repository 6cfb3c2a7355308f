"""Ports by the Network API: those that projects create, with and without a server, and the interfaces of servers."""

from typing import Any
from uuid import uuid4

import pytest

from climate.compute.models.security_group import default_id
from tests.api.compute.api_clients import Person, World, done
from tests.api.network.requests import N, booted, refused, taken
from tests.api.network.requests import port as port_of

C = "/compute/v2.1"


def made(person: Person, network_id: str, **values: Any) -> dict[str, Any]:
    """A port that somebody has created."""
    body = {"port": {"network_id": network_id, **values}}
    return dict(done(person("POST", f"{N}/ports", body), 201)["port"])


def changed(person: Person, port: dict[str, Any], **values: Any) -> dict[str, Any]:
    return dict(done(person("PUT", f"{N}/ports/{port['id']}", {"port": values}))["port"])


def shown(person: Person, port: dict[str, Any]) -> dict[str, Any]:
    return dict(person.get(f"{N}/ports/{port['id']}")["port"])


def addresses(port: dict[str, Any]) -> list[str]:
    return [one["ip_address"] for one in port["fixed_ips"]]


def attached(person: Person, server_id: str, port: dict[str, Any], status: int = 200) -> Any:
    body = {"interfaceAttachment": {"port_id": port["id"]}}
    return done(person("POST", f"{C}/servers/{server_id}/os-interface", body), status)


def test_a_port_is_there_without_a_server(member: Person, stranger: Person, admin: Person, served: str) -> None:
    port = made(member, served, name="web", fixed_ips=[{"ip_address": "10.20.0.9"}], mac_address="FA:16:3E:00:00:01")
    assert (port["name"], port["status"], port["device_id"], port["mac_address"]) == (
        "web", "DOWN", "", "fa:16:3e:00:00:01",
    )  # fmt: skip
    assert addresses(port) == ["10.20.0.9"]
    assert port["security_groups"] == [default_id("project")]
    assert "binding:host_id" not in port
    assert shown(member, port) == port
    for query, count in (
        ("name=web", 1), ("fixed_ips=ip_address=10.20.0.9", 1), ("fixed_ips=ip_address_substr=20.0.9", 1),
        ("fixed_ips=ip_address_substr=30.", 0), ("device_id=nobody", 0), ("status=ACTIVE", 0),
    ):  # fmt: skip
        assert len(member.get(f"{N}/ports?{query}")["ports"]) == count
    assert member.get(f"{N}/ports?fields=id&fields=name")["ports"] == [{"id": port["id"], "name": "web"}]
    assert member.get(f"{N}/ports/{port['id']}?fields=name")["port"] == {"name": "web"}
    assert stranger.get(f"{N}/ports")["ports"] == []
    for method, body in (("GET", None), ("PUT", {"port": {"name": "mine"}}), ("DELETE", None)):
        refused(stranger, method, f"ports/{port['id']}", body, 404)
    assert shown(admin, port)["binding:vif_type"] == "unbound"
    done(member("DELETE", f"{N}/ports/{port['id']}"), 204)
    refused(member, "GET", f"ports/{port['id']}", None, 404)
    assert addresses(made(member, served, fixed_ips=[{"ip_address": "10.20.0.9"}])) == ["10.20.0.9"]


def test_several_ports_are_created_together_or_not_at_all(member: Person, served: str) -> None:
    body = {"ports": [{"network_id": served, "name": name} for name in ("a", "b")]}
    ports = done(member("POST", f"{N}/ports", body), 201)["ports"]
    assert [port["name"] for port in ports] == ["a", "b"]
    taken_already = {"network_id": served, "fixed_ips": [{"ip_address": addresses(ports[0])[0]}]}
    refused(member, "POST", "ports", {"ports": [{"network_id": served}, taken_already]}, 409)
    assert len(member.get(f"{N}/ports")["ports"]) == 2
    for bad in ([], [1], "ports"):
        refused(member, "POST", "ports", {"ports": bad}, 400)


@pytest.mark.parametrize(
    ("values", "status", "word"),
    [
        ({"fixed_ips": [{"ip_address": "10.99.0.9"}]}, 400, "not a valid IP"),
        ({"fixed_ips": [{"ip_address": "10.20.0.1"}]}, 409, "already allocated"),
        ({"fixed_ips": [{"subnet_id": str(uuid4())}]}, 400, "is not one of network"),
        ({"fixed_ips": [{"ip_address": "10.20.0.9"}] * 2}, 400, "twice"),
        ({"fixed_ips": [{}]}, 400, "fixed_ips must be like"),
        ({"security_groups": [str(uuid4())]}, 404, "does not exist"),
        ({"mac_address": "01:00:5e:00:00:01"}, 400, "one interface"),
        ({"binding:host_id": "c1"}, 403, "administrators"),
        ({"device_owner": "network:dhcp"}, 403, "administrators"),
        ({"project_id": "other"}, 403, "other projects"),
        ({"port_security_enabled": False}, 400, "cannot be false"),
        ({"allowed_address_pairs": [{"ip_address": "10.0.0.1"}]}, 400, "not supported"),
    ],
)
def test_what_is_no_port(member: Person, served: str, values: dict[str, Any], status: int, word: str) -> None:
    assert word in refused(member, "POST", "ports", {"port": {"network_id": served, **values}}, status)
    assert member.get(f"{N}/ports")["ports"] == []


def test_ports_have_networks_that_their_project_sees(member: Person, admin: Person, pool: str) -> None:
    wanted = {"network": {"name": "v", "provider:network_type": "vlan", "project_id": "other-project"}}
    other = done(admin("POST", f"{N}/networks", wanted), 201)["network"]["id"]
    refused(member, "POST", "ports", {"port": {"network_id": other}}, 404)
    assert "external" in refused(member, "POST", "ports", {"port": {"network_id": pool}}, 409)
    port = made(admin, other)
    assert (port["fixed_ips"], port["binding:host_id"]) == ([], "")
    assert "no subnet" in refused(
        admin, "POST", "ports", {"port": {"network_id": other, "fixed_ips": [{"ip_address": "10.30.0.9"}]}}, 400
    )
    done(admin("POST", f"{N}/subnets", {"subnet": {"network_id": other, "cidr": "10.30.0.0/28"}}), 201)
    subnet_id = admin.get(f"{N}/networks/{other}")["network"]["subnets"][0]
    moved = changed(admin, port, fixed_ips=[{"subnet_id": subnet_id}])
    assert (moved["network_id"], addresses(moved)) == (other, ["10.30.0.3"])
    done(admin("POST", f"{C}/os-networks/{other}/action", {"disassociate": None}), 409)
    changed(admin, port, fixed_ips=[])
    assert (
        "has ports"
        in done(admin("POST", f"{C}/os-networks/{other}/action", {"disassociate": None}), 409)["conflictingRequest"][
            "message"
        ]
    )


def test_a_network_without_a_subnet_stays_while_it_has_ports(admin: Person) -> None:
    network_id = done(admin("POST", f"{N}/networks", {"network": {"name": "n"}}), 201)["network"]["id"]
    port = made(admin, network_id)
    assert "1 ports in use" in refused(admin, "DELETE", f"networks/{network_id}", None, 409)
    done(admin("DELETE", f"{N}/ports/{port['id']}"), 204)
    done(admin("DELETE", f"{N}/networks/{network_id}"), 204)


def test_a_mac_is_of_one_port(member: Person, served: str) -> None:
    port = made(member, served)
    body = {"port": {"network_id": served, "mac_address": port["mac_address"]}}
    assert "in use by another port" in refused(member, "POST", "ports", body, 409)


def test_ports_have_a_quota(member: Person, admin: Person, served: str) -> None:
    done(admin("PUT", f"{N}/quotas/project", {"quota": {"port": 1}}))
    made(member, served)
    assert "Quota exceeded" in refused(member, "POST", "ports", {"port": {"network_id": served}}, 409)
    assert member.get(f"{N}/quotas/project/details")["quota"]["port"] == {"limit": 1, "used": 1, "reserved": 0}
    done(admin("PUT", f"{N}/quotas/project", {"quota": {"port": -1}}))
    made(member, served)


def test_a_subnet_without_free_addresses_has_no_further_port(member: Person, served: str) -> None:
    for _ in range(13):
        made(member, served)
    assert "No more IP addresses" in refused(member, "POST", "ports", {"port": {"network_id": served}}, 409)
    assert made(member, served, fixed_ips=[])["fixed_ips"] == []


def test_a_port_is_changed(member: Person, admin: Person, served: str) -> None:
    port = made(member, served, fixed_ips=[{"ip_address": "10.20.0.9"}])
    subnet_id = port["fixed_ips"][0]["subnet_id"]
    group = done(member("POST", f"{N}/security-groups", {"security_group": {"name": "web"}}), 201)["security_group"]
    after = changed(
        member, port, name="db", admin_state_up=False, security_groups=[group["id"]], device_id="vip",
        fixed_ips=[{"subnet_id": subnet_id}, {"ip_address": "10.20.0.10"}],
    )  # fmt: skip
    assert (after["name"], after["admin_state_up"], after["device_id"]) == ("db", False, "vip")
    assert (addresses(after), after["security_groups"]) == (["10.20.0.9", "10.20.0.10"], [group["id"]])
    assert "in use: port" in refused(member, "DELETE", f"security-groups/{group['id']}", None, 409)
    assert addresses(changed(member, port, fixed_ips=[{"ip_address": "10.20.0.10"}])) == ["10.20.0.10"]
    assert made(member, served, fixed_ips=[{"ip_address": "10.20.0.9"}])
    refused(member, "PUT", f"ports/{port['id']}", {"port": {"fixed_ips": [{"ip_address": "10.20.0.9"}]}}, 409)
    refused(member, "PUT", f"ports/{port['id']}", {"port": {"binding:host_id": "c1"}}, 403)
    assert changed(admin, port, **{"binding:host_id": "c1"})["binding:host_id"] == "c1"
    assert changed(member, port, security_groups=[])["security_groups"] == []
    done(member("DELETE", f"{N}/security-groups/{group['id']}"), 204)


def test_a_server_is_booted_with_a_port_which_outlives_it(
    there: World, member: Person, stranger: Person, served: str, pool: str
) -> None:
    private = str(member.get(f"{N}/networks?name=private")["networks"][0]["id"])
    port = made(member, served, name="kept")
    floating = taken(member, pool, port_id=port["id"])
    server_id = member.booted(networks=[{"uuid": private}, {"port": port["id"]}, {"uuid": served}])
    there.settle()
    assert member.status(server_id) == "ACTIVE"
    bound = shown(member, port)
    assert (bound["device_id"], bound["device_owner"], bound["status"]) == (server_id, "compute:nova", "ACTIVE")
    found = member.get(f"{C}/servers/{server_id}/os-interface")["interfaceAttachments"]
    assert [one["net_id"] for one in found] == [private, served, served]
    assert found[1]["port_id"] == port["id"]
    assert "in use" in done(member.boot(networks=[{"port": port["id"]}]), 409)["conflictingRequest"]["message"]
    assert done(stranger.boot(networks=[{"port": port["id"]}]), 400)["badRequest"]
    assert done(member.boot(networks=[{"port": port["id"]}], max_count=2), 400)["badRequest"]
    done(member("DELETE", f"{C}/servers/{server_id}"), 204)
    there.settle()
    kept = shown(member, port)
    assert (kept["device_id"], kept["status"], kept["fixed_ips"]) == ("", "DOWN", port["fixed_ips"])
    assert [one["id"] for one in member.get(f"{N}/ports")["ports"]] == [port["id"]]
    assert member.get(f"{N}/floatingips/{floating['id']}")["floatingip"]["port_id"] == port["id"]
    done(member("DELETE", f"{N}/ports/{port['id']}"), 204)
    assert member.get(f"{N}/floatingips/{floating['id']}")["floatingip"]["port_id"] is None


def test_a_port_moves_from_server_to_server(there: World, member: Person, served: str) -> None:
    private = str(member.get(f"{N}/networks?name=private")["networks"][0]["id"])
    first, second = booted(there, member, private), booted(there, member, private)
    port = made(member, served)
    view = attached(member, first, port)["interfaceAttachment"]
    assert (view["port_id"], [one["ip_address"] for one in view["fixed_ips"]]) == (port["id"], addresses(port))
    there.settle()
    attached(member, second, port, 409)
    done(member("DELETE", f"{C}/servers/{first}/os-interface/{port['id']}"), 202)
    assert "being detached" in attached(member, second, port, 409)["conflictingRequest"]["message"]
    there.settle()
    assert shown(member, port)["device_id"] == ""
    attached(member, second, port)
    there.settle()
    assert shown(member, port)["device_id"] == second
    assert len(member.get(f"{C}/servers/{first}/os-interface")["interfaceAttachments"]) == 1
    done(member("DELETE", f"{N}/ports/{port['id']}"), 204)
    there.settle()
    assert len(member.get(f"{C}/servers/{second}/os-interface")["interfaceAttachments"]) == 1
    refused(member, "GET", f"ports/{port['id']}", None, 404)


def test_a_bound_port_gets_other_addresses(there: World, member: Person, served: str) -> None:
    port = made(member, served, fixed_ips=[{"ip_address": "10.20.0.9"}])
    server_id = member.booted(networks=[{"port": port["id"]}])
    there.settle()
    after = changed(member, port, fixed_ips=[{"ip_address": "10.20.0.10"}], name="db")
    assert (addresses(after), after["device_id"]) == (["10.20.0.10"], server_id)
    assert "task_state" in refused(
        member, "PUT", f"ports/{port['id']}", {"port": {"fixed_ips": [{"ip_address": "10.20.0.11"}]}}, 409
    )
    there.settle()
    assert member.get(f"{C}/servers/{server_id}/ips")["addresses"]["dhcp"][0]["addr"] == "10.20.0.10"
    assert "is its device" in refused(member, "PUT", f"ports/{port['id']}", {"port": {"device_id": "x"}}, 409)


def test_a_port_without_an_address_is_of_no_use_to_a_server(there: World, member: Person, served: str) -> None:
    port = made(member, served, fixed_ips=[])
    assert "FixedIP" in done(member.boot(networks=[{"port": port["id"]}]), 400)["badRequest"]["message"]
    named = made(member, served, device_id="load-balancer")
    done(member.boot(networks=[{"port": named["id"]}]), 409)


def test_a_deleted_port_is_an_interface_that_its_server_loses(
    there: World, member: Person, stranger: Person, served: str, pool: str
) -> None:
    private = str(member.get(f"{N}/networks?name=private")["networks"][0]["id"])
    server_id = booted(there, member, private, served)
    port = port_of(member, server_id, served)
    mine = taken(member, pool, port_id=port["id"])
    refused(stranger, "DELETE", f"ports/{port['id']}", None, 404)
    done(member("DELETE", f"{N}/ports/{port['id']}"), 204)
    assert "task_state" in refused(member, "DELETE", f"ports/{port_of(member, server_id, private)['id']}", None, 409)
    there.settle()
    assert member.status(server_id) == "ACTIVE"
    refused(member, "GET", f"ports/{port['id']}", None, 404)
    assert [one["network_id"] for one in member.get(f"{N}/ports?device_id={server_id}")["ports"]] == [private]
    assert member.get(f"{N}/floatingips/{mine['id']}")["floatingip"]["port_id"] is None


def test_readers_do_not_change_ports(there: World, member: Person, reader: Person, served: str) -> None:
    port = port_of(member, booted(there, member, served), served)
    refused(reader, "DELETE", f"ports/{port['id']}", None, 403)
    refused(reader, "PUT", f"ports/{port['id']}", {"port": {"name": "x"}}, 403)
    refused(reader, "POST", "ports", {"port": {"network_id": served}}, 403)
    refused(member, "DELETE", "ports/nobody", None, 404)
    assert member.get(f"{N}/ports/{port['id']}")["port"] == port
    assert changed(member, port, name="named")["name"] == "named"
