"""Bad input about leases: the status, words that help, and nothing changed."""

from typing import Any

import pytest
from flask import Flask

from climate.context import Climate
from tests.api.reservation.api_clients import Person, order, reservation, written

DATES = "is an invalid date. Required format: %Y-%m-%d %H:%M"
NOBODYS = "2b8b57a5-5aa5-4b0e-9d2b-1d6d1c0f5a11"


def asked(**changes: Any) -> dict[str, Any]:
    """A lease with one reservation that differs like this."""
    return order(reservations=[reservation(**changes)])


ORDERS: dict[str, tuple[dict[str, Any], int, str]] = {
    "two dates are missing": (
        order(start_date=..., end_date=...), 400, "Missing parameter end_date, start_date",
    ),
    "everything is missing": ({"reservations": []}, 400, "Missing parameter end_date, name, start_date"),
    "end before start": (order(end_date="2030-01-02 09:00"), 400, "End date must be later than start date."),
    "end is start": (order(end_date="2030-01-02 10:00"), 400, "End date must be later than start date."),
    "start in the past": (order(start_date="2030-01-01 11:58"), 400, "Start date must be later than current date"),
    "a date that is none": (order(start_date="Bogus-date 13:13"), 400, f"Bogus-date 13:13 {DATES}"),
    "month 13": (order(start_date="2030-13-01 10:00"), 400, f"2030-13-01 10:00 {DATES}"),
    "30 February": (order(end_date="2030-02-30 10:00"), 400, f"2030-02-30 10:00 {DATES}"),
    "a date without a time": (order(end_date="2030-1-1T"), 400, f"2030-1-1T {DATES}"),
    "a number for a date": (order(end_date=20300102), 400, f"20300102 {DATES}"),
    "null for a date": (order(end_date=None), 400, f"null {DATES}"),
    "a list for a date": (order(end_date=["2030-01-02"]), 400, DATES),
    "end now": (order(end_date="now"), 400, f"now {DATES}"),
    "a leap second": (order(end_date="2030-12-31T23:59:60Z"), 400, DATES),
    "year 9999": (order(end_date="9999-01-01 00:00"), 400, "out of range"),
    "too long": (order(end_date="2040-01-01 00:00"), 400, "730 days"),
    "before_end outside": (order(before_end_date="2030-01-02 13:00"), 400, "Datetime is out of lease limits"),
    "a name of 81 characters": (order(name="n" * 81), 400, "name: Must be a text of 1 to 80 characters"),
    "a name of 10,000 characters": (order(name="n" * 10_000), 400, "name: Must be a text of 1 to 80 characters"),
    "an empty name": (order(name=""), 400, "name: Must be a text of 1 to 80 characters"),
    "only blanks": (order(name="   "), 400, "not only blanks"),
    "a name with U+0000": (order(name="a\0b"), 400, "U+0000"),
    "a name with half a surrogate": (order(name="a\ud800b"), 400, "surrogate"),
    "a number for a name": (order(name=5), 400, "name: Not a valid string"),
    "null for a name": (order(name=None), 400, "name: Field may not be null"),
    "reservations as an object": (order(reservations={}), 400, "reservations: Not a valid list"),
    "reservations of texts": (order(reservations=["physical:host"]), 400, "reservations"),
    "65 reservations": (order(reservations=[reservation()] * 65), 400, "reservations"),
    "preemptible as a text": (asked(preemptible="yes"), 400, "Malformed parameter preemptible: Not a valid boolean"),
    "preemptible elsewhere": (
        asked(preemptible=True, zone="north"), 400,
        "preemptible and zone cannot both be given: preemptible hosts lie in this deployment",
    ),
    "preemptible beside ordinary": (
        order(reservations=[reservation(preemptible=True), reservation()]), 400,
        "preemptible must be true for all reservations of a lease, or for none",
    ),
    "preemptible slots": (
        order(reservations=[{
            "resource_type": "virtual:instance", "amount": 1, "vcpus": 1, "memory_mb": 64, "disk_gb": 1,
            "affinity": None, "resource_properties": "", "preemptible": True,
        }]), 400, "preemptible is for whole hosts",
    ),
    "no resource_type": (asked(resource_type=...), 400, "Missing parameter resource_type"),
    "null for resource_type": (asked(resource_type=None), 400, "Missing parameter resource_type"),
    "an unknown resource_type": (
        asked(resource_type="foo:bar"),
        400,
        "The foo:bar resource type is not supported; known are: flavor:instance, physical:host, "
        "storage:pool, virtual:floatingip, virtual:instance",
    ),
    "a list for resource_type": (asked(resource_type=["physical:host"]), 400, "is not supported"),
    "an unknown kind of event": (
        order(events=[{"event_type": "a party", "event_date": "2030-01-02 11:00"}]), 400, "event_type",
    ),
    "an event outside": (
        order(events=[{"event_type": "notification", "event_date": "2030-01-03 11:00"}]),
        400,
        "event_date of notification must lie between 2030-01-02 10:00:00 and 2030-01-02 12:00:00",
    ),
    "an event without a date": (order(events=[{"event_type": "notification"}]), 400, "event_date"),
    "a null event": (order(events=[None]), 400, "events"),
    **{
        f"{name} in the body": (order(**{name: "x"}), 400, f"{name}: Unknown parameter; known are before_end_date")
        for name in (
            "id", "project_id", "user_id", "status", "degraded", "trust_id", "created_at", "updated_at", "tenant",
        )
    },
    "min 0": (asked(min=0), 400, "Malformed parameter min"),
    "min -1": (asked(min=-1), 400, "Malformed parameter min"),
    "min above max": (
        asked(min=3), 400, "Invalid values for min/max of hosts. Max must be equal to or larger than min.",
    ),
    "min two": (asked(min="two"), 400, "Malformed parameter min"),
    "min empty": (asked(min=""), 400, "Malformed parameter min"),
    "min 1.5": (asked(min=1.5), 400, "Malformed parameter min"),
    "min 1.0": (asked(min=1.0), 400, "Malformed parameter min"),
    "min true": (asked(min=True), 400, "Malformed parameter min"),
    "min 10^12": (asked(min=10**12), 400, "Malformed parameter min"),
    "max 2^63": (asked(max=2**63), 400, "too long"),
    "no min": (asked(min=...), 400, "Missing parameter min"),
    "an unknown key": (asked(gpus=4), 400, "Unknown parameter gpus in a reservation; known are across"),
    "a requirement without a value": (
        asked(hypervisor_properties='[">=", "$vcpus"]'), 400, 'Malformed requirements [">=", "$vcpus"]',
    ),
    "an unknown operator": (asked(resource_properties='["~", "$a", "b"]'), 400, "Malformed requirements"),
    "no JSON": (asked(hypervisor_properties="vcpus > 4"), 400, "Malformed requirements vcpus > 4"),
    "a requirement that is an object": (asked(hypervisor_properties="{}"), 400, "Malformed requirements"),
    "no text": (asked(hypervisor_properties=[]), 400, "Malformed parameter hypervisor_properties"),
    "deep requirements": (asked(hypervisor_properties='["and",' * 40 + '["=","$a","b"]' + "]" * 40), 400, "nested"),
    "an unknown capability": (asked(resource_properties='["=", "$wheels", "4"]'), 400, "wheels"),
    "a key of Python's": (asked(hypervisor_properties='["=", "$__class__", "4"]'), 400, "__class__"),
    "a quote in a value": (
        asked(resource_properties='["=", "$gpu", "x\' OR 1=1 --%s"]'), 409, "Not enough hosts available",
    ),
    "too many hosts": (asked(min=9, max=9), 409, "Not enough hosts available: 9 wanted, 4 match, 4 of them free"),
    "a server that is no UUID": (
        order(reservations=[{"resource_type": "virtual:instance", "resource_id": "x"}]),
        400,
        "Malformed parameter resource_id",
    ),
    "nobody's server": (
        order(reservations=[{"resource_type": "virtual:instance", "resource_id": NOBODYS}]), 404, NOBODYS,
    ),
    "an unknown action": (
        order(reservations=[{"resource_type": "virtual:instance", "resource_id": NOBODYS, "on_end": "explode"}]),
        400,
        "Malformed parameter on_end: Unknown action explode",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "status", "text"), ORDERS.values(), ids=ORDERS)
