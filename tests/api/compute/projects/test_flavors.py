"""Flavors over the API: described, with extra specs, and kept for some projects."""

from typing import Any

from tests.api.compute.api_clients import MEMBER, Person, World, done, message

C = "/compute/v2.1"
SECRET = f"{C}/flavors/secret"
V55 = {"headers": {"OpenStack-API-Version": "compute 2.55"}}


def body(**changes: Any) -> dict[str, Any]:
    return {"flavor": {"name": "f", "id": "f", "vcpus": 1, "ram": 64, "disk": 1, **changes}}


def names(who: Person, query: str) -> list[str]:
    return [one["name"] for one in who.get(f"{C}/flavors/detail?{query}")["flavors"]]


def test_a_description_is_given_and_changed_since_2_55(admin: Person, member: Person) -> None:
    made = done(admin("POST", f"{C}/flavors", body(description="two\nlines"), **V55))["flavor"]
    assert made["description"] == "two\nlines"
    path, wanted = f"{C}/flavors/f", {"flavor": {"description": "other"}}
    assert message(member("PUT", path, wanted, **V55), 403, "forbidden")
    assert message(admin("PUT", path, wanted), 404, "itemNotFound")
    assert done(admin("PUT", path, wanted, **V55))["flavor"]["description"] == "other"
    assert done(admin("PUT", path, {"flavor": {"description": None}}, **V55))["flavor"]["description"] is None
    assert message(admin("PUT", f"{C}/flavors/none", wanted, **V55), 404, "itemNotFound")
    for wrong in ({}, {"description": 7}, {"description": "x", "name": "y"}, {"description": "a\x01"}):
        assert message(admin("PUT", path, {"flavor": wrong}, **V55), 400, "badRequest")


def test_extra_specs_one_by_one(admin: Person, member: Person) -> None:
    done(admin("POST", f"{C}/flavors", body()))
    specs = f"{C}/flavors/f/os-extra_specs"
    assert done(admin("POST", specs, {"extra_specs": {"a": "b", "hw:cpu": 2}}))["extra_specs"] == {
        "a": "b",
        "hw:cpu": "2",
    }
    assert done(admin("PUT", f"{specs}/a", {"a": "c"})) == {"a": "c"}
    assert member.get(f"{specs}/a") == {"a": "c"}
    assert done(admin("DELETE", f"{specs}/a")) is None
    for method, sent in (("GET", None), ("DELETE", None)):
        assert message(admin(method, f"{specs}/a", sent), 404, "itemNotFound")
    assert member.get(specs) == {"extra_specs": {"hw:cpu": "2"}}
    assert message(admin("PUT", f"{specs}/a", {"b": "c"}), 400, "badRequest")
    for wrong in ({}, {"a": None}, {"a": {}}, {"a/b": "c"}, {"": "c"}, {"a": "x" * 256}, [], None):
        assert message(admin("POST", specs, {"extra_specs": wrong}), 400, "badRequest")
    assert message(member("POST", specs, {"extra_specs": {"a": "b"}}), 403, "forbidden")
    assert message(admin("POST", f"{C}/flavors/none/os-extra_specs", {"extra_specs": {"a": "b"}}), 404, "itemNotFound")


def test_a_private_flavor_is_for_those_who_were_given_it(there: World, admin: Person, member: Person) -> None:
    access = f"{SECRET}/os-flavor-access"
    assert "secret" not in names(member, "is_public=None")
    assert message(member("GET", SECRET), 404, "itemNotFound")
    added = done(admin("POST", f"{SECRET}/action", {"addTenantAccess": {"tenant": MEMBER.project_id}}))
    assert {"flavor_id": "secret", "tenant_id": MEMBER.project_id} in added["flavor_access"]
    assert admin.get(access) == added
    assert "secret" in names(member, "is_public=None")
    assert member.get(SECRET)["flavor"]["name"] == "secret"
    assert member.boot(flavorRef="secret").status_code == 202
    again = admin("POST", f"{SECRET}/action", {"addTenantAccess": {"tenant": MEMBER.project_id}})
    assert message(again, 409, "conflictingRequest")
    done(admin("POST", f"{SECRET}/action", {"removeTenantAccess": {"tenant": MEMBER.project_id}}))
    assert message(member("GET", SECRET), 404, "itemNotFound")
    assert message(member.boot(flavorRef="secret"), 400, "badRequest")


NO_ACCESS: list[Any] = [
    ("secret", {"removeTenantAccess": {"tenant": "nobody"}}, 404, "itemNotFound"),
    ("none", {"addTenantAccess": {"tenant": "p"}}, 404, "itemNotFound"),
    ("1", {"addTenantAccess": {"tenant": "p"}}, 409, "conflictingRequest"),
    ("secret", {"addTenantAccess": {"tenant": 7}}, 400, "badRequest"),
    ("secret", {"addTenantAccess": {}}, 400, "badRequest"),
    ("secret", {"destroy": {}}, 400, "badRequest"),
    ("secret", {}, 400, "badRequest"),
]


def test_access_that_cannot_be_is_refused(admin: Person) -> None:
    for flavor, sent, status, key in NO_ACCESS:
        assert message(admin("POST", f"{C}/flavors/{flavor}/action", sent), status, key)


def test_access_is_for_administrators(admin: Person, member: Person) -> None:
    sent = {"addTenantAccess": {"tenant": MEMBER.project_id}}
    assert message(member("POST", f"{SECRET}/action", sent), 403, "forbidden")
    assert message(member("GET", f"{SECRET}/os-flavor-access"), 403, "forbidden")
    assert message(admin("GET", f"{C}/flavors/1/os-flavor-access"), 404, "itemNotFound")


def test_flavors_by_size_and_order(admin: Person, member: Person) -> None:
    assert names(member, "minRam=4097&sort_key=memory_mb&sort_dir=desc") == ["m1.xlarge", "m1.large"]
    assert names(member, "minDisk=160") == ["m1.xlarge"]
    assert names(member, "sort_key=vcpus&sort_dir=desc&limit=1") == ["m1.xlarge"]
    assert names(admin, "is_public=False") == ["secret"]
    assert "secret" not in names(admin, "")
    for wrong in ("minRam=x", "minDisk=-1", "sort_key=color", "sort_dir=up", "is_public=perhaps", "marker=nobody"):
        assert message(admin("GET", f"{C}/flavors?{wrong}"), 400, "badRequest")


NO_FLAVORS: list[Any] = [
    {"id": "a/b"},
    {"id": " a"},
    {"id": True},
    {"id": "x" * 256},
    {"rxtx_factor": 2.0},
    {"vcpus": True},
    {"ram": 1.5},
    {"disk": 2**63 % 10**18},
    {"OS-FLV-EXT-DATA:ephemeral": -1},
    {"swap": "much"},
    {"os-flavor-access:is_public": "perhaps"},
    {"name": " "},
]


def test_a_flavor_that_cannot_be_is_refused(admin: Person) -> None:
    for wrong in NO_FLAVORS:
        assert message(admin("POST", f"{C}/flavors", body(**wrong)), 400, "badRequest")
        assert message(admin("GET", f"{C}/flavors/f"), 404, "itemNotFound")
