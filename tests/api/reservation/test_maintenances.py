"""Maintenance windows, the health of hosts and reallocation, as they look on the wire; and what they refuse."""

from typing import Any
from uuid import UUID

import pytest
from flask import Flask

from climate.context import Climate
from tests.api.reservation.api_clients import Person, order, reservation

NOBODYS = "00000000-0000-4000-8000-000000000000"
WINDOW: dict[str, Any] = {
    "host_id": "1",
    "start_date": "2031-01-31 09:00",
    "end_date": "2031-01-31 12:00",
    "reason": "new memory",
}


def of_all(member: Person) -> dict[str, Any]:
    """A lease of every host, over the window."""
    dates = {"start_date": "2031-01-31 08:00", "end_date": "2031-01-31 10:00"}
    return member.lease(**dates, reservations=[reservation(min=8, max=8)])


def reservation_of(lease: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = lease["reservations"][0]
    return found


def test_a_window_from_end_to_end(admin: Person) -> None:
    made = admin.done(admin("POST", "/maintenances", WINDOW), 201)
    window = made["maintenance"]
    assert UUID(window["id"])
    assert (window["host_id"], window["host"], window["state"]) == ("1", "h1", "planned")
    assert (window["start_date"], window["end_date"]) == ("2031-01-31T09:00:00.000000", "2031-01-31T12:00:00.000000")
    assert (window["reason"], window["created_by"], made["leases"]) == ("new memory", "admin-user", [])
    path = f"/maintenances/{window['id']}"
    assert admin.get(path)["maintenance"] == window
    changed = admin.done(admin("PUT", path, {"end_date": None, "reason": "new disks"}))["maintenance"]
    assert (changed["end_date"], changed["reason"]) == (None, "new disks")
    assert [one["id"] for one in admin.get("/maintenances")["maintenances"]] == [window["id"]]
    assert admin.get("/maintenances?host_id=2")["maintenances"] == []
    assert admin.done(admin("DELETE", path))["maintenance"]["state"] == "cancelled"
    assert admin.done(admin("DELETE", path))["maintenance"]["state"] == "cancelled"
    assert admin.get("/maintenances")["maintenances"] == []
    assert len(admin.get("/maintenances?state=all")["maintenances"]) == 1
    assert len(admin.get("/maintenances?state=cancelled")["maintenances"]) == 1
    assert admin("PUT", path, {"reason": "x"}).status_code == 409


def test_pages(admin: Person) -> None:
    ids = [
        admin.done(admin("POST", "/maintenances", {**WINDOW, "host_id": str(host)}), 201)["maintenance"]["id"]
        for host in (1, 2, 3)
    ]
    listed = admin.get("/maintenances")["maintenances"]
    assert {one["id"] for one in listed} == set(ids)
    first = admin.get("/maintenances?limit=2")
    assert len(first["maintenances"]) == 2
    assert first["maintenances_links"]
    rest = admin.get(f"/maintenances?limit=2&marker={first['maintenances'][-1]['id']}")
    assert [*first["maintenances"], *rest["maintenances"]] == listed
    for marker in ("x", NOBODYS):
        assert admin("GET", f"/maintenances?marker={marker}").status_code == 400


def test_now_and_a_dry_run(admin: Person) -> None:
    tried = admin("POST", "/maintenances?dry_run=true", {"host_id": "1", "start_date": "now", "reason": "x"})
    assert tried.status_code == 200
    assert tried.json["maintenance"]["end_date"] is None
    assert admin.get("/maintenances")["maintenances"] == []


def test_leases_in_the_way(admin: Person, member: Person) -> None:
    lease = of_all(member)
    refused = admin("POST", "/maintenances", WINDOW)
    assert refused.status_code == 409
    told = refused.json["error_message"]
    assert all(part in told for part in (lease["id"], "project project", "2031-01-31 08:00:00", "2031-01-31 10:00:00"))
    made = admin.done(admin("POST", "/maintenances", {**WINDOW, "force": True}), 201)
    (moved,) = made["leases"]
    assert (moved["id"], moved["replaced"], moved["missing"]) == (lease["id"], False, 1)
    after = member.get(f"/leases/{lease['id']}")["lease"]
    assert (after["degraded"], reservation_of(after)["missing_resources"]) == (True, True)
    history = str(member.get(f"/leases/{lease['id']}/history"))
    assert "h1" not in history


BAD: list[tuple[str, dict[str, Any] | None, int, str]] = [
    ("POST", {}, 400, "Missing parameter host_id, reason"),
    ("POST", {**WINDOW, "host_id": "99"}, 404, "99"),
    ("POST", {**WINDOW, "host_id": "h1"}, 400, "host_id"),
    ("POST", {**WINDOW, "host_id": 1}, 400, "host_id"),
    ("POST", {**WINDOW, "host_id": "9" * 19}, 400, "host_id"),
    ("POST", {**WINDOW, "reason": ""}, 400, "reason"),
    ("POST", {**WINDOW, "reason": " "}, 400, "reason"),
    ("POST", {**WINDOW, "reason": "x" * 1001}, 400, "reason"),
    ("POST", {**WINDOW, "reason": "a\u0000b"}, 400, ""),
    ("POST", {**WINDOW, "reason": ["x"]}, 400, "reason"),
    ("POST", {**WINDOW, "force": 1}, 400, "force"),
    ("POST", {**WINDOW, "force": "yes"}, 400, "force"),
    ("POST", {**WINDOW, "start_date": "soon"}, 400, "invalid date"),
    ("POST", {**WINDOW, "start_date": None}, 400, "invalid date"),
    ("POST", {**WINDOW, "start_date": "2020-01-01 10:00"}, 400, "Start date"),
    ("POST", {**WINDOW, "end_date": "now"}, 400, "invalid date"),
    ("POST", {**WINDOW, "end_date": WINDOW["start_date"]}, 400, "End date"),
    ("POST", {**WINDOW, "end_date": "9999-12-31 10:00"}, 400, "2199"),
    ("POST", {**WINDOW, "start_date": "9999-12-31 10:00", "end_date": None}, 400, "2199"),
    ("POST", {**WINDOW, "state": "done"}, 400, "Unknown parameter"),
    ("GET", None, 400, "state"),
]


@pytest.mark.parametrize(("method", "body", "status", "told"), BAD, ids=range(len(BAD)))
def test_what_is_refused(
    standing: tuple[Flask, Climate], method: str, body: dict[str, Any] | None, status: int, told: str
) -> None:
    admin = Person(standing[0], "admin")
    answer = admin(method, "/maintenances" + ("?state=over" if body is None else ""), body)
    assert answer.status_code == status, answer.json
    assert told in answer.json["error_message"]
    assert admin.get("/maintenances?state=all")["maintenances"] == []


@pytest.mark.parametrize("window", ["x", NOBODYS, "é", "1"])
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_a_window_that_is_none(standing: tuple[Flask, Climate], method: str, window: str) -> None:
    body = {"reason": "x"} if method == "PUT" else None
    assert Person(standing[0], "admin")(method, f"/maintenances/{window}", body).status_code == 404


def test_a_change_of_nothing(admin: Person) -> None:
    window = admin.done(admin("POST", "/maintenances", WINDOW), 201)["maintenance"]
    for body in ({}, {"force": True}):
        assert admin("PUT", f"/maintenances/{window['id']}", body).status_code == 400
    assert admin.get(f"/maintenances/{window['id']}")["maintenance"] == window


def test_health(admin: Person, member: Person) -> None:
    lease = of_all(member)
    health = admin.get("/os-hosts/1/health")["health"]
    assert (health["host"], health["pool"], health["trouble"], health["on"]) == ("h1", "reservation", None, True)
    assert (health["servers"], health["leases"]) == ([], [lease["id"]])
    failed = admin.done(admin("POST", "/os-hosts/1/fail", {"reason": "smoke"}))["place"]
    assert (failed["pool"], failed["reason"]) == ("failed", "smoke")
    assert admin("POST", "/os-hosts/1/fail", {"reason": "smoke"}).status_code == 409
    assert admin.done(admin("POST", "/os-hosts/1/heal"))["place"]["pool"] == "reservation"
    assert admin("POST", "/os-hosts/1/heal").status_code == 409


@pytest.mark.parametrize("host", ["99", "h1", "é", "-1"])
def test_of_a_host_that_is_none(standing: tuple[Flask, Climate], host: str) -> None:
    admin = Person(standing[0], "admin")
    assert admin("GET", f"/os-hosts/{host}/health").status_code == 404
    assert admin("POST", f"/os-hosts/{host}/heal").status_code == 404
    assert admin("POST", f"/os-hosts/{host}/fail", {"reason": "x"}).status_code == 404
    assert admin("PUT", f"/os-hosts/{host}/allocation", {"lease_id": NOBODYS}).status_code == 404


@pytest.mark.parametrize("body", [{}, {"reason": ""}, {"reason": " "}, {"reason": 1}, {"why": "x"}, [], "x", None])
def test_a_failure_needs_a_reason(standing: tuple[Flask, Climate], body: Any) -> None:
    admin = Person(standing[0], "admin")
    assert admin("POST", "/os-hosts/1/fail", body).status_code in (400, 415)
    assert admin.get("/os-hosts/1/health")["health"]["pool"] == "reservation"


def test_reallocation(admin: Person, member: Person) -> None:
    lease = member.lease(**{k: v for k, v in order(reservations=[reservation()]).items() if k.endswith("_date")})
    held = next(one["resource_id"] for one in admin.get("/os-hosts/allocations")["allocations"] if one["reservations"])
    to = "5" if held != "5" else "6"
    done = admin.done(admin("PUT", f"/os-hosts/{held}/allocation", {"lease_id": lease["id"], "to": to}))
    number = reservation_of(lease)["id"]
    assert done["reallocation"] == {"lease_id": lease["id"], "reservation_id": number, "from": held, "to": to}
    assert admin.get(f"/os-hosts/{to}/allocation")["allocation"]["reservations"]
    assert admin("PUT", f"/os-hosts/{held}/allocation", {"lease_id": lease["id"], "to": to}).status_code == 409
    for body in ({}, {"lease_id": lease["id"], "reservation_id": number}, {"lease_id": "x"}, {"lease_id": 1}):
        assert admin("PUT", f"/os-hosts/{to}/allocation", body).status_code == 400
    for wrong in ("h1", 1, "-1", "9" * 19):
        body = {"lease_id": lease["id"], "to": wrong}
        assert admin("PUT", f"/os-hosts/{to}/allocation", body).status_code == 400
    assert admin("PUT", f"/os-hosts/{to}/allocation", {"lease_id": lease["id"], "to": "99"}).status_code == 404
