"""Network v2.0, to look at."""

from uuid import uuid4

import pytest

from tests.api.compute.api_clients import Person, World, done

N = "/network/v2.0"


def test_each_project_has_a_group_that_lets_everything_through(member: Person, stranger: Person) -> None:
    group = member.get(f"{N}/security-groups?name=default")["security_groups"][0]
    assert (group["name"], group["project_id"]) == ("default", "project")
    assert member.get(f"{N}/security-groups/{group['id']}")["security_group"] == group
    assert member.get(f"{N}/security-groups?name=other") == {"security_groups": []}
    rules = member.get(f"{N}/security-group-rules?security_group_id={group['id']}")["security_group_rules"]
    assert rules == group["security_group_rules"]
    assert {(rule["direction"], rule["ethertype"], rule["protocol"]) for rule in rules} == {
        (direction, family, None) for direction in ("ingress", "egress") for family in ("IPv4", "IPv6")
    }
    assert member.get(f"{N}/security-group-rules/{rules[0]['id']}")["security_group_rule"] == rules[0]
    assert stranger("GET", f"{N}/security-groups/{group['id']}").status_code == 404
    assert stranger.get(f"{N}/security-groups")["security_groups"][0]["id"] != group["id"]


def test_quotas_are_those_of_the_project(member: Person, admin: Person) -> None:
    assert member.get(f"{N}/quotas/project")["quota"]["network"] == 10
    assert member.get(f"{N}/quotas/project/default")["quota"]["port"] == 500
    assert member.get(f"{N}/quotas/project/details")["quota"]["router"] == {"limit": 0, "used": 0, "reserved": 0}
    assert member("GET", f"{N}/quotas/other").status_code == 403
    assert admin.get(f"{N}/quotas/other")["quota"]["project_id"] == "other"


def test_ports_in_pages(there: World, member: Person) -> None:
    member.booted(min_count=3, max_count=3)
    ids = [port["id"] for port in member.get(f"{N}/ports")["ports"]]
    found, marker = [], ""
    while page := member.get(f"{N}/ports?limit=2{marker}")["ports"]:
        found += [port["id"] for port in page]
        marker = f"&marker={found[-1]}"
    assert (len(found), found) == (3, ids)
    assert member("GET", f"{N}/ports?marker={uuid4()}").status_code == 400
    assert member("GET", f"{N}/ports?limit=-1").status_code == 400


@pytest.mark.parametrize("noun", ["networks", "subnets", "ports", "floatingips", "security-groups", "extensions"])
def test_what_is_not_there_is_a_clean_404(member: Person, noun: str) -> None:
    for name in (str(uuid4()), "name", "router", "' OR 1=1"):
        body = done(member("GET", f"{N}/{noun}/{name}"), 404)
        assert body["NeutronError"]["message"]
