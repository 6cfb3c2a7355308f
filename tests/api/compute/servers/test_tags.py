"""Tags of servers: set at boot and later, shown, and in queries of lists."""

from typing import Any

import pytest
from werkzeug.test import TestResponse

from tests.api.compute.api_clients import Person, World, done, message, server

SERVERS = "/compute/v2.1/servers"


def ask(person: Person, method: str, path: str, body: Any = None, version: str = "2.52") -> TestResponse:
    return person(method, f"{SERVERS}{path}", body, headers={"OpenStack-API-Version": f"compute {version}"})


def test_tags_one_by_one_and_together(member: Person) -> None:
    path = f"/{member.booted()}/tags"
    created = ask(member, "PUT", f"{path}/gpu")
    assert (created.status_code, created.headers["Location"].endswith(f"{path}/gpu")) == (201, True)
    assert ask(member, "PUT", f"{path}/gpu").status_code == 204
    assert ask(member, "GET", f"{path}/gpu").status_code == 204
    assert "has no tag 'cpu'" in message(ask(member, "GET", f"{path}/cpu"), 404, "itemNotFound")
    assert done(ask(member, "PUT", path, {"tags": ["b", "a", "b"]})) == {"tags": ["a", "b"]}
    assert ask(member, "DELETE", f"{path}/b").status_code == 204
    assert ask(member, "DELETE", f"{path}/b").status_code == 404
    assert done(ask(member, "GET", path)) == {"tags": ["a"]}
    assert ask(member, "DELETE", path).status_code == 204
    assert done(ask(member, "GET", path)) == {"tags": []}


def test_tags_of_a_new_server_are_shown(member: Person, there: World) -> None:
    made = done(ask(member, "POST", "", {"server": server(tags=["y", "x"], min_count=2, max_count=2)}), 202)["server"]
    there.settle()
    assert member.get(f"{SERVERS}/{made['id']}", "2.26")["server"]["tags"] == ["x", "y"]
    assert "tags" not in member.get(f"{SERVERS}/{made['id']}", "2.25")["server"]
    assert [one["tags"] for one in member.get(f"{SERVERS}/detail", "2.26")["servers"]] == [["x", "y"]] * 2


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("tags=a", "both first"),
        ("tags=a,b", "both"),
        ("tags-any=a,b", "both first"),
        ("not-tags=a,b", "first none"),
        ("not-tags-any=a,b", "none"),
        ("tags=c", ""),
    ],
)
def test_lists_are_filtered_by_tags(member: Person, query: str, names: str) -> None:
    for name, tags in (("both", ["a", "b"]), ("first", ["a"]), ("none", [])):
        done(ask(member, "POST", "", {"server": server(name=name, tags=tags)}), 202)
    listed = member.get(f"{SERVERS}?{query}", "2.26")["servers"]
    assert sorted(one["name"] for one in listed) == names.split()
    assert len(member.get(f"{SERVERS}?{query}", "2.25")["servers"]) == 3


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"tags": "a"}, "tags must be a list of at most 50 tags"),
        ({"tags": ["a,b"]}, "tags must be a text of 1 to 60 characters without '/' and ','"),
        ({"tags": ["a/b"]}, "without '/'"),
        ({"tags": [""]}, "1 to 60 characters"),
        ({"tags": [7]}, "1 to 60 characters"),
        ({"tags": ["x" * 61]}, "1 to 60 characters"),
        ({"tags": [str(number) for number in range(51)]}, "at most 50 tags"),
        ({}, "tags"),
        ({"tags": [], "more": 1}, "'more'"),
    ],
)
def test_wrong_tags_are_refused(member: Person, body: dict[str, Any], said: str) -> None:
    path = f"/{member.booted()}/tags"
    assert said in message(ask(member, "PUT", path, body), 400, "badRequest")
    assert done(ask(member, "GET", path)) == {"tags": []}


def test_a_server_has_at_most_50_tags(member: Person) -> None:
    path = f"/{member.booted()}/tags"
    done(ask(member, "PUT", path, {"tags": [f"t{number}" for number in range(50)]}))
    assert "limit 50" in message(ask(member, "PUT", f"{path}/more"), 400, "badRequest")
    assert ask(member, "PUT", f"{path}/t7").status_code == 204
    assert "1 to 60" in message(ask(member, "PUT", f"{path}/a,b"), 400, "badRequest")


def test_tags_begin_with_their_microversions(member: Person) -> None:
    server_id = member.booted()
    for method, path in (("GET", ""), ("PUT", ""), ("DELETE", ""), ("GET", "/a"), ("PUT", "/a"), ("DELETE", "/a")):
        assert "2.26" in message(
            ask(member, method, f"/{server_id}/tags{path}", {"tags": []}, "2.25"), 404, "itemNotFound"
        )
    assert "2.52" in message(ask(member, "POST", "", {"server": server(tags=["a"])}, "2.51"), 400, "badRequest")
