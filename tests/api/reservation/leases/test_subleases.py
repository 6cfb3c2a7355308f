"""Sub-leases on the wire."""

from typing import Any

import pytest
from sqlalchemy import Engine

from tests.api.reservation.api_clients import Person, reservation, written

BODY = {
    "name": "course",
    "project_id": "other-project",
    "start_date": "2030-01-02 11:00",
    "end_date": "2030-01-02 12:00",
    "hosts": 2,
}
LONG = {"start_date": "2030-01-02 10:00", "end_date": "2030-01-05 10:00", "reservations": [reservation(min=3, max=3)]}
NOBODYS = "00000000-0000-4000-8000-000000000000"


def message(refused: Any) -> str:
    return str(refused.json["error_message"])


def path_of(lease: dict[str, Any]) -> str:
    return f"/leases/{lease['id']}/subleases"


def test_a_sub_lease_is_a_lease_of_the_other_project(member: Person, stranger: Person, reader: Person) -> None:
    parent = member.lease("long", **LONG)
    assert "subleases" not in parent
    made = member.done(member("POST", path_of(parent), {**BODY, "grace_period": 60, "on_end": "recycle"}), 201)["lease"]
    assert (made["project_id"], made["user_id"], made["name"]) == ("other-project", "user", "course")
    assert (made["start_date"], made["end_date"]) == ("2030-01-02T11:00:00.000000", "2030-01-02T12:00:00.000000")
    (own,) = made["reservations"]
    assert (own["min"], own["max"], own["grace_period"], own["on_end"]) == (2, 2, 60, "recycle")
    assert made["parent"] == {"lease_id": parent["id"], "project_id": "project"}
    path = f"/leases/{made['id']}"
    assert stranger.get(path)["lease"] == made
    assert [one["id"] for one in stranger.get("/leases")["leases"]] == [made["id"]]
    assert member.get(path)["lease"] == made
    shown = member.get(f"/leases/{parent['id']}")["lease"]
    assert shown["subleases"] == [{"id": made["id"], "hosts": 2}]
    assert reader.get(path_of(parent))["subleases"] == [made]
    assert len(stranger.get(f"{path}/hosts")["hosts"]) == 2
    assert stranger("GET", f"/leases/{parent['id']}").status_code == 404
    assert stranger("GET", path_of(parent)).status_code == 404
    again = member("PUT", f"/leases/{parent['id']}", shown)
    assert again.status_code == 200, "an answer that is sent back changes nothing"


