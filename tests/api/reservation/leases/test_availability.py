"""The search for free times, offers and holds on the wire."""

from collections.abc import Mapping
from typing import Any

import pytest

from climate.context import Climate
from tests.api.reservation.api_clients import Person, order, reservation, run_due
from tests.conftest import Clock

NOBODYS = "00000000-0000-4000-8000-000000000000"


def question(**changes: Any) -> dict[str, Any]:
    body = {"reservations": [reservation()], "duration": 7200, "latest": "2030-01-03 12:00"}
    return {key: value for key, value in {**body, **changes}.items() if value is not ...}


def found(person: Person, **changes: Any) -> Any:
    return person.done(person("POST", "/availability", question(**changes)))


def offer(person: Person, **changes: Any) -> str:
    return str(found(person, **changes)["offers"][0]["id"])


def held(person: Person, **changes: Any) -> dict[str, Any]:
    hold: dict[str, Any] = person.done(person("POST", "/holds", {"offer": offer(person, **changes)}), 201)["hold"]
    return hold


def message(answer: Any) -> str:
    return str(answer.json["error_message"])


def test_offers_and_the_free_count(member: Person) -> None:
    member.lease(reservations=[reservation(min=8, max=8)])
    answer = found(member, mode="longest", offers=2)
    assert [(one["start_date"], one["end_date"]) for one in answer["offers"]] == [
        ("2030-01-02T12:00:00.000000", "2030-01-03T12:00:00.000000"),
        ("2030-01-01T12:00:00.000000", "2030-01-02T10:00:00.000000"),
    ]
    assert answer["offers"][0]["reservations"] == [{"resource_type": "physical:host", "count": 1, "free": 8}]
    assert answer["free"] == [
        [
            {"time": "2030-01-01T12:00:00.000000", "free": 8},
            {"time": "2030-01-02T10:00:00.000000", "free": 0},
            {"time": "2030-01-02T12:00:00.000000", "free": 8},
        ]
    ]
    assert (answer["binding"], answer["alternatives"]) == (None, [])


def test_without_offers_the_limit_that_binds_and_what_would_fit(member: Person) -> None:
    member.lease(reservations=[reservation(min=7, max=7)])
    answer = found(
        member, reservations=[reservation(min=2, max=2)], earliest="2030-01-02 09:00", latest="2030-01-02 12:00"
    )
    assert answer["offers"] == []
    assert answer["binding"]["name"] == "hosts"
    kinds = {one["kind"]: one["offer"] for one in answer["alternatives"]}
    assert kinds["later"]["start_date"] == "2030-01-02T12:00:00.000000"
    assert kinds["shorter"]["end_date"] == "2030-01-02T10:00:00.000000"
    assert kinds["fewer"]["reservations"][0]["count"] == 1
    for one in kinds.values():
        assert member("POST", "/holds", {"offer": one["id"]}).status_code == 201


def test_the_requirement_that_excludes_all(member: Person) -> None:
    wanted = reservation(hypervisor_properties='["and", [">=", "$vcpus", "64"], [">=", "$memory_mb", "1"]]')
    answer = found(member, reservations=[wanted])
    assert answer["binding"]["name"] == "property"
    assert '"$vcpus"' in answer["binding"]["message"]
    assert [one["kind"] for one in answer["alternatives"]] == ["without"]


def test_the_limit_of_the_project_is_named(member: Person, admin: Person) -> None:
    admin.done(admin("PUT", "/limits/project", {"max_lease_seconds": 3600}))
    answer = found(member)
    assert answer["binding"]["name"] == "max_lease_seconds"
    assert {one["kind"] for one in answer["alternatives"]} == {"shorter"}


def test_windows_that_are_too_short_are_named(member: Person) -> None:
    answer = found(member, between=[{"begin": "08:00", "end": "09:00"}])
    assert answer["binding"]["name"] == "between"
    assert {one["kind"] for one in answer["alternatives"]} == {"shorter", "without"}


