"""Security groups and their rules by the Network API, as Neutron has them."""

from typing import Any

import pytest
from werkzeug.test import TestResponse

from tests.api.compute.api_clients import Person, World, done

N = "/network/v2.0"
GROUPS, RULES = f"{N}/security-groups", f"{N}/security-group-rules"
SSH = {"direction": "ingress", "protocol": "tcp", "port_range_min": 22, "port_range_max": 22}


def made(person: Person, name: str = "web", **more: Any) -> dict[str, Any]:
    return dict(done(person("POST", GROUPS, {"security_group": {"name": name, **more}}), 201)["security_group"])


def rule(person: Person, group_id: str, **values: Any) -> TestResponse:
    return person("POST", RULES, {"security_group_rule": {"security_group_id": group_id, **values}})


def said(answer: TestResponse, status: int) -> str:
    return str(done(answer, status)["NeutronError"]["message"])


def test_a_group_from_beginning_to_end(member: Person, stranger: Person) -> None:
    group = made(member, description="of the web")
    path = f"{GROUPS}/{group['id']}"
    found = {(one["direction"], one["ethertype"]) for one in group["security_group_rules"]}
    assert found == {("egress", "IPv4"), ("egress", "IPv6")}
    assert member.get(path)["security_group"] == group
    assert [one["name"] for one in member.get(GROUPS)["security_groups"]] == ["web", "default"]
    assert stranger("GET", path).status_code == 404
    assert stranger("PUT", path, {"security_group": {"name": "n"}}).status_code == 404
    assert stranger("DELETE", path).status_code == 404
    changed = done(member("PUT", path, {"security_group": {"name": "db"}}))["security_group"]
    assert (changed["name"], changed["description"]) == ("db", "of the web")
    assert member("DELETE", path).status_code == 204
    assert member("GET", path).status_code == 404


def test_rules_are_added_once_and_deleted(member: Person, stranger: Person) -> None:
    group = made(member)
    new = done(rule(member, group["id"], **SSH, remote_ip_prefix="203.0.113.9/24"), 201)["security_group_rule"]
    assert (new["remote_ip_prefix"], new["ethertype"], new["protocol"]) == ("203.0.113.0/24", "IPv4", "tcp")
    assert "already exists" in said(rule(member, group["id"], **SSH, remote_ip_prefix="203.0.113.0/24"), 409)
    assert new in member.get(f"{GROUPS}/{group['id']}")["security_group"]["security_group_rules"]
    assert member.get(f"{RULES}?protocol=tcp")["security_group_rules"] == [new]
    path = f"{RULES}/{new['id']}"
    assert member.get(path)["security_group_rule"] == new
    assert (stranger("GET", path).status_code, stranger("DELETE", path).status_code) == (404, 404)
    assert "could not be found" in said(rule(stranger, group["id"], **SSH), 404)
    assert member("DELETE", path).status_code == 204
    assert member("GET", path).status_code == 404


def test_default_allows_all_until_its_rules_change(member: Person, stranger: Person) -> None:
    (default,) = member.get(GROUPS)["security_groups"]
    assert {(one["direction"], one["protocol"]) for one in default["security_group_rules"]} == {
        ("egress", None),
        ("ingress", None),
    }
    assert "keeps its name" in said(member("PUT", f"{GROUPS}/{default['id']}", {"security_group": {"name": "x"}}), 409)
    assert "not allowed" in said(member("DELETE", f"{GROUPS}/{default['id']}"), 409)
    assert "already exists" in said(member("POST", GROUPS, {"security_group": {"name": "default"}}), 409)
    first = default["security_group_rules"][0]["id"]
    assert stranger("DELETE", f"{RULES}/{first}").status_code == 404
    assert member("DELETE", f"{RULES}/{first}").status_code == 204
    (after,) = member.get(GROUPS)["security_groups"]
    assert after["id"] == default["id"]
    assert after["security_group_rules"] == default["security_group_rules"][1:]


