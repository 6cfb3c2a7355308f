"""The bytes that the peer's clients know: keys, shapes of dates, statuses, headers."""

from typing import Any

import pytest
from flask import Flask

from climate.context import Climate
from tests.api.reservation.api_clients import Person, order, reservation, run_due
from tests.conftest import Clock

LEASE = {
    "id", "name", "user_id", "project_id", "start_date", "end_date", "trust_id", "status", "degraded", "created_at",
    "updated_at", "reservations", "events",
}  # fmt: skip
RESERVATION = {
    "id", "lease_id", "resource_id", "resource_type", "status", "missing_resources", "resources_changed", "created_at",
    "updated_at", "hypervisor_properties", "resource_properties", "before_end", "min", "max",
    "on_end", "grace_period", "recycle_deadline", "aggregate_id",
}  # fmt: skip
EVENT = {"id", "lease_id", "event_type", "time", "status", "created_at", "updated_at"}


def test_a_lease_is_shown_as_the_peer_shows_it(member: Person) -> None:
    answer = member("POST", "/leases", order(before_end_date="2030-01-02 11:30"))
    assert answer.status_code == 201
    lease = answer.json["lease"]
    assert set(answer.json) == {"lease"}
    assert set(lease) == LEASE
    assert lease | {"id": "", "reservations": [], "events": []} == {
        "id": "",
        "name": "l",
        "user_id": "user",
        "project_id": "project",
        "start_date": "2030-01-02T10:00:00.000000",
        "end_date": "2030-01-02T12:00:00.000000",
        "trust_id": None,
        "status": "PENDING",
        "degraded": False,
        "created_at": "2030-01-01 12:00:00.000000",
        "updated_at": None,
        "reservations": [],
        "events": [],
    }
    [held] = lease["reservations"]
    assert set(held) == RESERVATION
    assert held | {"id": "", "lease_id": "", "resource_id": ""} == {
        "id": "",
        "lease_id": "",
        "resource_id": "",
        "resource_type": "physical:host",
        "status": "pending",
        "missing_resources": False,
        "resources_changed": False,
        "created_at": "2030-01-01 12:00:00.000000",
        "updated_at": None,
        "hypervisor_properties": "",
        "resource_properties": "",
        "before_end": "default",
        "min": 1,
        "max": 1,
        "on_end": "terminate",
        "grace_period": 0,
        "recycle_deadline": "terminate",
        "aggregate_id": 1,
    }
    assert [set(event) for event in lease["events"]] == [EVENT] * 3
    assert [(event["event_type"], event["time"], event["status"]) for event in lease["events"]] == [
        ("start_lease", "2030-01-02T10:00:00.000000", "UNDONE"),
        ("before_end_lease", "2030-01-02T11:30:00.000000", "UNDONE"),
        ("end_lease", "2030-01-02T12:00:00.000000", "UNDONE"),
    ]
    assert {event["created_at"] for event in lease["events"]} == {"2030-01-01 12:00:00.000000"}
    assert {part["lease_id"] for part in lease["events"] + lease["reservations"]} == {lease["id"]}


def test_what_is_created_listed_and_shown_is_the_same(member: Person) -> None:
    made = member.lease()
    assert member.get(f"/leases/{made['id']}") == {"lease": made}
    assert member.get("/leases") == {"leases": [made]}


def test_a_change_answers_with_the_resulting_status(member: Person) -> None:
    made = member.lease()
    answer = member("PUT", f"/leases/{made['id']}", {"name": "other"})
    assert answer.status_code == 200
    assert (answer.json["lease"]["name"], answer.json["lease"]["status"]) == ("other", "PENDING")
    assert answer.json["lease"]["updated_at"] == "2030-01-01 12:00:00.000000"
    assert member.done(member("PUT", f"/leases/{made['id']}", {})) == answer.json


