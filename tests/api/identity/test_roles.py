"""Routes of roles, tags and projects below others, as clients use them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.identity.identity_factory import Asker, app_of, place

V3 = "/identity/v3"


@pytest.fixture
def admin(make_database: Callable[..., str], cloud_template: str, tmp_path: Path) -> Iterator[Asker]:
    with place(make_database(cloud_template), tmp_path) as here:
        asker = Asker(app_of(here))
        assert asker.sign_in("admin", here.password("admin"), "admin").status_code == 201
        yield asker


def created(admin: Asker, kind: str, **values: Any) -> dict[str, Any]:
    answer = admin.ask("POST", f"{V3}/{kind}s", json={kind: values})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json[kind]
    return found


def test_roles_by_http(admin: Asker) -> None:
    role = created(admin, "role", name="operator")
    assert role == {**role, "domain_id": None, "options": {}, "description": None}
    path = f"{V3}/roles/{role['id']}"
    changed = admin.ask("PATCH", path, json={"role": {"name": "pilot"}})
    assert admin.ask("GET", path).json == changed.json
    assert [one["id"] for one in admin.ask("GET", f"{V3}/roles?name=pilot").json["roles"]] == [role["id"]]
    me = admin.ask("GET", f"{V3}/users?name=demo").json["users"][0]["id"]
    held = f"{V3}/system/users/{me}/roles/{role['id']}"
    assert [admin.ask(method, held).status_code for method in ("HEAD", "PUT", "HEAD")] == [404, 204, 204]
    listed = admin.ask("GET", f"{V3}/role_assignments?scope.system=all&include_names").json["role_assignments"]
    assert [(one["scope"], one["role"]["name"]) for one in listed] == [({"system": {"all": True}}, "pilot")]
    assert [admin.ask(method, held).status_code for method in ("DELETE", "DELETE")] == [204, 404]
    assert [admin.ask("DELETE", path).status_code for _ in range(2)] == [204, 404]


@pytest.mark.parametrize(
    ("role", "status"),
    [
        ({}, 400),
        ({"name": "x" * 256}, 400),
        ({"name": "of-a-domain", "domain_id": "default"}, 400),
        ({"name": "Member"}, 409),
    ],
)
def test_bad_roles_are_refused(admin: Asker, role: dict[str, Any], status: int) -> None:
    assert admin.ask("POST", f"{V3}/roles", json={"role": role}).status_code == status
    assert admin.ask("PATCH", f"{V3}/roles/member", json={"role": {"name": "new"}}).status_code == 403


def test_tags_of_a_project(admin: Asker) -> None:
    project = created(admin, "project", name="lab", tags=["a", "b"])
    assert project["tags"] == ["a", "b"]
    tags = f"{V3}/projects/{project['id']}/tags"
    assert [admin.ask("PUT", f"{tags}/c").status_code for _ in range(2)] == [201, 201]
    assert [admin.ask(method, f"{tags}/a").status_code for method in ("HEAD", "DELETE", "HEAD", "DELETE")] == [
        *(204, 204, 404, 404)
    ]
    assert admin.ask("GET", tags).json["tags"] == ["b", "c"]
    assert admin.ask("PUT", tags, json={"tags": ["d"]}).json["tags"] == ["d"]
    bad: tuple[Any, ...] = (None, "d", ["d", "d"], ["a,b"], [""], [5], [str(one) for one in range(81)])
    assert [admin.ask("PUT", tags, json={"tags": one}).status_code for one in bad] == [400] * 7
    assert (admin.ask("DELETE", tags).status_code, admin.ask("GET", tags).json["tags"]) == (204, [])


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("tags=x", ["one", "two"]),
        ("tags=x,y", ["two"]),
        ("tags-any=x,z", ["one", "two"]),
        ("not-tags=x,y", ["admin", "demo", "one"]),
        ("not-tags-any=y", ["admin", "demo", "one"]),
        ("is_domain=true", []),
    ],
)
def test_projects_by_tags(admin: Asker, query: str, names: list[str]) -> None:
    created(admin, "project", name="one", tags=["x"])
    created(admin, "project", name="two", tags=["x", "y"])
    assert [one["name"] for one in admin.ask("GET", f"{V3}/projects?{query}").json["projects"]] == names


def test_projects_below_others(admin: Asker) -> None:
    above = created(admin, "project", name="above")
    below = created(admin, "project", name="below", parent_id=above["id"], cost_centre=7)
    assert (above["parent_id"], below["parent_id"], below["cost_centre"]) == ("default", above["id"], 7)
    listed = admin.ask("GET", f"{V3}/projects?parent_id={above['id']}").json["projects"]
    assert listed == [below]
    path = f"{V3}/projects/{above['id']}"
    refusals = [
        admin.ask("DELETE", path),
        admin.ask("PATCH", path, json={"project": {"enabled": False}}),
        admin.ask("PATCH", f"{V3}/projects/{below['id']}", json={"project": {"parent_id": "default"}}),
    ]
    assert [one.status_code for one in refusals] == [403] * 3
    unknown = admin.ask("POST", f"{V3}/projects", json={"project": {"name": "n", "parent_id": "unknown"}})
    assert unknown.status_code == 404
    assert admin.ask("DELETE", f"{V3}/projects/{below['id']}").status_code == 204
    assert admin.ask("DELETE", path).status_code == 204


def test_a_disabled_project_has_no_enabled_ones_below(admin: Asker) -> None:
    above = created(admin, "project", name="above", enabled=False)
    body = {"name": "below", "parent_id": above["id"]}
    assert admin.ask("POST", f"{V3}/projects", json={"project": body}).status_code == 403
    below = created(admin, "project", **body, enabled=False)
    enabled = {"project": {"enabled": True}}
    assert admin.ask("PATCH", f"{V3}/projects/{below['id']}", json=enabled).status_code == 403
    assert admin.ask("PATCH", f"{V3}/projects/{above['id']}", json=enabled).status_code == 200
    assert admin.ask("PATCH", f"{V3}/projects/{below['id']}", json=enabled).status_code == 200


def test_projects_are_at_most_three_below_another(admin: Asker) -> None:
    parent = "default"
    for level in range(4):
        parent = created(admin, "project", name=f"level-{level}", parent_id=parent)["id"]
    deepest = admin.ask("POST", f"{V3}/projects", json={"project": {"name": "n", "parent_id": parent}})
    assert (deepest.status_code, "at most 3 projects deep" in deepest.text) == (403, True)


def test_users_keep_further_attributes(admin: Asker) -> None:
    user = created(admin, "user", name="ada", project_id="p", phone={"home": "1"}, password="open-sesame-1")
    assert (user["project_id"], user["phone"], "password" in user) == ("p", {"home": "1"}, False)
    path = f"{V3}/users/{user['id']}"
    changed = admin.ask("PATCH", path, json={"user": {"phone": None, "room": 5}}).json["user"]
    assert (changed["project_id"], changed["phone"], changed["room"]) == ("p", None, 5)
    assert admin.ask("GET", path).json["user"] == changed
    assert admin.ask("PATCH", path, json={"user": {"room": "x" * 9000}}).status_code == 400


def test_rules_between_roles_by_http(admin: Asker) -> None:
    prior, implied = (created(admin, "role", name=name) for name in ("operator", "pilot"))
    path = f"{V3}/roles/{prior['id']}/implies"
    one = f"{path}/{implied['id']}"
    assert [admin.ask(method, one).status_code for method in ("GET", "PUT", "HEAD", "GET")] == [404, 201, 204, 200]
    rule = admin.ask("GET", one).json["role_inference"]
    assert (rule["prior_role"]["name"], rule["implies"]["name"]) == ("operator", "pilot")
    assert [role["name"] for role in admin.ask("GET", path).json["role_inference"]["implies"]] == ["pilot"]
    listed = admin.ask("GET", f"{V3}/role_inferences").json["role_inferences"]
    assert [(rule["prior_role"]["name"], len(rule["implies"])) for rule in listed] == [("operator", 1)]
    assert [admin.ask("DELETE", one).status_code for _ in range(2)] == [204, 404]


def test_the_catalog_is_shown_and_its_change_is_not_implemented(admin: Asker) -> None:
    one = admin.ask("GET", f"{V3}/endpoints").json["endpoints"][0]
    assert admin.ask("GET", f"{V3}/endpoints/{one['id']}").json == {"endpoint": one}
    assert admin.ask("GET", f"{V3}/regions/RegionOne").json["region"]["id"] == "RegionOne"
    changes = (
        ("POST", "services"),
        ("POST", "endpoints"),
        ("POST", "regions"),
        ("PATCH", f"services/{one['service_id']}"),
        ("DELETE", f"endpoints/{one['id']}"),
        ("PUT", "regions/other"),
    )
    assert [admin.ask(method, f"{V3}/{path}", json={}).status_code for method, path in changes] == [501] * 6
