"""Server groups over the API (cloud.md C.8)."""

from typing import Any
from uuid import uuid4

import pytest

from tests.api.compute.api_clients import Person, World, done, message

GROUPS = "/compute/v2.1/os-server-groups"
NEW = {"headers": {"OpenStack-API-Version": "compute 2.64"}}


def make(who: Person, name: str = "group-1", policy: str = "anti-affinity") -> Any:
    body = {"server_group": {"name": name, "policies": [policy]}}
    return done(who("POST", GROUPS, body))["server_group"]


def test_a_group_in_the_old_and_the_new_shape(member: Person) -> None:
    made = make(member)
    assert made == {
        "id": made["id"],
        "name": "group-1",
        "policies": ["anti-affinity"],
        "members": [],
        "metadata": {},
    }
    shown = member.get(f"{GROUPS}/{made['id']}", "2.64")["server_group"]
    assert (shown["policy"], shown["rules"], "policies" in shown, "metadata" in shown) == (
        "anti-affinity",
        {},
        False,
        False,
    )
    assert shown["project_id"]
    body = {"server_group": {"name": "two", "policy": "affinity", "rules": {}}}
    assert done(member("POST", GROUPS, body, **NEW))["server_group"]["policy"] == "affinity"
    assert [one["name"] for one in member.get(GROUPS)["server_groups"]] == ["group-1", "two"]
    assert [one["name"] for one in member.get(f"{GROUPS}?limit=1&offset=1")["server_groups"]] == ["two"]
    assert [one["name"] for one in member.get(f"{GROUPS}?limit=1&marker={made['id']}")["server_groups"]] == ["two"]
    assert member.get(f"{GROUPS}?limit=1&marker={uuid4()}") == {"server_groups": []}
    assert done(member("DELETE", f"{GROUPS}/{made['id']}"), 204) is None
    assert message(member("DELETE", f"{GROUPS}/{made['id']}"), 404, "itemNotFound")


def test_members_are_the_servers_of_the_group(there: World, member: Person) -> None:
    group = make(member)["id"]
    first = member.booted({"group": group})
    there.settle()
    assert member.get(f"{GROUPS}/{group}")["server_group"]["members"] == [first]
    assert message(member.boot({"group": "group-2"}), 400, "badRequest")
    assert message(member.boot({"group": str(uuid4())}), 400, "badRequest")


def test_groups_of_others_are_nobodys(member: Person, stranger: Person, admin: Person, reader: Person) -> None:
    group = make(member)["id"]
    for method in ("GET", "DELETE"):
        told = [stranger(method, f"{GROUPS}/{each}") for each in (group, str(uuid4()), "group-1")]
        assert {message(answer, 404, "itemNotFound").count("could not be found") for answer in told} == {1}
    assert stranger.get(f"{GROUPS}?all_projects=True") == {"server_groups": []}
    assert [one["id"] for one in admin.get(f"{GROUPS}?all_projects")["server_groups"]] == [group]
    assert admin.get(GROUPS) == {"server_groups": []}
    assert admin.get(f"{GROUPS}/{group}")["server_group"]["id"] == group
    assert reader.get(f"{GROUPS}/{group}")["server_group"]["id"] == group
    assert message(reader("DELETE", f"{GROUPS}/{group}"), 403, "forbidden")
    assert message(reader("POST", GROUPS, {"server_group": {"name": "x", "policies": ["affinity"]}}), 403, "forbidden")


def test_a_project_has_so_many_groups(member: Person, admin: Person) -> None:
    for place in range(10):
        make(member, f"g{place}")
    body = {"server_group": {"name": "g10", "policies": ["affinity"]}}
    assert "10" in message(member("POST", GROUPS, body), 403, "forbidden")
    assert len(member.get(GROUPS)["server_groups"]) == 10


NO_GROUPS: list[Any] = [
    {"policies": []},
    {"policies": ["affinity", "anti-affinity"]},
    {"policies": ["near"]},
    {"policies": "affinity"},
    {"policies": [{}]},
    {"policies": None},
    {"name": ""},
    {"name": "x" * 256},
    {"name": "a\nb"},
    {"policy": "affinity"},
    {"project_id": "other"},
]


def test_a_group_that_cannot_be_is_refused(member: Person) -> None:
    for wrong in NO_GROUPS:
        body = {"server_group": {"name": "g", "policies": ["affinity"], **wrong}}
        assert message(member("POST", GROUPS, body), 400, "badRequest")
        newer = {"name": "g", "policy": "affinity", **wrong}
        newer |= {"policy": 7} if "policy" in wrong else {}
        assert message(member("POST", GROUPS, {"server_group": newer}, **NEW), 400, "badRequest")
        assert member.get(GROUPS) == {"server_groups": []}


def test_soft_policies_are_known_since_2_15(member: Person) -> None:
    body = {"server_group": {"name": "g", "policies": ["soft-affinity"]}}
    for version, status in (("2.1", 400), ("2.14", 400), ("2.15", 200), ("2.63", 200)):
        headers = {"OpenStack-API-Version": f"compute {version}"}
        assert member("POST", GROUPS, body, headers=headers).status_code == status
    body = {"server_group": {"name": "g", "policy": "soft-anti-affinity"}}
    assert done(member("POST", GROUPS, body, **NEW))["server_group"]["policy"] == "soft-anti-affinity"
    policies = [one["policies"] for one in member.get(GROUPS)["server_groups"]]
    assert policies == [["soft-affinity"], ["soft-affinity"], ["soft-anti-affinity"]]


@pytest.mark.parametrize(
    ("policy", "rules"),
    [
        ("anti-affinity", {"max_server_per_host": 0}),
        ("anti-affinity", {"max_server_per_host": None}),
        ("anti-affinity", {"max_server_per_host": 2, "more": 1}),
        ("anti-affinity", {"most": 2}),
        ("anti-affinity", [2]),
        ("affinity", {"max_server_per_host": 2}),
        ("soft-anti-affinity", {"max_server_per_host": 2}),
    ],
)
def test_rules_that_cannot_be(member: Person, policy: str, rules: Any) -> None:
    body = {"server_group": {"name": "g", "policy": policy, "rules": rules}}
    assert "rules" in message(member("POST", GROUPS, body, **NEW), 400, "badRequest")


def test_rules_are_for_the_new_shape(member: Person) -> None:
    body = {"server_group": {"name": "g", "policy": "anti-affinity", "rules": {"max_server_per_host": 3}}}
    made = done(member("POST", GROUPS, body, **NEW))["server_group"]
    assert made["rules"] == {"max_server_per_host": 3}
    assert member.get(f"{GROUPS}/{made['id']}", "2.64")["server_group"]["rules"] == made["rules"]
    assert "rules" not in member.get(f"{GROUPS}/{made['id']}")["server_group"]
    assert message(member("POST", GROUPS, body), 400, "badRequest")
    for path in (f"{GROUPS}?limit=-1", f"{GROUPS}?offset=x", f"{GROUPS}?marker=x", f"{GROUPS}?all_projects=perhaps"):
        assert message(member("GET", path), 400, "badRequest")


def test_a_server_joins_a_group_by_its_name(there: World, member: Person, stranger: Person) -> None:
    made = make(member)
    server_id = member.booted({"group": made["name"]})
    there.settle()
    assert member.get(f"{GROUPS}/{made['id']}")["server_group"]["members"] == [server_id]
    assert "could not be found" in message(stranger.boot({"group": made["name"]}), 400, "badRequest")
    make(member)
    assert "several" in message(member.boot({"group": made["name"]}), 400, "badRequest").lower()
