"""Changes that are refused leave a lease just as it was."""

import re
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask

from climate.context import Climate
from climate.store.leases import event_claims
from climate.store.leases.event_claims import Limits
from tests.api.reservation.api_clients import Person, reservation, run_due
from tests.conftest import Clock
from tests.service.lease_actions import claim

DATES = "is an invalid date. Required format: %Y-%m-%d %H:%M"
NOBODYS = "2b8b57a5-5aa5-4b0e-9d2b-1d6d1c0f5a11"


@pytest.fixture(scope="module")
def later(standing: tuple[Flask, Climate]) -> dict[str, Any]:
    """A lease in March, out of the way of all others."""
    return Person(standing[0], "member").lease(start_date="2030-03-01 10:00", end_date="2030-03-01 12:00")


CHANGES: dict[str, tuple[dict[str, Any], int, str]] = {
    "end in the past": ({"end_date": "2030-01-01 10:00"}, 400, "End date must be later than current and start date"),
    "start in the past": ({"start_date": "2030-01-01 10:00"}, 400, "Start date must be later than current date"),
    "start after end": ({"start_date": "2030-03-02 13:00"}, 400, "End date must be later than current and start date"),
    "too long": ({"end_date": "2040-03-02 13:00"}, 400, "730 days"),
    "null for a date": ({"end_date": None}, 400, f"null {DATES}"),
    "null for a name": ({"name": None}, 400, "name"),
    "an unknown key": ({"projects": "other"}, 400, "projects: Unknown parameter"),
    "a project": ({"project_id": "other"}, 400, 'project_id cannot be set to "other": it is "project"'),
    "events": ({"events": []}, 400, "events cannot be set to []"),
    "reservations without id": ({"reservations": [{"min": 1}]}, 400, "Missing parameter reservation ID"),
    "a number for an id": ({"reservations": [{"id": 5}]}, 400, "Missing parameter reservation ID"),
    "unknown reservation": (
        {"reservations": [{"id": "x", "min": 1}]},
        400,
        "Please enter valid reservation IDs. Invalid reservation IDs are: x",
    ),
}


@pytest.mark.parametrize(("change", "status", "text"), CHANGES.values(), ids=CHANGES)
def test_a_change(
    standing: tuple[Flask, Climate], later: dict[str, Any], change: dict[str, Any], status: int, text: str
) -> None:
    member, made = Person(standing[0], "member"), later
    answer = member("PUT", f"/leases/{made['id']}", change)
    assert answer.status_code == status
    assert text in answer.json["error_message"]
    assert member.get(f"/leases/{made['id']}")["lease"] == made


SPECS: dict[str, tuple[dict[str, Any], int, str]] = {
    "another type": ({"resource_type": "virtual:instance"}, 409, "resource_type cannot be updated"),
    "min above max": ({"min": 2}, 400, "Max must be equal to or larger than min."),
    "min 0": ({"min": 0}, 400, "Malformed parameter min"),
    "status": ({"status": "active"}, 400, 'cannot be set to "active": it is "pending"'),
    "lease_id": ({"lease_id": NOBODYS}, 400, f'cannot be set to "{NOBODYS}": it is '),
    "an unknown key": ({"hosts": 3}, 400, "Unknown parameter hosts in a reservation"),
    "too many hosts": ({"min": 9, "max": 9}, 409, "Not enough hosts available: 9 wanted, 4 match, 4 of them free"),
}


@pytest.mark.parametrize(("change", "status", "text"), SPECS.values(), ids=SPECS)
def test_a_change_of_a_reservation(
    standing: tuple[Flask, Climate], later: dict[str, Any], change: dict[str, Any], status: int, text: str
) -> None:
    member, made = Person(standing[0], "member"), later
    change = {"id": made["reservations"][0]["id"], **change}
    answer = member("PUT", f"/leases/{made['id']}", {"reservations": [change]})
    assert answer.status_code == status
    assert text in answer.json["error_message"]
    assert member.get(f"/leases/{made['id']}")["lease"] == made


def test_another_leases_reservation(member: Person) -> None:
    one, other = member.lease(), member.lease()
    change = {"id": other["reservations"][0]["id"], "max": 2}
    answer = member("PUT", f"/leases/{one['id']}", {"reservations": [change]})
    assert answer.status_code == 400
    assert answer.json["error_message"].startswith("Please enter valid reservation IDs.")


def test_what_has_started_and_what_has_ended(member: Person, climate: Climate, clock: Clock) -> None:
    made = member.lease(start_date="now", end_date="2030-01-01 14:00")
    run_due(climate)
    path = f"/leases/{made['id']}"
    refused = member("PUT", path, {"start_date": "2030-01-01 13:00"})
    assert refused.status_code == 400
    assert refused.json["error_message"] == "Cannot modify the start date of already started leases"
    clock.forward(hours=3)
    run_due(climate)
    refused = member("PUT", path, {"end_date": "2030-01-01 18:00"})
    assert (refused.status_code, refused.json["error_message"]) == (400, "Terminated leases can only be renamed")
    assert member.done(member("PUT", path, {"name": "old"}))["lease"]["name"] == "old"


def test_a_lease_that_is_being_started_is_busy(member: Person, climate: Climate) -> None:
    made = member.lease(start_date="now", end_date="2030-01-01 14:00")
    (begun,) = claim(climate)
    with climate.engine.begin() as conn:
        assert event_claims.start(
            conn, begun, "worker", climate.now(conn), Limits(timedelta(minutes=1), timedelta(minutes=1))
        )
    for method, body in (("PUT", {"end_date": "2030-01-01 15:00"}), ("DELETE", None)):
        answer = member(method, f"/leases/{made['id']}", body)
        assert (answer.status_code, answer.headers["Retry-After"]) == (409, "1")
        assert answer.json["error_message"].startswith("Invalid lease status")
    shown = member.get(f"/leases/{made['id']}")["lease"]
    assert (shown["status"], shown["end_date"]) == ("STARTING", made["end_date"])


def test_a_lease_ends_where_the_next_begins(member: Person, climate: Climate) -> None:
    made = member.lease(start_date="now", end_date="2030-01-01 14:00", reservations=[reservation(min=8, max=8)])
    run_due(climate)
    member.lease(start_date="2030-01-01 16:00", end_date="2030-01-01 18:00")
    answer = member("PUT", f"/leases/{made['id']}", {"end_date": "2030-01-01 17:00"})
    assert answer.status_code == 409
    assert "this one can last until 2030-01-01 16:00:00 UTC at most" in answer.json["error_message"]
    assert not re.search(r"h[1-8]\b", answer.json["error_message"]), "what hosts are called is for administrators"
    assert member.get(f"/leases/{made['id']}")["lease"]["end_date"] == made["end_date"]
