"""Limits over HTTP: set by admins, seen by those whom they bind, named in refusals."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.api.reservation.api_clients import Person, order, reservation
from tests.conftest import Clock

NAMES = (
    *("max_lease_seconds", "max_lead_seconds"),
    *(
        "leases",
        "held_leases",
        "waiting_leases",
        "hosts_at_once",
        "preemptible_hosts_at_once",
        "slots_at_once",
        "floating_ips_at_once",
        "storage_gb_at_once",
        "host_hours",
    ),
)


def standing(answer: Any) -> Mapping[str, tuple[Any, Any, Any]]:
    return {one["name"]: (one["value"], one["project_id"], one["used"]) for one in answer["limits"]}


def test_without_any_there_is_only_use(member: Person) -> None:
    member.lease(reservations=[reservation(min=2, max=2)])
    found = standing(member.get("/limits"))
    assert tuple(found) == NAMES
    assert {name: (value, whose) for name, (value, whose, _) in found.items() if value is not None} == {
        "held_leases": (10, "default"),
        "waiting_leases": (10, "default"),
    }
    assert str([found[name][2] for name in NAMES]) == "[None, None, 1, 0, 0, 2, 0, 0, 0, 0, 4]"


def test_own_limits_stand_before_the_default_ones(member: Person, admin: Person, stranger: Person) -> None:
    admin.done(admin("PUT", "/limits/default", {"leases": 7, "host_hours": 90}))
    answer = admin.done(admin("PUT", "/limits/project", {"leases": 3}))
    assert answer == admin.get("/limits/project") == member.get("/limits")
    assert standing(answer)["leases"] == (3, "project", 0)
    assert standing(answer)["host_hours"] == (90, "default", 0)
    assert standing(stranger.get("/limits"))["leases"] == (7, "default", 0)
    assert standing(admin.get("/limits/default"))["leases"] == (7, "default", None)
    assert [(one["project_id"], one["name"], one["value"]) for one in admin.get("/limits?all=true")["limits"]] == [
        ("default", "host_hours", 90),
        ("default", "leases", 7),
        ("project", "leases", 3),
    ]
    admin.done(admin("PUT", "/limits/default", {"host_hours": None}))
    assert admin("DELETE", "/limits/project").status_code == 204
    assert standing(member.get("/limits"))["leases"] == (7, "default", 0)
    assert standing(member.get("/limits"))["host_hours"] == (None, None, 0)


def test_a_refusal_says_which_limit_its_value_the_use_and_what_was_asked_for(member: Person, admin: Person) -> None:
    admin.done(admin("PUT", "/limits/project", {"hosts_at_once": 3}))
    member.lease(reservations=[reservation(min=2, max=2)])
    refused = member("POST", "/leases", order(reservations=[reservation(min=2, max=2)]))
    assert refused.status_code == 403
    assert refused.json == {
        "error_code": 403,
        "error_message": "Limit hosts_at_once of the project is 3 (whole hosts at any one time), 2 are in use: "
        "2 asked for",
        "error_name": 403,
        "limit": {"name": "hosts_at_once", "value": 3, "used": 2, "asked": 2},
    }
    assert len(member.get("/leases")["leases"]) == 1


def test_a_trial_changes_nothing(member: Person, admin: Person) -> None:
    answer = admin.done(admin("PUT", "/limits/project?dry_run=true", {"leases": 0}))
    assert standing(answer)["leases"] == (0, "project", 0)
    assert standing(member.get("/limits"))["leases"] == (None, None, 0)
    admin.done(admin("PUT", "/limits/project", {"leases": 0}))
    assert admin("DELETE", "/limits/project?dry_run=true").status_code == 204
    assert standing(member.get("/limits"))["leases"][0] == 0


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "known are max_lease_seconds"),
        ({"hosts": 1}, "known are floating_ips_at_once, held_leases, host_hours"),
        ({"leases": -2}, "leases"),
        ({"leases": "3"}, "leases"),
        ({"leases": 1.5}, "leases"),
        ({"leases": True}, "leases"),
        ({"leases": 10**9 + 1}, "leases"),
        ([], "JSON object"),
    ],
)
def test_what_is_no_limit(admin: Person, body: Any, told: str) -> None:
    answer = admin("PUT", "/limits/project", body)
    assert (answer.status_code, told in answer.json["error_message"]) == (400, True), answer.json
    assert standing(admin.get("/limits/project"))["leases"][0] is None


@pytest.mark.parametrize("project", ["a b", "%00", "x" * 65, "%F0%9F%98%80", ".."])
def test_what_cannot_be_a_project(admin: Person, project: str) -> None:
    assert admin("PUT", f"/limits/{project}", {"leases": 1}).status_code == 404


def test_members_set_none_and_see_their_own(member: Person, reader: Person, stranger: Person) -> None:
    for path in ("/limits/project", "/limits/default", "/limits/other-project", "/limits?all=true"):
        assert member("GET", path).status_code == 403
    assert stranger("PUT", "/limits/other-project", {"leases": 9}).status_code == 403
    assert member("DELETE", "/limits/project").status_code == 403
    assert reader("GET", "/limits").status_code == 200


def test_limits_then_and_who_set_them(admin: Person, member: Person, clock: Clock) -> None:
    admin.done(admin("PUT", "/limits/project", {"leases": 3}))
    clock.forward(hours=1)
    admin.done(admin("PUT", "/limits/project", {"leases": 5}))

    def value(asker: Person, path: str) -> object:
        return next(one["value"] for one in asker.get(path)["limits"] if one["name"] == "leases")

    assert value(member, "/limits?at=2030-01-01T12:30:00Z") == 3
    assert value(admin, "/limits/project?at=2030-01-01T12:30:00Z") == 3
    assert value(member, "/limits?at=2030-01-01T11:00:00Z") is None
    assert value(member, "/limits") == 5
    first, second = admin.get("/limits/project/history")["history"]
    assert (first["kind"], first["body"]["limits"], first["actor"]["user_id"]) == (
        "LimitsSet",
        {"leases": 3},
        "admin-user",
    )
    assert second["at"] == "2030-01-01T13:00:00.000000"
    assert admin("GET", "/limits?all=true&at=2030-01-01T12:30:00Z").status_code == 400
    assert member("GET", "/limits?at=yesterday").status_code == 400


def test_terms_then_and_who_set_them(admin: Person, clock: Clock) -> None:
    admin.done(admin("PUT", "/pools/reservation", {"on_end": "recycle"}))
    clock.forward(hours=1)
    admin.done(admin("PUT", "/pools/reservation", {"on_end": None, "target": 3}))
    assert admin.get("/pools/reservation?at=2030-01-01T12:30:00Z")["pool"]["terms"]["on_end"] == "recycle"
    assert admin.get("/pools/reservation")["pool"]["terms"]["own"] == ["target"]
    history = admin.get("/pools/reservation/history")["history"]
    assert [entry["body"]["terms"] for entry in history] == [{"on_end": "recycle"}, {"on_end": None, "target": 3}]
    assert admin.get("/pools/recycling/history") == {"history": []}
