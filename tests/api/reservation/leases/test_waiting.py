"""Leases of the waiting list on the wire."""

from typing import Any

import pytest

from climate.context import Climate
from climate.service.waiting_list import round as waiting_round
from tests.api.reservation.api_clients import Person, order, reservation, run_due
from tests.conftest import Clock

EVERYTHING = [reservation(min=8, max=8)]
UNTIL = "2030-01-02 12:00"


def message(refused: Any) -> str:
    return str(refused.json["error_message"])


def queue(person: Person, wait: Any = None, **changes: Any) -> dict[str, Any]:
    return person.lease(wait={} if wait is None else wait, reservations=EVERYTHING, **changes)


def test_a_lease_that_waits_is_pending_and_says_its_place(member: Person, climate: Climate) -> None:
    blocker = member.lease(reservations=EVERYTHING)
    lease = queue(member)
    assert set(lease) - set(blocker) == {"waiting"}
    assert (lease["status"], lease["reservations"][0]["status"]) == ("PENDING", "pending")
    assert lease["waiting"] == {
        "until": lease["start_date"],
        "place": 1,
        "estimate": None,
        "reason": "It would fit from 2030-01-02 12:00:00 UTC on, and can only start before. "
        "It gets its resources if others are released sooner.",
        "fits_from": blocker["end_date"],
    }
    assert [event["event_type"] for event in lease["events"]] == ["expire_wait", "start_lease", "end_lease"]
    assert member.get(f"/leases/{lease['id']}")["lease"] == lease
    listed = member.get("/leases")["leases"]
    assert [one.get("waiting") for one in listed] == [None, {"until": lease["start_date"], "place": 1}]
    was = member.get(f"/leases/{lease['id']}?at=2030-01-01%2012:00")["lease"]
    assert was["waiting"] == {"until": lease["start_date"]}
    assert member("DELETE", f"/leases/{blocker['id']}").status_code == 204
    waiting_round.run_round(climate)
    got = member.get(f"/leases/{lease['id']}")["lease"]
    assert "waiting" not in got
    assert [line["kind"] for line in member.get(f"/leases/{lease['id']}/history")["history"]][1] == "LeaseGranted"
    assert [notice["kind"] for notice in member.get("/notices")["notices"]] == ["lease.granted"]


def test_an_estimate_is_never_after_the_wait(member: Person) -> None:
    blocker = member.lease(reservations=EVERYTHING)
    end = blocker["end_date"]
    late, last = (queue(member, {"until": until})["waiting"] for until in ("2030-01-02 11:59:59", end))
    assert (late["estimate"], late["fits_from"]) == (None, end)
    assert (last["estimate"], last.keys() & {"reason", "fits_from"}) == (end, set())
    member.lease(reservations=EVERYTHING, start_date=end, end_date="2031-06-01 12:00")
    never = queue(member, {"until": end})["waiting"]
    assert never["estimate"] is None
    assert "within 90 days" in never["reason"]


def test_it_is_withdrawn_by_delete(member: Person) -> None:
    member.lease(reservations=EVERYTHING)
    lease = queue(member)
    assert member("PUT", f"/leases/{lease['id']}", {"end_date": "2030-01-03 12:00"}).status_code == 409
    assert member("DELETE", f"/leases/{lease['id']}").status_code == 204
    assert member("GET", f"/leases/{lease['id']}").status_code == 404


def test_a_wait_in_vain_is_told(member: Person, climate: Climate, clock: Clock) -> None:
    member.lease(reservations=EVERYTHING)
    queue(member)
    clock.forward(hours=48)
    run_due(climate)
    assert "lease.not_granted" in [notice["kind"] for notice in member.get("/notices")["notices"]]


def test_others_see_the_place_and_nothing_else(member: Person, stranger: Person) -> None:
    member.lease(reservations=EVERYTHING)
    first, second = queue(member), queue(stranger)
    assert (first["waiting"]["place"], second["waiting"]["place"]) == (1, 2)
    assert stranger("GET", f"/leases/{first['id']}").status_code == 404
    assert stranger("DELETE", f"/leases/{first['id']}").status_code == 404


def test_a_dry_run_says_the_place_and_keeps_nothing(member: Person) -> None:
    member.lease(reservations=EVERYTHING)
    planned = member("POST", "/leases?dry_run=true", order(wait={}, reservations=EVERYTHING))
    assert (planned.status_code, planned.json["lease"]["waiting"]["place"]) == (200, 1)
    assert len(member.get("/leases")["leases"]) == 1


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ({"wait": {"until": "2029-12-31 12:00"}}, 400, "later than the current date"),
        ({"wait": {"until": "2033-01-01 12:00"}}, 400, "731 days ahead at most"),
        ({"wait": {"until": "9999-12-31 23:59"}}, 400, "out of range"),
        ({"wait": {"until": "tomorrow"}}, 400, "until"),
        ({"wait": {"until": 7}}, 400, "until"),
        ({"wait": {"until": ["2030-01-02 12:00"]}}, 400, "until"),
        ({"wait": {"until": "2030-02-30 12:00"}}, 400, "until"),
        ({"wait": {"until": "now"}}, 400, "until"),
        ({"wait": {"latest": UNTIL}}, 400, "latest"),
        ({"wait": True}, 400, "wait"),
        ({"wait": "2030-01-02 12:00"}, 400, "wait"),
        ({"wait": []}, 400, "wait"),
        ({"wait": {}, "start_date": "now"}, 400, "wait.until is required"),
        ({"wait": {"until": UNTIL}, "hold_seconds": 60}, 400, "hold_seconds exclude each other"),
        ({"wait": {"until": UNTIL}, "reservations": []}, 400, "wait needs reservations"),
        ({"wait": {"until": UNTIL}, "reservations": [reservation(min=9, max=9)]}, 409, "8 match"),
        ({"wait": {"until": UNTIL}, "reservations": [reservation(zone="left")]}, 400, "zone and wait exclude"),
        ({"wait": {"until": UNTIL}, "end_date": "2030-01-01 11:00"}, 400, "End date"),
    ],
)
def test_bad_waits_are_refused_and_change_nothing(
    member: Person, body: dict[str, Any], status: int, reason: str
) -> None:
    refused = member("POST", "/leases", order(**{"reservations": EVERYTHING, **body}))
    assert (refused.status_code, reason in message(refused)) == (status, True), message(refused)
    assert member.get("/leases")["leases"] == []


def test_wait_and_hold_exclude_each_other(member: Person) -> None:
    body = {"name": "l", "hold": "5d0b5b0e-7d1c-4b4c-9d0e-0d5b7f6f2f11", "wait": {}}
    refused = member("POST", "/leases", body)
    assert (refused.status_code, "not together with hold" in message(refused)) == (400, True)
