"""How a lease is to end, over HTTP: what may be said, what is shown, what is refused and why."""

from typing import Any

import pytest

from tests.api.reservation.api_clients import Person, order, reservation

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown policy": ({"on_end": "explode"}, "on_end"),
    "a policy for single servers": ({"on_end": "create_image, delete"}, "on_end"),
    "no policy": ({"on_end": None}, "on_end"),
    "a number for a policy": ({"on_end": 1}, "on_end"),
    "a negative grace": ({"grace_period": -1}, "grace_period"),
    "a grace that is no number": ({"grace_period": "soon"}, "grace_period"),
    "a part of a second": ({"grace_period": 1.5}, "grace_period"),
    "a grace of a year": ({"grace_period": 365 * 86400}, "grace_period"),
    "more grace than owners may have": ({"grace_period": 86401}, "grace_period may be 86400 seconds at most"),
    "an unknown deadline": ({"recycle_deadline": "never"}, "recycle_deadline"),
    "an unknown word for before_end": ({"before_end": "sing"}, "before_end"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_terms_that_are_none(member: Person, name: str) -> None:
    wrong, said = REFUSED[name]
    answer = member("POST", "/leases", order(reservations=[reservation(**wrong)]))
    assert said in member.done(answer, 400)["error_message"]
    made = member.lease()
    change = {"reservations": [{"id": made["reservations"][0]["id"], **wrong}]}
    assert said in member.done(member("PUT", f"/leases/{made['id']}", change), 400)["error_message"]
    assert member.get(f"/leases/{made['id']}")["lease"] == made


def test_terms_are_shown_with_the_reservation_and_the_grace_with_the_events(member: Person) -> None:
    terms = {"on_end": "recycle", "grace_period": "600", "recycle_deadline": "move", "before_end": "notify"}
    made = member.lease(reservations=[reservation(**terms)])
    shown = made["reservations"][0]
    assert {name: shown[name] for name in terms} == {**terms, "grace_period": 600}
    events = {event["event_type"]: event["time"] for event in made["events"]}
    assert (events["close_lease"], events["end_lease"]) == ("2030-01-02T12:00:00.000000", "2030-01-02T12:10:00.000000")
    assert made["end_date"] == "2030-01-02T12:00:00.000000"


def test_what_is_not_said_is_as_usual(member: Person) -> None:
    made = member.lease()
    shown = made["reservations"][0]
    assert (shown["on_end"], shown["grace_period"], shown["recycle_deadline"]) == ("terminate", 0, "terminate")
    assert "close_lease" not in {event["event_type"] for event in made["events"]}
