"""Bad input about hosts and their properties, and about events."""

from typing import Any

import pytest
from flask import Flask

from climate.cloud import CloudError, Refused
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from tests.api.reservation.api_clients import Person, order, reservation, written
from tests.conftest import cloud_host

HOSTS: dict[str, tuple[dict[str, Any], int, str]] = {
    "no name": ({"gpu": "1"}, 400, "Missing parameter name"),
    "a name of nothing": ({"name": " "}, 400, "name"),
    "a number for a name": ({"name": 5}, 400, "name"),
    "an object for an id": ({"id": {}}, 400, "name"),
    "an unknown host": ({"name": "h99"}, 404, "Host 'h99' not found!"),
    "an unknown host by id": ({"id": 99}, 404, "Host '99' not found!"),
    "registered already": ({"name": "h1"}, 409, "Host 'h1' is already registered"),
    "a long capability": ({"name": "h1", "k" * 65: "1"}, 400, "Extra capability key too long"),
    "a capability that is a column": ({"name": "h1", "vcpus": "64"}, 400, "vcpus"),
    "a capability with a quote": ({"name": "h1", "a.b'c": "1"}, 400, "a.b'c"),
    "a capability of no letters": ({"name": "h1", "": "1"}, 400, "letters"),
    "an object for a value": ({"name": "h1", "gpu": {"a": 1}}, 400, "'gpu' must be a text, not dict"),
    "a list for a value": ({"name": "h1", "gpu": ["a"]}, 400, "'gpu' must be a text, not list"),
    "null for a value": ({"name": "h1", "gpu": None}, 400, "'gpu' must be a text"),
    "blanks for a value": ({"name": "h1", "gpu": "  "}, 400, "'gpu' must be a text of 1 to 4096 characters"),
    "a long value": ({"name": "h1", "gpu": "x" * 10_000}, 400, "'gpu' must be a text of 1 to 4096 characters"),
    "300 capabilities": ({"name": "h1", **{f"k{n}": "1" for n in range(300)}}, 400, "256"),
    "U+0000": ({"name": "h1", "gpu": "a\0"}, 400, "U+0000"),
}


@pytest.mark.parametrize(("body", "status", "text"), HOSTS.values(), ids=HOSTS)
def test_a_registration(standing: tuple[Flask, Climate], body: dict[str, Any], status: int, text: str) -> None:
    app, climate = standing
    before = written(climate.engine)
    answer = Person(app, "admin")("POST", "/os-hosts", body)
    assert (answer.status_code, answer.json.get("error_code")) == (status, status), answer.json
    assert text in answer.json["error_message"]
    assert written(climate.engine) == before


CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, "No data to update"),
    "a name": ({"name": "h2"}, "name"),
    "a column": ({"memory_mb": 1}, "memory_mb"),
    "an id": ({"id": 2}, "id"),
    "an object": ({"gpu": {}}, "'gpu' must be a text"),
}


@pytest.mark.parametrize(("body", "text"), CHANGES.values(), ids=CHANGES)
def test_a_change(standing: tuple[Flask, Climate], body: dict[str, Any], text: str) -> None:
    person = Person(standing[0], "admin")
    before = person.get("/os-hosts/1")
    answer = person("PUT", "/os-hosts/1", body)
    assert answer.status_code == 400, answer.json
    assert text in answer.json["error_message"]
    assert person.get("/os-hosts/1") == before


@pytest.mark.parametrize("host_id", ["99", "0", "-1", "h1", "1" * 30, "1' OR '1'='1"])
@pytest.mark.parametrize(("method", "tail"), [("GET", ""), ("PUT", ""), ("DELETE", ""), ("GET", "/allocation")])
def test_ids_that_are_nobodys(standing: tuple[Flask, Climate], method: str, tail: str, host_id: str) -> None:
    body = {"gpu": "1"} if method == "PUT" else None
    answer = Person(standing[0], "admin")(method, f"/os-hosts/{host_id}{tail}", body)
    assert answer.status_code == 404
    assert answer.json["error_message"] == f"Object with {{'host_id': '{host_id}'}} not found"


