"""`/v1/<project>/leases`, the older form of each path, and the versions at the root of the port."""

import pytest
from flask import Flask

from tests.api.reservation.api_clients import Person, order


@pytest.mark.parametrize("path", ["/", "/versions", "/reservation", "/reservation/versions"])
def test_the_versions_are_at_the_root_without_a_token(app: Flask, path: str) -> None:
    answer = app.test_client().get(path)
    assert answer.status_code == 300
    [version] = answer.json["versions"]
    assert (version["id"], version["status"]) == ("v1.0", "CURRENT")
    assert version["links"] == [{"href": "http://here/reservation/v1", "rel": "self"}]


def test_all_of_a_lease_goes_through_paths_with_the_project(member: Person) -> None:
    made = member.done(member("POST", "/project/leases", order()), 201)["lease"]
    path = f"/project/leases/{made['id']}"
    assert [one["id"] for one in member.get("/project/leases")["leases"]] == [made["id"]]
    assert member.get(path)["lease"]["id"] == made["id"]
    assert member.done(member("PUT", path, {"name": "n"}))["lease"]["name"] == "n"
    assert member.get(f"{path}/history")["history"]
    assert member.get("/project/leases.json") == member.get("/leases")
    assert member("DELETE", path).status_code == 204
    assert member("GET", path).status_code == 404


@pytest.mark.parametrize("who", ["stranger", "admin"])
def test_a_path_with_another_project_is_400(app: Flask, member: Person, who: str) -> None:
    lease = member.lease()
    asker = Person(app, who)
    for method, path in (("GET", "/leases"), ("GET", f"/leases/{lease['id']}"), ("DELETE", f"/leases/{lease['id']}")):
        answer = asker(method, f"/project{path}")
        assert answer.status_code == 400
        assert "project_id 'project' does not match the project_id" in answer.json["error_message"]
        assert lease["id"] not in answer.text
    assert member.get(f"/leases/{lease['id']}")["lease"]["status"] == "PENDING"


def test_the_own_project_in_the_path_opens_no_lease_of_another(stranger: Person, member: Person) -> None:
    lease = member.lease()
    assert stranger("GET", f"/other-project/leases/{lease['id']}").status_code == 404
    assert stranger.get("/other-project/leases") == {"leases": []}


def test_a_path_with_a_project_needs_a_token_and_a_route(app: Flask, member: Person) -> None:
    assert app.test_client().get("/v1/project/leases").status_code == 401
    assert member("GET", "/project/nowhere").status_code == 404
    assert member("PATCH", "/project/leases").status_code == 405


def test_a_calendar_is_read_without_a_token_by_a_path_with_a_project_too(app: Flask, member: Person) -> None:
    url = member.done(member("POST", "/calendar-feeds", {}), 201)["calendar_feed"]["url"]
    secret = url.rpartition("/calendar/")[2]
    assert app.test_client().get(f"/v1/project/calendar/{secret}").status_code == 200
    assert app.test_client().get(f"/v1/project/calendar/{'x' * 43}.ics").status_code == 404