def test_now_and_both_forms_of_dates(member: Person) -> None:
    first = member.lease(start_date="now", end_date="2030-01-01 13:00", before_end_date=None)
    assert first["start_date"] == "2030-01-01T12:00:00.000000"
    second = member.lease(start_date="2030-01-02T10:00:30+02:00", end_date="2030-01-02T10:00:00.5Z")
    assert (second["start_date"], second["end_date"]) == ("2030-01-02T08:00:30.000000", "2030-01-02T10:00:00.500000")
    moved = member.done(member("PUT", f"/leases/{second['id']}", {"start_date": "now", "end_date": "2030-01-02 11:00"}))
    assert moved["lease"]["start_date"] == "2030-01-01T12:00:00.000000"


def test_a_lease_ends_at_once_on_request(member: Person, climate: Climate, clock: Clock) -> None:
    made = member.lease(start_date="now", end_date="2030-01-01 18:00")
    run_due(climate)
    assert member.get(f"/leases/{made['id']}")["lease"]["status"] == "ACTIVE"
    clock.forward(seconds=90)
    ended = member.done(member("PUT", f"/leases/{made['id']}", {"end_date": "now"}))["lease"]
    assert ended["end_date"] == "2030-01-01T12:01:30.000000"
    run_due(climate)
    shown = member.get(f"/leases/{made['id']}")["lease"]
    assert (shown["status"], shown["reservations"][0]["status"]) == ("TERMINATED", "deleted")
    assert set(shown) == LEASE


def test_numbers_may_come_as_digits_and_names_in_any_script(member: Person) -> None:
    name = "حجز \u202eabc 🚀"
    made = member.lease(name, reservations=[reservation(min="1", max="2")])
    assert made["name"] == name
    assert (made["reservations"][0]["min"], made["reservations"][0]["max"]) == (1, 2)
    assert member.lease(name)["name"] == name, "a name may be used twice"


def test_a_lease_of_nothing(member: Person) -> None:
    assert member.lease(reservations=...)["reservations"] == []
    assert member.lease(reservations=[])["reservations"] == []


def test_events_that_the_client_names_are_shown_among_the_others(member: Person) -> None:
    named = [
        {"event_type": "second", "event_date": "2030-01-02 11:30"},
        {"event_type": "notification", "event_date": "2030-01-02 11:00"},
        {"event_type": "end_lease", "event_date": "2030-01-02 12:00"},
    ]
    events = member.lease(events=named)["events"]
    assert [event["event_type"] for event in events] == ["start_lease", "notification", "second", "end_lease"]
    assert events[1]["time"] == "2030-01-02T11:00:00.000000"


def test_a_server_is_reserved_by_its_id(member: Person, climate: Climate) -> None:
    server = climate.cloud.boot("project", status="RESERVED")  # type: ignore[attr-defined]
    made = member.lease(reservations=[{"resource_type": "virtual:instance", "resource_id": server}])
    [held] = made["reservations"]
    assert (held["resource_id"], held["on_end"]) == (server, "create_image, delete")


def test_deleting(member: Person, climate: Climate) -> None:
    made = member.lease()
    answer = member("DELETE", f"/leases/{made['id']}")
    assert (answer.status_code, answer.data, answer.headers["Content-Type"]) == (204, b"", "application/json")
    assert member("DELETE", f"/leases/{made['id']}").status_code == 404

    made = member.lease(start_date="now", end_date="2030-01-01 18:00")
    run_due(climate)
    climate.cloud.broken = True  # type: ignore[attr-defined]
    assert member("DELETE", f"/leases/{made['id']}").status_code == 204
    run_due(climate)
    shown = member.get(f"/leases/{made['id']}")["lease"]
    assert shown["status"] == "DELETING"
    assert set(shown) == LEASE | {"status_reason"}
    assert shown["status_reason"].startswith("end_lease: ")
    assert member("DELETE", f"/leases/{made['id']}").status_code == 204