def test_a_host_that_the_cloud_knows_twice_or_that_is_in_use(admin: Person, climate: Climate) -> None:
    cloud = climate.cloud
    assert isinstance(cloud, FakeCloud)
    cloud.hosts["h9"] = cloud_host("h9")
    cloud.boot("project", "h9")
    answer = admin("POST", "/os-hosts", {"name": "h9"})
    assert answer.status_code == 409
    assert "h9" in answer.json["error_message"]


def test_a_host_with_a_lease(admin: Person, member: Person) -> None:
    relied = [reservation(min=8, max=8, resource_properties='["or", ["!=", "$gpu_count", "9"], [">", "$vcpus", "0"]]')]
    made = member.lease(reservations=relied)
    answer = admin("DELETE", "/os-hosts/1")
    assert answer.status_code == 409
    assert answer.json["error_message"] == f"Can't delete host 1. The host is reserved: by lease {made['id']}"
    answer = admin("PUT", "/os-hosts/5", {"gpu_count": "3"})
    assert answer.status_code == 409
    assert answer.json["error_message"].startswith("Can't add extracapabilities [gpu_count] to Host 5")
    assert admin.get("/os-hosts/5")["host"]["gpu_count"] == "2"


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "marker=x", "marker=99", "name=h1"])
@pytest.mark.parametrize("path", ["/os-hosts", "/os-hosts/allocations"])
def test_queries_of_lists(standing: tuple[Flask, Climate], path: str, query: str) -> None:
    assert Person(standing[0], "admin")("GET", f"{path}?{query}").status_code == 400


@pytest.mark.parametrize("body", [{}, {"private": "yes"}, {"private": 1}, {"private": None}, {"name": "x"}])
def test_privacy_is_true_or_false(standing: tuple[Flask, Climate], body: dict[str, Any]) -> None:
    answer = Person(standing[0], "admin")("PATCH", "/os-hosts/properties/gpu", body)
    assert answer.status_code == 400
    assert "private" in answer.json["error_message"]


def test_an_unknown_property(standing: tuple[Flask, Climate]) -> None:
    answer = Person(standing[0], "admin")("PATCH", "/os-hosts/properties/wheels", {"private": True})
    assert (answer.status_code, answer.json["error_message"]) == (404, "Property wheels does not exist")


@pytest.mark.parametrize("event_id", ["x", "2b8b57a5-5aa5-4b0e-9d2b-1d6d1c0f5a11"])
def test_unknown_events(standing: tuple[Flask, Climate], event_id: str) -> None:
    answer = Person(standing[0], "admin")("POST", f"/events/{event_id}/requeue")
    assert (answer.status_code, answer.json["error_message"]) == (404, f"no event {event_id}")


@pytest.mark.parametrize("query", ["status=LOST", "marker=x", "marker=2b8b57a5-5aa5-4b0e-9d2b-1d6d1c0f5a11", "x=y"])
def test_queries_of_events(standing: tuple[Flask, Climate], query: str) -> None:
    assert Person(standing[0], "admin")("GET", f"/events?{query}").status_code == 400


def test_the_cloud_is_away(admin: Person, climate: Climate) -> None:
    climate.cloud.broken = True  # type: ignore[attr-defined]
    answer = admin("POST", "/os-hosts", {"name": "h1"})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")


def test_what_the_cloud_did_not_take_is_not_kept(admin: Person, climate: Climate) -> None:
    cloud = climate.cloud
    assert isinstance(cloud, FakeCloud)
    cloud.hosts["h9"] = cloud_host("h9")
    again = {"headers": {"Idempotency-Key": "k"}}
    for error, status in ((CloudError("away"), 503), (Refused("lent"), 409)):
        cloud.failures["enrol"] = error
        assert admin("POST", "/os-hosts", {"name": "h9"}, **again).status_code == status
        assert "h9" not in [host["hypervisor_hostname"] for host in admin.get("/os-hosts")["hosts"]]
    cloud.failures.clear()
    assert admin("POST", "/os-hosts", {"name": "h9"}, **again).status_code == 201


def test_a_server_cannot_be_looked_up(member: Person, climate: Climate) -> None:
    climate.cloud.broken = True  # type: ignore[attr-defined]
    server = {"resource_type": "virtual:instance", "resource_id": "2b8b57a5-5aa5-4b0e-9d2b-1d6d1c0f5a11"}
    answer = member("POST", "/leases", order(reservations=[server]))
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
