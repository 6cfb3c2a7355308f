"""Security groups by Compute: its own routes below 2.36, those of servers, and servers that boot with groups."""

from typing import Any

import pytest
from werkzeug.test import TestResponse

from tests.api.compute.api_clients import Person, World, done, message

C = "/compute/v2.1"
GROUPS, RULES = f"{C}/os-security-groups", f"{C}/os-security-group-rules"


def made(person: Person, name: str = "web") -> str:
    body = {"security_group": {"name": name, "description": "d"}}
    return str(done(person("POST", GROUPS, body))["security_group"]["id"])


def rule(person: Person, parent_id: str, **values: Any) -> TestResponse:
    wanted = {"ip_protocol": "tcp", "from_port": 22, "to_port": 22, "cidr": "203.0.113.0/24"} | values
    return person("POST", RULES, {"security_group_rule": {"parent_group_id": parent_id, **wanted}})


def names(person: Person, server_id: str) -> list[str]:
    by_server = person.get(f"{C}/servers/{server_id}/os-security-groups")["security_groups"]
    shown = person.get(f"{C}/servers/{server_id}")["server"].get("security_groups", ())
    assert [group["name"] for group in by_server] == [group["name"] for group in shown]
    return [group["name"] for group in by_server]


def test_groups_and_rules(member: Person, stranger: Person) -> None:
    group_id = made(member)
    new = done(rule(member, group_id))["security_group_rule"]
    assert new == {
        "id": new["id"],
        "parent_group_id": group_id,
        "ip_protocol": "tcp",
        "from_port": 22,
        "to_port": 22,
        "ip_range": {"cidr": "203.0.113.0/24"},
        "group": {},
    }
    peer = done(rule(member, group_id, cidr=None, group_id=group_id))["security_group_rule"]
    assert (peer["group"], peer["ip_range"]) == ({"tenant_id": "project", "name": "web"}, {})
    shown = member.get(f"{GROUPS}/{group_id}")["security_group"]
    assert (shown["name"], shown["description"], shown["rules"]) == ("web", "d", [new, peer])
    assert [group["name"] for group in member.get(GROUPS)["security_groups"]] == ["web", "default"]
    assert stranger("GET", f"{GROUPS}/{group_id}").status_code == 404
    body = {"security_group": {"name": "db", "description": "e"}}
    assert done(member("PUT", f"{GROUPS}/{group_id}", body))["security_group"]["name"] == "db"
    assert member("DELETE", f"{RULES}/{new['id']}").status_code == 202
    assert member("DELETE", f"{RULES}/{new['id']}").status_code == 404
    assert member("DELETE", f"{GROUPS}/{group_id}").status_code == 202
    assert member("GET", f"{GROUPS}/{group_id}").status_code == 404


def test_what_is_a_conflict_elsewhere_is_a_bad_request_here(member: Person) -> None:
    group_id = made(member)
    done(rule(member, group_id))
    assert "already exists" in message(rule(member, group_id), 400, "badRequest")
    default = member.get(GROUPS)["security_groups"][-1]["id"]
    assert "not allowed" in message(member("DELETE", f"{GROUPS}/{default}"), 400, "badRequest")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"from_port": "x"}, "from_port must be a number"),
        ({"from_port": "²"}, "from_port must be a number"),
        ({"ip_protocol": "9" * 5000}, "must be a number from 0 to 255"),
        ({"from_port": 23}, "port_range_min must be <= port_range_max"),
        ({"to_port": 65536}, "to_port"),
        ({"ip_protocol": "tpc"}, "ip_protocol must be a number"),
        ({"ip_protocol": None}, "ip_protocol must be tcp"),
        ({"cidr": "here"}, "cidr must be a range"),
        ({"parent_group_id": "1"}, "parent_group_id must be a UUID"),
    ],
)
def test_wrong_rules_are_refused(member: Person, values: dict[str, Any], said: str) -> None:
    assert said in message(rule(member, made(member), **values), 400, "badRequest")


def test_groups_of_a_server(member: Person, there: World) -> None:
    made(member)
    made(member, "db")
    plain, server_id = member.booted(), member.booted(security_groups=[{"name": "web"}, {"name": "default"}])
    there.settle()
    assert names(member, plain) == ["default"]
    assert names(member, server_id) == ["web", "default"]
    assert member.act(server_id, "addSecurityGroup", {"name": "db"}).status_code == 202
    assert member.act(server_id, "removeSecurityGroup", {"name": "default"}).status_code == 202
    assert names(member, server_id) == ["web", "db"]
    assert "not associated" in message(
        member.act(server_id, "removeSecurityGroup", {"name": "default"}), 404, "itemNotFound"
    )
    assert "not found" in message(member.act(server_id, "addSecurityGroup", {"name": "none"}), 404, "itemNotFound")
    for name in ("web", "db"):
        assert member.act(server_id, "removeSecurityGroup", {"name": name}).status_code == 202
    assert names(member, server_id) == []
    listed = member.get(f"{C}/servers/detail")["servers"]
    assert {one["id"]: one.get("security_groups") for one in listed} == {plain: [{"name": "default"}], server_id: None}


def test_groups_at_boot_must_exist_in_the_project(member: Person, stranger: Person) -> None:
    group_id = made(stranger, "theirs")
    for name in ("theirs", group_id, "none"):
        refused = member.boot(security_groups=[{"name": name}])
        assert f"Security group {name} not found" in message(refused, 400, "badRequest")
    assert "each must be like" in message(member.boot(security_groups=["web"]), 400, "badRequest")
    made(member, "twice")
    made(member, "twice")
    assert "Multiple security groups" in message(
        member.boot(security_groups=[{"name": "twice"}]), 409, "conflictingRequest"
    )


def test_the_proxy_ends_with_2_36(member: Person) -> None:
    server_id = member.booted()
    headers = {"OpenStack-API-Version": "compute 2.36"}
    assert member("GET", GROUPS, headers=headers).status_code == 404
    assert member("POST", RULES, {}, headers=headers).status_code == 404
    assert done(member("GET", f"{C}/servers/{server_id}/os-security-groups", headers=headers))["security_groups"]
