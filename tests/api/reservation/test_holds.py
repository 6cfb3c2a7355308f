"""Held leases on the wire."""

from typing import Any

import pytest
from flask import Flask

from climate.context import Climate
from tests.api.reservation.api_clients import Person, order, run_due, written
from tests.conftest import Clock


def held(person: Person, **changes: Any) -> dict[str, Any]:
    return person.lease(hold_seconds=60, **changes)


def confirm(person: Person, lease: dict[str, Any], key: str | None = None) -> Any:
    headers = {} if key is None else {"Idempotency-Key": key}
    return person("POST", f"/leases/{lease['id']}/confirm", headers=headers)


def test_a_held_lease_says_until_when(member: Person) -> None:
    ordinary = member.lease()
    lease = held(member)
    assert set(lease) - set(ordinary) == {"hold_until"}
    assert (lease["status"], lease["hold_until"]) == ("HELD", "2030-01-01T12:01:00.000000")
    assert [event["event_type"] for event in lease["events"]] == ["expire_hold", "start_lease", "end_lease"]
    assert {one["status"] for one in lease["reservations"]} == {"pending"}
    assert [one["id"] for one in member.get("/leases?status=HELD")["leases"]] == [lease["id"]]


def test_a_confirmation_and_the_same_again(member: Person, climate: Climate) -> None:
    lease = held(member)
    first, second = confirm(member, lease, "k"), confirm(member, lease, "k")
    assert (first.status_code, first.headers["ETag"]) == (200, '"2"')
    assert (second.status_code, second.headers["ETag"], second.json) == (200, '"2"', first.json)
    assert first.json["lease"]["status"] == "PENDING"
    assert "hold_until" not in first.json["lease"]
    assert confirm(member, lease, "other").status_code == 409
    assert confirm(member, lease).status_code == 409
    run_due(climate)
    assert member.get(f"/leases/{lease['id']}")["lease"]["status"] == "PENDING"


def test_a_confirmation_without_a_key_can_be_repeated_too(member: Person) -> None:
    lease = held(member)
    assert confirm(member, lease).json == confirm(member, lease).json
    assert confirm(member, lease, "").status_code == 400


def test_an_expired_hold(member: Person, climate: Climate, clock: Clock) -> None:
    lease = held(member)
    clock.forward(seconds=60)
    for _ in range(2):
        refused = confirm(member, lease)
        assert refused.status_code == 409
        assert "expired at 2030-01-01 12:01:00 UTC" in refused.json["error_message"]
        run_due(climate)
    assert member("GET", f"/leases/{lease['id']}").status_code == 404
    told = member.get(f"/leases/{lease['id']}/history")["history"]
    assert [line["kind"] for line in told][1:3] == ["EventClaimed", "HoldExpired"]
    kinds = [notice["kind"] for notice in member.get("/notices")["notices"]]
    assert kinds == ["lease.hold_expired"]


def test_a_release(member: Person) -> None:
    lease = held(member)
    assert member("DELETE", f"/leases/{lease['id']}").status_code == 204
    assert member("DELETE", f"/leases/{lease['id']}").status_code == 404
    assert confirm(member, lease).status_code == 404


def test_others_and_readers_confirm_nothing(member: Person, stranger: Person, reader: Person) -> None:
    lease = held(member)
    assert confirm(stranger, lease).status_code == 404
    assert confirm(reader, lease).status_code == 403
    assert confirm(member, {"id": "nonsense"}).status_code == 404
    assert confirm(member, {"id": "00000000-0000-0000-0000-000000000000"}).status_code == 404
    assert confirm(member, member.lease()).status_code == 409


@pytest.mark.parametrize(
    "seconds", [0, -1, 601, 86401, 10**17, 1.5, "60", True, [], {}], ids=lambda seconds: str(seconds)[:10]
)
def test_lengths_that_are_refused(standing: tuple[Flask, Climate], seconds: Any) -> None:
    member = Person(standing[0], "member")
    before = written(standing[1].engine)
    refused = member("POST", "/leases", order(hold_seconds=seconds))
    assert refused.status_code == 400
    assert "hold_seconds" in refused.json["error_message"]
    assert written(standing[1].engine) == before


def test_null_is_no_hold(member: Person) -> None:
    assert member.lease(hold_seconds=None)["status"] == "PENDING"


def test_a_hold_beyond_the_end_is_refused(member: Person) -> None:
    body = order(start_date="now", end_date="2030-01-01T12:00:30Z", hold_seconds=30)
    refused = member("POST", "/leases", body)
    assert refused.status_code == 400
    assert "beyond the end of the lease" in refused.json["error_message"]