def test_an_order(standing: tuple[Flask, Climate], body: dict[str, Any], status: int, text: str) -> None:
    app, climate = standing
    before = written(climate.engine)
    answer = Person(app, "member")("POST", "/leases", body)
    assert (answer.status_code, answer.json["error_code"], answer.json["error_name"]) == (status, status, status)
    assert text in answer.json["error_message"]
    assert set(answer.json) == {"error_code", "error_message", "error_name"}
    assert written(climate.engine) == before


def test_hosts_that_are_taken(member: Person) -> None:
    member.lease(reservations=[reservation(min=8, max=8)])
    answer = member("POST", "/leases", order(start_date="2030-01-02 11:00", end_date="2030-01-02 13:00"))
    assert answer.status_code == 409
    assert answer.json["error_message"] == (
        "Not enough hosts available: 1 wanted, 8 match, 0 of them free; it would fit from 2030-01-02 12:00:00 UTC"
    )


BODIES: dict[str, tuple[bytes, str, int]] = {
    "no JSON": (b"{name: l}", "application/json", 400),
    "empty": (b"", "application/json", 400),
    "a list": (b"[]", "application/json", 400),
    "a text": (b'"lease"', "application/json", 400),
    "a number": (b"5", "application/json", 400),
    "null": (b"null", "application/json", 400),
    "NaN": (b'{"name": NaN}', "application/json", 400),
    "1e400": (b'{"name": 1e400}', "application/json", 400),
    "a key twice": (b'{"name": "a", "name": "b"}', "application/json", 400),
    "deep": (b'{"name":' + b"[" * 1000 + b"]" * 1000 + b"}", "application/json", 400),
    "2 MB": (b'{"name": "' + b"n" * 2**21 + b'"}', "application/json", 413),
    "another type": (b"name=l", "application/x-www-form-urlencoded", 415),
    "XML": (b"<lease/>", "text/xml", 415),
}