def test_a_failing_start_says_why(member: Person, climate: Climate, clock: Clock) -> None:
    made = member.lease(start_date="now", end_date="2030-01-01 18:00")
    climate.cloud.broken = True  # type: ignore[attr-defined]
    run_due(climate)
    assert member.get(f"/leases/{made['id']}")["lease"]["status_reason"].startswith("start_lease: ")
    climate.cloud.broken = False  # type: ignore[attr-defined]
    clock.forward(minutes=10)
    run_due(climate)
    shown = member.get(f"/leases/{made['id']}")["lease"]
    assert (shown["status"], set(shown)) == ("ACTIVE", LEASE)


def test_reservations_are_changed_by_their_id(member: Person) -> None:
    made = member.lease()
    change = {"id": made["reservations"][0]["id"], "min": "2", "max": 3}
    changed = member.done(member("PUT", f"/leases/{made['id']}", {"reservations": [change]}))["lease"]
    [held] = changed["reservations"]
    assert (held["id"], held["min"], held["max"], held["before_end"]) == (change["id"], 2, 3, "default")
    assert set(held) == RESERVATION


def test_plugins(reader: Person) -> None:
    known = reader.get("/plugins")["plugins"]
    assert [(one["name"], one["resource_type"]) for one in known] == [
        ("FlavorInstance", "flavor:instance"),
        ("PhysicalHost", "physical:host"),
        ("StoragePool", "storage:pool"),
        ("FloatingIp", "virtual:floatingip"),
        ("VirtualInstance", "virtual:instance"),
    ]
    assert all(one["description"] for one in known)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/reservation", 300),
        ("/reservation/", 300),
        ("/reservation/v1", 200),
        ("/v1/", 200),
        ("/reservation/versions", 300),
    ],
)
def test_the_versions_are_shown_to_anybody(standing: tuple[Flask, Climate], path: str, status: int) -> None:
    answer = standing[0].test_client().get(path)
    assert answer.status_code == status
    version = {
        "id": "v1.0",
        "status": "CURRENT",
        "links": [{"href": "http://here/reservation/v1", "rel": "self"}],
        "min_version": "1.0",
        "max_version": "1.0",
    }
    assert answer.json == {"versions": [version]}


def test_every_answer_says_which_version_it_is(member: Person) -> None:
    for answer in (
        member("GET", "/leases"),
        member("GET", "/leases/x"),
        member("DELETE", f"/leases/{member.lease()['id']}"),
    ):
        assert answer.headers["OpenStack-API-Version"] == "reservation 1.0"
        assert "OpenStack-API-Version" in answer.headers["Vary"]
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.headers["x-openstack-request-id"].startswith("req-")


@pytest.mark.parametrize(
    "said", ["reservation 1.0", "reservation latest", "compute 2.79", "compute 2.79, reservation 1.0", ""]
)
def test_versions_that_are_spoken(standing: tuple[Flask, Climate], said: str) -> None:
    assert Person(standing[0], "member")("GET", "/leases", headers={"OpenStack-API-Version": said}).status_code == 200


WRONG_VERSIONS: list[tuple[str, int, dict[str, Any]]] = [
    (
        "reservation 2.0",
        406,
        {"error": 406, "error_message": "Version 2.0 is not supported by the API. Minimum is 1.0 and maximum is 1.0."},
    ),
    (
        "reservation abc",
        400,
        {
            "error": 400,
            "error_message": "API Version String abc is of invalid format. Must be of format MajorNum.MinorNum.",
        },
    ),
]


@pytest.mark.parametrize(("said", "status", "body"), WRONG_VERSIONS)
def test_versions_that_are_not(standing: tuple[Flask, Climate], said: str, status: int, body: dict[str, Any]) -> None:
    answer = Person(standing[0], "member")("GET", "/leases", headers={"OpenStack-API-Version": said})
    assert (answer.status_code, answer.json) == (status, body)


def test_the_short_path_and_the_suffix_lead_to_the_same(member: Person, app: Flask) -> None:
    made = member.lease()
    for path in ("/v1/leases", "/v1/leases.json", "/reservation/v1/leases.json", "/v1/leases/"):
        assert app.test_client().get(path, headers={"X-Auth-Token": "member"}).json == {"leases": [made]}
