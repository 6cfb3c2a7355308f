"""What happened to a lease, and how it was at any moment."""

import pytest
from sqlalchemy import text

from climate.context import Climate
from tests.api.reservation.api_clients import Person, reservation, run_due
from tests.conftest import Clock


def test_the_life_of_a_lease_is_reported(member: Person, stranger: Person, climate: Climate, clock: Clock) -> None:
    made = member.lease("first", start_date="now", end_date="2030-01-01 14:00")
    path = f"/leases/{made['id']}"
    clock.forward(minutes=1)
    member("PUT", path, {"name": "second"})
    run_due(climate)
    clock.forward(minutes=1)
    member("DELETE", path)
    run_due(climate)
    assert member("GET", path).status_code == 404

    told = member.get(f"{path}/history")["history"]
    assert [entry["version"] for entry in told] == list(range(1, len(told) + 1))
    assert [entry["kind"] for entry in told] == [
        "LeaseCreated",
        "LeaseRenamed",
        "EventClaimed",
        "EventFinished",
        "DeletionRequested",
        "EventClaimed",
        "EventFinished",
        "LeaseDeleted",
    ]
    assert all(set(entry) == {"version", "kind", "at", "actor", "request_id", "body"} for entry in told)
    renamed = told[1]
    assert renamed["at"] == "2030-01-01T12:01:00.000000"
    assert renamed["actor"] == {"user_id": "user", "project_id": "project"}
    assert renamed["request_id"].startswith("req-")
    assert renamed["body"] == {"at": "2030-01-01T12:01:00+00:00", "name": "second"}
    assert told[2]["actor"]["user_id"] == "climate:poller"

    for at, name, status in (
        ("2030-01-01 12:00", "first", "PENDING"),
        ("2030-01-01T12:01:59Z", "second", "ACTIVE"),
        ("2030-01-01T14:01:30+02:00", "second", "ACTIVE"),
    ):
        then = member.get(f"{path}?at={at.replace('+', '%2B')}")["lease"]
        assert (then["name"], then["status"]) == (name, status)
    for at in ("2030-01-01T11:59:59Z", "2030-01-01 12:02", "2040-01-01 00:00"):
        assert member("GET", f"{path}?at={at}").status_code == 404
    assert stranger("GET", f"{path}/history").status_code == 404
    assert stranger("GET", f"{path}?at=2030-01-01 12:01").status_code == 404


def test_as_it_was_now_is_as_it_is(member: Person, climate: Climate) -> None:
    made = member.lease(start_date="now", end_date="2030-01-01 14:00")
    run_due(climate)
    path = f"/leases/{made['id']}"
    then, now = member("GET", f"{path}?at=2030-01-01 12:00"), member("GET", path)
    assert then.json == now.json
    assert then.headers["ETag"] == now.headers["ETag"]


def test_owners_read_how_many_hosts_they_have_and_not_which(member: Person, admin: Person) -> None:
    made = member.lease("two", reservations=[reservation(min=2, max=2)])
    path = f"/leases/{made['id']}/history"
    planned = member.get(path)["history"][0]["body"]["reservations"][0]
    assert planned["spec"]["min"] == 2
    assert [set(hold) for hold in planned["holds"]] == [{"during", "slots"}] * 2
    known = admin.get(path)["history"][0]["body"]["reservations"][0]
    assert [set(hold) for hold in known["holds"]] == [{"host", "during", "slots"}] * 2


@pytest.mark.parametrize(
    ("kind", "body"), [("LeasePraised", "{}"), ("LeaseRenamed", "{}"), ("LeaseRenamed", '{"at": "soon", "name": "n"}')]
)
def test_a_history_with_a_fact_that_cannot_be_read_is_refused_in_words(
    member: Person, climate: Climate, kind: str, body: str
) -> None:
    made = member.lease("first", start_date="now", end_date="2030-01-01 14:00")
    with climate.engine.begin() as conn:
        conn.execute(
            text("""
                INSERT INTO journal (stream, version, kind, body, actor, request_id)
                SELECT :stream, max(version) + 1, :kind, CAST(:body AS jsonb), '{"user_id": "u"}', ''
                FROM journal WHERE stream = :stream
            """),
            {"stream": made["id"], "kind": kind, "body": body},
        )
    for path in (f"/leases/{made['id']}/history", f"/leases/{made['id']}?at=2030-01-01 12:30"):
        answer = member("GET", path)
        assert answer.status_code == 503
        assert made["id"] in answer.text
        assert kind in answer.text
