"""Lists: conditions, pages, and whole lists for clients that know no pages."""

from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from sqlalchemy import text

from climate.cloud import Refused
from climate.context import Climate
from climate.service.leases import broken_leases
from tests.api.reservation.api_clients import V1, Person, run_due
from tests.conftest import Clock


@pytest.fixture
def three(member: Person, stranger: Person, climate: Climate, clock: Clock) -> list[dict[str, Any]]:
    """Three leases of a project, one of them running, and one of another's."""
    made = [member.lease("one", start_date="now", end_date="2030-01-01 14:00")]
    clock.forward(seconds=1)
    made.append(member.lease("two"))
    clock.forward(seconds=1)
    made.append(member.lease("two", start_date="2030-02-01 10:00", end_date="2030-02-01 12:00"))
    stranger.lease("theirs")
    run_due(climate)
    return made


CONDITIONS = {
    "": [0, 1, 2],
    "name=two": [1, 2],
    "name=t%25": [],
    "status=ACTIVE": [0],
    "status=PENDING&name=two": [1, 2],
    "starts_before=2030-01-02 10:00": [0],
    "starts_before=2030-01-02T10:00:01Z": [0, 1],
    "ends_after=2030-01-02 12:00": [2],
    "starts_before=2030-01-02 11:00&ends_after=2030-01-01 14:00": [1],
    "project_id=project": [0, 1, 2],
    "limit=2": [0, 1],
    "limit=1000000000": [0, 1, 2],
}


def test_conditions(member: Person, three: list[dict[str, Any]]) -> None:
    found = {query: [lease["id"] for lease in member.get(f"/leases?{query}")["leases"]] for query in CONDITIONS}
    assert found == {query: [three[place]["id"] for place in places] for query, places in CONDITIONS.items()}


def test_admins_see_all_projects(admin: Person, three: list[dict[str, Any]]) -> None:
    assert len(admin.get("/leases")["leases"]) == 4
    theirs = admin.get("/leases?project_id=other-project")["leases"]
    assert [lease["name"] for lease in theirs] == ["theirs"]


def test_others_see_their_own(stranger: Person, three: list[dict[str, Any]]) -> None:
    assert [lease["name"] for lease in stranger.get("/leases")["leases"]] == ["theirs"]
    assert stranger("GET", "/leases?project_id=project").status_code == 403
    answer = stranger("GET", f"/leases?marker={three[0]['id']}")
    assert answer.status_code == 400


def test_a_lease_that_cannot_be_read_is_a_refusal_in_words(
    member: Person, stranger: Person, admin: Person, three: list[dict[str, Any]], climate: Climate
) -> None:
    bad, *good = [UUID(lease["id"]) for lease in three]
    with climate.engine.begin() as conn:
        conn.execute(text("UPDATE events SET kind = 'praise_lease' WHERE lease_id = :id AND seq = 60"), {"id": bad})
    for person in (member, admin):
        answer = person("GET", f"/leases/{bad}")
        assert (answer.status_code, f"`climate event mend {bad}`" in answer.text) == (503, True)
    assert stranger("GET", f"/leases/{bad}").status_code == 404
    assert [UUID(lease["id"]) for lease in member.get("/leases")["leases"]] == good
    assert [lease["name"] for lease in stranger.get("/leases")["leases"]] == ["theirs"]
    assert member.get(f"/leases/{good[0]}")["lease"]["name"] == "two"
    broken_leases.repair_lease(climate, bad, "events")
    assert len(member.get("/leases")["leases"]) == 3


def walk(person: Person, path: str, key: str) -> list[dict[str, Any]]:
    """All rows, page after page, by the links."""
    rows: list[dict[str, Any]] = []
    while True:
        body = person.get(path)
        rows += body[key]
        if not body[f"{key}_links"]:
            return rows
        [link] = body[f"{key}_links"]
        assert link["rel"] == "next"
        parts = urlsplit(link["href"])
        assert parts.netloc == "here", "as clients know the service, whatever host they or a proxy named"
        path = f"{parts.path.removeprefix(V1)}?{parts.query}"


def test_pages_of_leases(member: Person, three: list[dict[str, Any]]) -> None:
    assert [lease["id"] for lease in walk(member, "/leases?limit=1", "leases")] == [lease["id"] for lease in three]
    named = walk(member, "/leases?limit=1&name=two", "leases")
    assert [lease["id"] for lease in named] == [lease["id"] for lease in three[1:]]


def test_pages_of_hosts(admin: Person) -> None:
    for path, key, name in (("/os-hosts", "hosts", "id"), ("/os-hosts/allocations", "allocations", "resource_id")):
        assert [row[name] for row in walk(admin, f"{path}?limit=3", key)] == list("12345678")
        assert set(admin.get(path)) == {key}, "nothing but the list for who asks for no page"


def test_events(admin: Person, member: Person, climate: Climate, three: list[dict[str, Any]]) -> None:
    everything = walk(admin, "/events?limit=3", "events")
    assert [event["event_type"] for event in everything][:1] == ["start_lease"]
    assert len({event["id"] for event in everything}) == 8
    assert [event["due_at"] for event in everything] == sorted(event["due_at"] for event in everything)
    done = admin.get("/events?status=DONE")
    assert done == {"events": [everything[0]]}
    assert {key: value for key, value in everything[0].items() if key not in ("id", "lease_id")} == {
        "project_id": "project",
        "event_type": "start_lease",
        "status": "DONE",
        "outcome": "OK",
        "reason": None,
        "attempts": 1,
        "due_at": "2030-01-01T12:00:00.000000",
        "run_at": "2030-01-01T12:00:00.000000",
        "updated_at": "2030-01-01T12:00:02.000000",
    }


def test_a_failed_event_is_requeued(admin: Person, member: Person, climate: Climate) -> None:
    made = member.lease(start_date="now", end_date="2030-01-01 14:00")
    climate.cloud.failures["lend"] = Refused("never")  # type: ignore[attr-defined]
    run_due(climate)
    assert member.get(f"/leases/{made['id']}")["lease"]["status"] == "ERROR"
    [failed] = admin.get("/events?status=ERROR")["events"]
    assert (failed["reason"], failed["outcome"], failed["lease_id"]) == ("never", "FAILED", made["id"])
    assert member("POST", f"/events/{failed['id']}/requeue").status_code == 403
    again = admin.done(admin("POST", f"/events/{failed['id']}/requeue"))["event"]
    assert (again["id"], again["status"], again["reason"]) == (failed["id"], "UNDONE", None)
    assert admin("POST", f"/events/{failed['id']}/requeue").status_code == 409
    climate.cloud.failures.clear()  # type: ignore[attr-defined]
    run_due(climate)
    assert member.get(f"/leases/{made['id']}")["lease"]["status"] == "ACTIVE"
