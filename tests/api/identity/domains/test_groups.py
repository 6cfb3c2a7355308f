"""Routes of groups, as clients of Keystone use them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.identity.identity_factory import Asker, Place, app_of, place

V3 = "/identity/v3"


@pytest.fixture
def own(make_database: Callable[..., str], cloud_template: str, tmp_path: Path) -> Iterator[Place]:
    with place(make_database(cloud_template), tmp_path) as here:
        yield here


@pytest.fixture
def admin(own: Place) -> Asker:
    return signed_in(own, "admin")


@pytest.fixture
def demo(own: Place) -> Asker:
    return signed_in(own, "demo")


def signed_in(own: Place, user: str) -> Asker:
    asker = Asker(app_of(own))
    assert asker.sign_in(user, own.password(user), user).status_code == 201
    return asker


@pytest.fixture
def group_id(admin: Asker) -> str:
    body = {"group": {"name": "operators", "description": None, "floor": 3}}
    made: Any = admin.ask("POST", f"{V3}/groups", json=body).json["group"]
    expected = {"name": "operators", "description": "", "domain_id": "default", "floor": 3}
    assert {key: made[key] for key in expected} == expected
    return str(made["id"])


def own_id(asker: Asker) -> str:
    answer: Any = asker.ask("GET", f"{V3}/auth/tokens", headers={"X-Subject-Token": asker.token}).json
    return str(answer["token"]["user"]["id"])


def test_members_are_added_listed_checked_and_removed(admin: Asker, demo: Asker, group_id: str) -> None:
    path = f"{V3}/groups/{group_id}/users"
    mine = f"{path}/{own_id(demo)}"
    assert [admin.ask(method, mine).status_code for method in ("HEAD", "PUT", "PUT", "HEAD")] == [404, 204, 204, 204]
    assert [one["name"] for one in admin.ask("GET", path).json["users"]] == ["demo"]
    assert admin.ask("GET", f"{path}?name=other").json["users"] == []
    own = demo.ask("GET", f"{V3}/users/{own_id(demo)}/groups").json["groups"]
    assert [one["id"] for one in own] == [group_id]
    assert [admin.ask("DELETE", mine).status_code for _ in range(2)] == [204, 404]


def test_groups_are_listed_by_name_and_domain(admin: Asker, group_id: str) -> None:
    def found(query: str) -> list[str]:
        return [one["id"] for one in admin.ask("GET", f"{V3}/groups{query}").json["groups"]]

    assert [found(query) for query in ("", "?name=operators", "?domain_id=default")] == [[group_id]] * 3
    assert [found(query) for query in ("?name=others", "?domain_id=other")] == [[], []]


def test_a_group_is_changed_and_deleted(admin: Asker, group_id: str) -> None:
    path = f"{V3}/groups/{group_id}"
    changed = admin.ask("PATCH", path, json={"group": {"name": "pilots", "floor": 4}}).json["group"]
    assert (changed["name"], changed["floor"]) == ("pilots", 4)
    assert admin.ask("GET", path).json["group"] == changed
    assert [admin.ask(method, path).status_code for method in ("DELETE", "GET", "DELETE")] == [204, 404, 404]


@pytest.mark.parametrize("place", ["projects/{project}", "system"])
def test_roles_of_a_group_are_assigned_listed_and_removed(admin: Asker, demo: Asker, group_id: str, place: str) -> None:
    project = demo.ask("GET", f"{V3}/auth/projects").json["projects"][0]["id"]
    path = f"{V3}/{place.format(project=project)}/groups/{group_id}/roles"
    assert [admin.ask(method, f"{path}/reader").status_code for method in ("HEAD", "PUT", "HEAD")] == [404, 204, 204]
    assert [one["id"] for one in admin.ask("GET", path).json["roles"]] == ["reader"]
    assigned = admin.ask("GET", f"{V3}/role_assignments?group.id={group_id}&include_names").json["role_assignments"]
    domain = {"id": "default", "name": "Default"}
    assert [one["group"] for one in assigned] == [{"id": group_id, "name": "operators", "domain": domain}]
    assert assigned[0]["links"]["assignment"].endswith(
        f"{place.format(project=project)}/groups/{group_id}/roles/reader"
    )
    assert [admin.ask("DELETE", f"{path}/reader").status_code for _ in range(2)] == [204, 404]