def test_who_may_change_it(member: Person, stranger: Person, admin: Person) -> None:
    parent = member.lease("long", **LONG)
    path = f"/leases/{member.done(member('POST', path_of(parent), BODY), 201)['lease']['id']}"
    refused = stranger("PUT", path, {"end_date": "2030-01-02 13:00"})
    assert (refused.status_code, "only the project that gave it" in message(refused)) == (403, True)
    assert member.done(member("PUT", path, {"end_date": "2030-01-02 13:00"}))["lease"]["end_date"].endswith(
        "13:00:00.000000"
    )
    assert stranger("PUT", path, {"end_date": "2030-01-02 12:30"}).status_code == 200
    refused = member("PUT", path, {"name": "mine"})
    assert (refused.status_code, "yours gave it" in message(refused)) == (403, True)
    assert stranger("PUT", path, {"name": "theirs"}).status_code == 200
    refused = admin("PUT", path, {"end_date": "2030-01-06 13:00"})
    assert (refused.status_code, "ends with its parent" in message(refused)) == (409, True)
    assert stranger("PUT", path, {"start_date": "2030-01-02 11:30"}).status_code == 409
    refused = member("DELETE", f"/leases/{parent['id']}")
    assert (refused.status_code, path.rpartition("/")[2] in message(refused)) == (409, True)
    assert member("DELETE", path).status_code == 204
    assert stranger("GET", path).status_code == 404


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no name": ({"name": ...}, "name"),
    "a name of blanks": ({"name": "  "}, "name"),
    "a name that is too long": ({"name": "n" * 81}, "name"),
    "no project": ({"project_id": ...}, "project_id"),
    "a project that is no id": ({"project_id": "a b"}, "project_id"),
    "a project that is a number": ({"project_id": 7}, "project_id"),
    "its own project": ({"project_id": "project"}, "has the hosts already"),
    "a user that is no id": ({"user_id": "../x"}, "user_id"),
    "no end": ({"end_date": ...}, "end_date"),
    "an end that is no date": ({"end_date": "soon"}, "end_date"),
    "an end before its start": ({"end_date": "2030-01-02 10:30"}, "End date must be later"),
    "an end a thousand years later": ({"end_date": "3030-01-02 10:30"}, "end_date|days at most"),
    "a start before the parent's": ({"start_date": "2030-01-02 09:00"}, "must lie within its parent"),
    "a start in the past": ({"start_date": "2000-01-02 09:00"}, "Start date must be later"),
    "a warning after its end": ({"before_end_date": "2030-01-03 09:00"}, "before_end_date"),
    "no hosts": ({"hosts": ...}, "either a number as hosts, or names"),
    "zero hosts": ({"hosts": 0}, "hosts"),
    "hosts below zero": ({"hosts": -1}, "hosts"),
    "too many hosts": ({"hosts": 10**9}, "hosts"),
    "hosts as a text": ({"hosts": "two"}, "hosts"),
    "hosts as a truth": ({"hosts": True}, "hosts"),
    "a number and names": ({"host_names": ["h1"]}, "either a number as hosts, or names"),
    "names that are no list": ({"hosts": ..., "host_names": "h1"}, "host_names"),
    "an empty list of names": ({"hosts": ..., "host_names": []}, "host_names"),
    "a name twice": ({"hosts": ..., "host_names": ["h1", "h1"]}, "each host once"),
    "a name that is unknown": ({"hosts": ..., "host_names": ["h99"]}, "h99 is no host of the lease"),
    "a reservation that is no id": ({"reservation_id": "7"}, "reservation_id"),
    "a reservation that it has not": ({"reservation_id": NOBODYS}, "no such reservation"),
    "an unknown action": ({"on_end": "explode"}, "on_end"),
    "an action by which hosts do not return": ({"on_end": "release"}, "choose terminate or recycle"),
    "a grace period below zero": ({"grace_period": -1}, "grace_period"),
    "a grace period that is too long": ({"grace_period": 3 * 86400}, "grace_period"),
    "an unknown deadline": ({"recycle_deadline": "never"}, "recycle_deadline"),
    "an unknown action ahead of the end": ({"before_end": "dance"}, "before_end"),
    "an unknown key": ({"force": True}, "force"),
}


def test_bad_input_is_refused_in_words(member: Person, engine: Engine) -> None:
    parent = member.lease("long", **LONG)
    before = written(engine)
    for case, (changes, text) in REFUSED.items():
        body = {key: value for key, value in {**BODY, **changes}.items() if value is not ...}
        refused = member("POST", path_of(parent), body)
        assert refused.status_code == 400, (case, refused.get_data(as_text=True))
        assert any(part in message(refused) for part in text.split("|")), (case, message(refused))
    assert written(engine) == before


@pytest.mark.parametrize("lease_id", [NOBODYS, "x", "%00"])
def test_an_unknown_lease_is_not_found(member: Person, lease_id: str) -> None:
    assert member("POST", f"/leases/{lease_id}/subleases", BODY).status_code == 404
    assert member("GET", f"/leases/{lease_id}/subleases").status_code == 404


def test_too_many_hosts_are_a_conflict(member: Person) -> None:
    parent = member.lease("long", **LONG)
    refused = member("POST", path_of(parent), {**BODY, "hosts": 4})
    assert refused.status_code == 409
    assert "4 wanted" in message(refused)
    assert "can give 3" in message(refused)


def test_a_dry_run_and_a_repeated_request(member: Person) -> None:
    parent = member.lease("long", **LONG)
    tried = member.done(member("POST", f"{path_of(parent)}?dry_run=true", BODY))["lease"]
    assert len(tried["reservations"]) == 1
    assert member.get(path_of(parent))["subleases"] == []
    key = {"headers": {"Idempotency-Key": "k" * 16}}
    first, second = (member.done(member("POST", path_of(parent), BODY, **key), 201)["lease"] for _ in range(2))
    assert first["id"] == second["id"]
    other = member("POST", path_of(parent), {**BODY, "name": "other"}, **key)
    assert other.status_code == 422