def test_only_administrators_delete_the_group_default_and_reset_it(member: Person, admin: Person, there: World) -> None:
    (default,) = member.get(GROUPS)["security_groups"]
    path = f"{GROUPS}/{default['id']}"
    assert member("DELETE", f"{RULES}/{default['security_group_rules'][0]['id']}").status_code == 204
    server_id = member.booted()
    assert "in use" in said(admin("DELETE", path), 409)
    assert member("DELETE", f"/compute/v2.1/servers/{server_id}").status_code == 204
    there.settle()
    assert "not allowed" in said(member("DELETE", path), 409)
    assert admin("DELETE", path).status_code == 204
    assert member.get(GROUPS)["security_groups"] == [default]


def test_a_group_in_use_stays_and_names_of_others_go_with_it(member: Person, there: World) -> None:
    used, other = made(member), made(member, "other")
    server_id = member.booted(security_groups=[{"name": "web"}])
    there.settle()
    assert "in use" in said(member("DELETE", f"{GROUPS}/{used['id']}"), 409)
    assert done(rule(member, used["id"], direction="ingress", remote_group_id=other["id"]), 201)
    assert member("DELETE", f"{GROUPS}/{other['id']}").status_code == 204
    assert len(member.get(f"{GROUPS}/{used['id']}")["security_group"]["security_group_rules"]) == 2
    (port,) = member.get(f"{N}/ports?device_id={server_id}")["ports"]
    assert port["security_groups"] == [used["id"]]


def test_quotas(member: Person) -> None:
    group = made(member, "g0")
    for number in range(1, 10):
        made(member, f"g{number}")
    assert "Quota exceeded" in said(member("POST", GROUPS, {"security_group": {"name": "more"}}), 409)
    for port in range(1, 81):
        done(rule(member, group["id"], **{**SSH, "port_range_min": port, "port_range_max": port}), 201)
    assert "100 rules" in said(rule(member, group["id"], **SSH | {"port_range_min": 1}), 409)


WRONG = [
    ({"direction": "in"}, "direction must be ingress or egress"),
    ({"protocol": "tpc"}, "protocol must be a number"),
    ({"protocol": "256"}, "protocol must be a number"),
    ({"ethertype": "IPv5"}, "ethertype must be IPv4 or IPv6"),
    ({"port_range_max": 21}, "port_range_min must be <= port_range_max"),
    ({"port_range_max": None}, "port_range_min must be <= port_range_max"),
    ({"port_range_max": 65536}, "Invalid value for port 65536: port_range_max"),
    ({"port_range_min": -16}, "Invalid value for port -16: port_range_min"),
    ({"protocol": None}, "Ports need a protocol"),
    ({"protocol": "icmp", "port_range_min": 256}, "Invalid value for ICMP type (port-range-min): 256"),
    ({"protocol": "icmp", "port_range_min": 8, "port_range_max": 256}, "Invalid value for ICMP code"),
    ({"protocol": "icmp", "port_range_min": None}, "ICMP type"),
    ({"remote_ip_prefix": "203.0.113.0/33"}, "remote_ip_prefix must be a range"),
    ({"remote_ip_prefix": "2001:db8::/64"}, "Conflicting value ethertype: 2001:db8::/64 is no range of IPv4"),
    ({"remote_ip_prefix": "203.0.113.0/24", "remote_group_id": "00000000-0000-4000-8000-000000000000"}, "Only"),
    ({"colour": "red"}, "'colour' cannot be set"),
]


@pytest.mark.parametrize(("values", "words"), WRONG)
def test_wrong_rules_are_refused(member: Person, values: dict[str, Any], words: str) -> None:
    group = made(member)
    assert words in said(rule(member, group["id"], **SSH | values), 400)
    assert len(member.get(f"{GROUPS}/{group['id']}")["security_group"]["security_group_rules"]) == 2


@pytest.mark.parametrize("unknown", ["bad_group_id", 7, "00000000-0000-4000-8000-000000000000"])
def test_a_rule_of_an_unknown_remote_group_finds_none(member: Person, unknown: object) -> None:
    group = made(member)
    assert "ould not be found" in said(rule(member, group["id"], **SSH, remote_group_id=unknown), 404)