def test_a_hold_becomes_a_lease(member: Person) -> None:
    hold = held(member)
    assert (hold["expires_at"], hold["renewable"]) == ("2030-01-01T12:10:00.000000", True)
    assert [one["id"] for one in member.get("/holds")["holds"]] == [hold["id"]]
    events = [{"event_type": "mail", "event_date": "2030-01-01 13:00"}]
    body = {"name": "training", "hold": hold["id"], "before_end_date": "2030-01-01 13:30", "events": events}
    lease = member.done(member("POST", "/leases", body, headers={"Idempotency-Key": "k"}), 201)["lease"]
    assert (lease["id"], lease["name"], lease["status"]) == (hold["id"], "training", "PENDING")
    times = {one["event_type"]: one["time"] for one in lease["events"]}
    assert times["mail"] == "2030-01-01T13:00:00.000000"
    assert times["before_end_lease"] == "2030-01-01T13:30:00.000000"
    again = member("POST", "/leases", body, headers={"Idempotency-Key": "k"})
    assert (again.status_code, again.json["lease"]) == (201, lease)
    assert member("POST", "/leases", body).status_code == 409
    assert member("GET", f"/holds/{hold['id']}").status_code == 404
    assert member("DELETE", f"/holds/{hold['id']}").status_code == 404
    assert member.get(f"/leases/{lease['id']}")["lease"]["id"] == lease["id"]


def test_a_hold_is_renewed_once(member: Person, clock: Clock, climate: Climate) -> None:
    hold = held(member)
    clock.forward(minutes=9)
    renewed = member.done(member("POST", f"/holds/{hold['id']}/renew"))["hold"]
    assert (renewed["expires_at"], renewed["renewable"]) == ("2030-01-01T12:19:00.000000", False)
    refused = member("POST", f"/holds/{hold['id']}/renew")
    assert (refused.status_code, "renewed before" in message(refused)) == (409, True)
    clock.forward(minutes=9)
    run_due(climate)
    assert member.get(f"/holds/{hold['id']}")["hold"]["id"] == hold["id"]
    clock.forward(minutes=1)
    assert member("POST", f"/holds/{hold['id']}/renew").status_code == 409
    assert member("POST", "/leases", {"name": "l", "hold": hold["id"]}).status_code == 409
    run_due(climate)
    assert member("GET", f"/holds/{hold['id']}").status_code == 404


def test_a_released_hold_frees_its_hosts(member: Person) -> None:
    all_of_them = [reservation(min=8, max=8)]
    hold = held(member, reservations=all_of_them, mode="at")
    assert found(member, mode="at")["offers"] == []
    assert member("DELETE", f"/holds/{hold['id']}").status_code == 204
    assert len(found(member, mode="at")["offers"]) == 1


def test_an_offer_makes_one_hold(member: Person) -> None:
    one = {"offer": offer(member)}
    first, second = (member.done(member("POST", "/holds", one), 201)["hold"] for _ in range(2))
    assert first == second
    member("DELETE", f"/holds/{first['id']}")
    refused = member("POST", "/holds", one)
    assert (refused.status_code, "used before" in message(refused)) == (409, True)


def test_offers_of_others_expired_and_forged_ones(member: Person, stranger: Person, clock: Clock) -> None:
    one = offer(member, earliest="2030-01-02 12:00")
    assert stranger("POST", "/holds", {"offer": one}).status_code == 404
    for forged in (one[:-4] + "AAA=", "x", "é", "gAAAAA" * 100):
        assert member("POST", "/holds", {"offer": forged}).status_code == 404, forged[:20]
    clock.forward(minutes=10)
    refused = member("POST", "/holds", {"offer": one})
    assert (refused.status_code, "expired" in message(refused)) == (409, True)


def test_an_offer_that_others_took_is_refused(member: Person, stranger: Person) -> None:
    one = offer(member, reservations=[reservation(min=5, max=5)], mode="at")
    held(stranger, reservations=[reservation(min=5, max=5)], mode="at")
    assert member("POST", "/holds", {"offer": one}).status_code == 409


def test_holds_of_others_are_not_found(member: Person, stranger: Person, reader: Person) -> None:
    hold = held(member)
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/renew")):
        assert stranger(method, f"/holds/{hold['id']}{path}").status_code == 404
    assert stranger("POST", "/leases", {"name": "l", "hold": hold["id"]}).status_code == 404
    assert stranger.get("/holds")["holds"] == []
    assert reader("POST", "/availability", question()).status_code == 403
    assert reader("POST", "/holds", {"offer": "x"}).status_code == 403


