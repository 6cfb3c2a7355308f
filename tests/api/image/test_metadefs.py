"""Catalog of properties: namespaces with objects, properties, tags and resource types."""

from typing import Any

import pytest

from tests.api.compute.api_clients import Person, done
from tests.api.compute.test_images import refusal

M = "/image/v2/metadefs"
N = f"{M}/namespaces"
COLOR = {"name": "color", "title": "Color", "type": "string", "enum": ["red", "blue"]}


def names(who: Person, query: str = "") -> list[str]:
    return [one["namespace"] for one in who.get(f"{N}?{query}")["namespaces"]]


@pytest.fixture
def paint(admin: Person) -> dict[str, Any]:
    """A public namespace with one of each part."""
    body = {
        "namespace": "OS::Paint",
        "visibility": "public",
        "display_name": "Paint",
        "objects": [{"name": "coat", "properties": {"layers": {"title": "Layers", "type": "integer", "minimum": 1}}}],
        "properties": {"color": {key: value for key, value in COLOR.items() if key != "name"}},
        "tags": [{"name": "glossy"}],
        "resource_type_associations": [{"name": "OS::Glance::Image", "prefix": "hw_"}],
    }
    return dict(done(admin("POST", N, body), 201))


def test_everybody_reads_what_administrators_write(member: Person, stranger: Person, paint: dict[str, Any]) -> None:
    shown = stranger.get(f"{N}/OS::Paint")
    assert shown == paint
    assert (shown["owner"], shown["protected"], shown["display_name"]) == ("admin-project", False, "Paint")
    assert shown["properties"]["color"]["enum"] == ["red", "blue"]
    assert stranger.get(f"{N}/OS::Paint/objects/coat")["properties"]["layers"]["minimum"] == 1
    assert stranger.get(f"{N}/OS::Paint/tags")["tags"][0]["name"] == "glossy"
    assert stranger.get(f"{N}/OS::Paint/resource_types")["resource_type_associations"][0]["prefix"] == "hw_"
    assert member("POST", N, {"namespace": "own"}).status_code == 403


def test_private_namespaces_are_their_owners(admin: Person, member: Person, stranger: Person, paint: Any) -> None:
    done(admin("POST", N, {"namespace": "own", "owner": "project"}), 201)
    assert (names(member), names(stranger), names(admin)) == (["OS::Paint", "own"], ["OS::Paint"], ["OS::Paint", "own"])
    assert stranger("GET", f"{N}/own").status_code == 404
    assert names(admin, "visibility=private") == ["own"]
    assert names(admin, "resource_types=OS::Glance::Image,OS::Nova::Flavor") == ["OS::Paint"]
    assert (names(admin, "limit=1"), names(admin, "marker=OS::Paint")) == (["OS::Paint"], ["own"])
    assert admin.get(f"{N}?limit=1")["next"].endswith("?limit=1&marker=OS%3A%3APaint")
    assert "not an entry" in refusal(admin("GET", f"{N}?marker=none"), 400)


def test_a_namespace_is_changed_and_renamed(admin: Person, paint: Any) -> None:
    done(admin("POST", N, {"namespace": "taken"}), 201)
    assert admin("POST", N, {"namespace": "taken"}).status_code == 409
    assert admin("PUT", f"{N}/OS::Paint", {"namespace": "taken"}).status_code == 409
    changed = done(admin("PUT", f"{N}/OS::Paint", {"namespace": "OS::Ink", "protected": True, "visibility": "private"}))
    assert (changed["namespace"], changed["visibility"], changed["display_name"]) == ("OS::Ink", "private", "Paint")
    assert "is protected" in refusal(admin("DELETE", f"{N}/OS::Ink"), 403)
    done(admin("PUT", f"{N}/OS::Ink", {"namespace": "OS::Ink", "protected": False}))
    assert [admin("DELETE", f"{N}/OS::Ink").status_code for _ in range(2)] == [204, 404]


@pytest.mark.parametrize(
    ("kind", "body", "name"),
    [
        ("properties", COLOR, "color"),
        ("objects", {"name": "coat", "description": "d", "required": ["a"]}, "coat"),
        ("resource_types", {"name": "OS::Nova::Flavor"}, "OS::Nova::Flavor"),
    ],
)
def test_parts_are_added_renamed_and_deleted(admin: Person, kind: str, body: dict[str, Any], name: str) -> None:
    done(admin("POST", N, {"namespace": "n"}), 201)
    path = f"{N}/n/{kind}"
    assert done(admin("POST", path, body), 201).items() >= body.items()
    assert "already" in refusal(admin("POST", path, body), 409)
    if kind != "resource_types":
        assert done(admin("PUT", f"{path}/{name}", body | {"name": "new"}))["name"] == "new"
        assert admin("GET", f"{path}/{name}").status_code == 404
        name = "new"
        assert admin.get(f"{path}/new").items() >= {**body, "name": "new"}.items()
    assert [admin("DELETE", f"{path}/{name}").status_code for _ in range(2)] == [204, 404]


def test_tags_are_replaced_together_and_added_alone(admin: Person) -> None:
    done(admin("POST", N, {"namespace": "n"}), 201)
    path = f"{N}/n/tags"
    for wanted in (["a", "b"], ["c"]):
        done(admin("POST", path, {"tags": [{"name": name} for name in wanted]}), 201)
    done(admin("POST", f"{path}/d"), 201)
    assert done(admin("PUT", f"{path}/d", {"name": "e"}))["name"] == "e"
    assert {one["name"] for one in admin.get(path)["tags"]} == {"c", "e"}
    assert admin("DELETE", path).status_code == 204
    assert admin.get(path)["tags"] == []


def test_types_of_resources_are_those_of_this_cloud_and_those_named(admin: Person, member: Person, paint: Any) -> None:
    done(admin("POST", f"{N}/OS::Paint/resource_types", {"name": "OS::Own::Thing"}), 201)
    listed = {one["name"] for one in member.get(f"{M}/resource_types")["resource_types"]}
    assert listed >= {"OS::Glance::Image", "OS::Nova::Server", "OS::Own::Thing"}


@pytest.mark.parametrize("value", ["1e999", "NaN", r'"\u0000"', r'"\ud800"', "[" * 200 + "]" * 200, "1" * 5000])
def test_values_that_no_row_can_hold_are_refused(admin: Person, value: str) -> None:
    done(admin("POST", N, {"namespace": "n"}), 201)
    body = '{"name": "p", "title": "t", "type": "string", "default": ' + value + "}"
    headers = {"Content-Type": "application/json"}
    assert admin("POST", f"{N}/n/properties", data=body, headers=headers).status_code == 400
    assert admin.get(f"{N}/n/properties")["properties"] == {}