@pytest.mark.parametrize(("data", "kind", "status"), BODIES.values(), ids=BODIES)
@pytest.mark.parametrize(("method", "path"), [("POST", "/leases"), ("PUT", f"/leases/{NOBODYS}")])
def test_a_body(standing: tuple[Flask, Climate], method: str, path: str, data: bytes, kind: str, status: int) -> None:
    answer = Person(standing[0], "member")(method, path, data=data, headers={"Content-Type": kind})
    assert answer.status_code == status, answer.json
    assert answer.json["error_message"]


@pytest.mark.parametrize("lease_id", ["x", "5", "l' OR '1'='1", NOBODYS, NOBODYS.replace("-", ""), "%F0%9F%9A%80"])
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_ids_that_are_nobodys(standing: tuple[Flask, Climate], method: str, lease_id: str) -> None:
    body = {"name": "x"} if method == "PUT" else None
    answer = Person(standing[0], "member")(method, f"/leases/{lease_id}", body)
    shown = "🚀" if lease_id.startswith("%") else lease_id
    assert answer.json == {
        "error_code": 404,
        "error_message": f"Object with {{'lease_id': '{shown}'}} not found",
        "error_name": 404,
    }


@pytest.mark.parametrize(
    "query",
    ["limit=-1", "limit=0", "limit=abc", "limit=", "marker=x", f"marker={NOBODYS}", "status=SLEEPING", "sort=name",
     "starts_before=yesterday", "ends_after="],
)  # fmt: skip
def test_queries_of_lists(standing: tuple[Flask, Climate], query: str) -> None:
    answer = Person(standing[0], "member")("GET", f"/leases?{query}")
    assert answer.status_code == 400
    assert query.partition("=")[0] in answer.json["error_message"]


@pytest.mark.parametrize("query", ["at=yesterday", "when=now", "dry_run=true"])
def test_queries_of_one(standing: tuple[Flask, Climate], query: str) -> None:
    assert Person(standing[0], "member")("GET", f"/leases/{NOBODYS}?{query}").status_code == 400


def test_wrong_methods_and_paths(standing: tuple[Flask, Climate]) -> None:
    person = Person(standing[0], "member")
    answer = person("PATCH", "/leases")
    assert (answer.status_code, set(answer.headers["Allow"].split(", "))) == (405, {"GET", "HEAD", "POST"})
    assert set(answer.json) == {"error", "error_message"}
    assert person("GET", "/lease").status_code == 404
    assert person("GET", "/leases", headers={"Accept": "text/xml"}).status_code == 406