def test_the_number_of_holds_is_limited(member: Person, admin: Person) -> None:
    admin.done(admin("PUT", "/limits/project", {"held_leases": 1}))
    held(member)
    refused = member("POST", "/holds", {"offer": offer(member)})
    assert (refused.status_code, "held_leases" in message(refused)) == (403, True)


BAD: list[Mapping[str, Any]] = [
    {"reservations": []},
    {"reservations": ...},
    {"reservations": [reservation()] * 65},
    {"reservations": [reservation(min=0)]},
    {"reservations": [reservation(resource_properties='["==", "$colour", "red"]')]},
    {"reservations": [{"resource_type": "no:such"}]},
    {"duration": ...},
    *(
        {"duration": bad}
        for bad in (0, -1, 1.5, True, None, "", "P", "PT", "6h", "PT6H\n", "P1Y", 10**18, "P99999W", [])
    ),
    {"duration": float("nan")},
    {"duration": "P800D", "latest": None},
    {"earliest": "2029-12-01 00:00"},
    {"earliest": "then"},
    {"latest": "2030-01-01 13:00"},
    {"latest": "2199-01-01 00:00"},
    {"latest": "3030-01-01 00:00"},
    {"latest": "now"},
    *({"step": bad} for bad in (0, -1, "60", 10**9, None, 1.5)),
    *({"mode": bad} for bad in ("best", None, 1)),
    *({"offers": bad} for bad in (0, 21, "3", None, 10**30)),
    *({"points": bad} for bad in (-1, 501, "3", None)),
    {"between": [{}]},
    {"between": "always"},
    {"between": [{"begin": "8", "end": "18:00"}]},
    {"between": [{"begin": "24:01", "end": "18:00"}]},
    {"between": [{"begin": "08:00", "end": "18:00", "days": []}]},
    {"between": [{"begin": "08:00", "end": "18:00", "days": ["someday"]}]},
    *(
        {"between": [{"begin": "08:00", "end": "18:00", "zone": bad}]}
        for bad in ("Mars/Olympus", "", "../etc/passwd", "/etc/localtime", "\x00", "Europe", "a" * 61)
    ),
    {"between": [{"begin": "08:00", "end": "18:00"}] * 51},
    {"colour": "red"},
]


@pytest.mark.parametrize("changes", BAD, ids=lambda one: str(one)[:60])
def test_bad_questions_are_refused(member: Person, changes: Mapping[str, Any]) -> None:
    answer = member("POST", "/availability", question(**changes))
    assert answer.status_code == 400, answer.get_data(as_text=True)[:400]
    assert message(answer)


@pytest.mark.parametrize(
    "body",
    [
        {"name": "l", "hold": "x"},
        {"name": "l", "hold": 5},
        {"name": "l"},
        {"hold": NOBODYS},
        order(hold=NOBODYS),
        {"name": "l", "hold": NOBODYS, "hold_seconds": 5},
    ],
    ids=str,
)
def test_bad_orders_with_holds_are_refused(member: Person, body: Mapping[str, Any]) -> None:
    assert member("POST", "/leases", body).status_code == 400


def test_a_hold_that_is_none(member: Person) -> None:
    assert member("POST", "/leases", {"name": "l", "hold": NOBODYS}).status_code == 404
    assert member("GET", "/holds/x").status_code == 404
    assert member("POST", "/holds", {"offer": ""}).status_code == 400
    assert member("POST", "/holds", {}).status_code == 400
    lease = member.lease()
    assert member("POST", "/leases", {"name": "l", "hold": lease["id"]}).status_code == 409
    assert member("DELETE", f"/holds/{lease['id']}").status_code == 404


def test_an_event_outside_the_lease_leaves_the_hold(member: Person) -> None:
    hold = held(member)
    bad = {"name": "l", "hold": hold["id"], "events": [{"event_type": "mail", "event_date": "2031-01-01 13:00"}]}
    assert member("POST", "/leases", bad).status_code == 400
    assert member.get(f"/holds/{hold['id']}")["hold"] == hold
