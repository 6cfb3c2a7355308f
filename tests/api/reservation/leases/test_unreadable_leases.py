"""A lease whose rows cannot be read: lists leave it out and name it, and itself it answers 503."""

from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest
import structlog
from sqlalchemy import Engine

from climate.context import Climate
from climate.service.leases import broken_leases
from tests.api.reservation.api_clients import V1, Person
from tests.api.reservation.leases.test_sharing import AS_PROJECT
from tests.broken_rows import DAMAGES, spoil
from tests.conftest import MEMBER, Clock

FORMS = ("/leases", "/leases.json", "/leases?limit=2", "/leases?name=bad", "/leases?status=PENDING")


def _ids(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return [lease["id"] for lease in answer.json["leases"]]


def _both(member: Person, clock: Clock) -> tuple[str, str]:
    """Ids of a lease that is to be broken, and of a later one."""
    bad = member.lease("bad")["id"]
    clock.forward(seconds=1)
    return bad, member.lease("good")["id"]


@pytest.mark.parametrize("damage", DAMAGES)
def test_list_leaves_it_out_and_names_it(
    member: Person, admin: Person, clock: Clock, engine: Engine, damage: str
) -> None:
    bad, good = _both(member, clock)
    spoil(engine, bad, damage)
    for person in (member, admin):
        answer = person("GET", "/leases")
        assert _ids(answer) == [good]
        assert answer.headers["Warning"] == (
            f'199 - "Lease {bad} has rows that this release cannot read: an administrator repairs it with '
            f'`climate event mend {bad}`; it is left out of this list"'
        )


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_the_list_does(member: Person, clock: Clock, engine: Engine, form: str) -> None:
    bad, _ = _both(member, clock)
    spoil(engine, bad)
    answer = member("GET", form)
    assert bad not in _ids(answer)
    assert bad in answer.headers["Warning"]


def test_list_without_it_has_no_warning(member: Person, clock: Clock) -> None:
    _both(member, clock)
    assert "Warning" not in member("GET", "/leases").headers
    assert "Warning" not in member("GET", "/leases?limit=1").headers


def test_one_line_of_the_log_names_all(member: Person, clock: Clock, engine: Engine) -> None:
    both = _both(member, clock)
    for one in both:
        spoil(engine, one)
    with structlog.testing.capture_logs() as lines:
        assert _ids(member("GET", "/leases")) == []
    (line,) = [one for one in lines if "unreadable leases left out" in one["event"]]
    assert set(line["leases"]) == set(both)
    assert "no JSON object" in line["leases"][both[0]]


def test_pages_go_on_across_broken_ones(member: Person, clock: Clock, engine: Engine) -> None:
    made = []
    for name in ("a", "b", "c", "d", "e"):
        made.append(member.lease(name)["id"])
        clock.forward(seconds=1)
    for one in made[:4]:
        spoil(engine, one)
    path, pages, warned = "/leases?limit=2", [], ""
    while path:
        answer = member("GET", path)
        pages.append(_ids(answer))
        warned += answer.headers.get("Warning", "")
        links = answer.json["leases_links"]
        path = ""
        if links:
            parts = urlsplit(links[0]["href"])
            path = f"{parts.path.removeprefix(V1)}?{parts.query}"
    assert pages == [[], [], made[4:]]
    assert all(one in warned for one in made[:4])


def test_more_than_some_are_counted(member: Person, clock: Clock, engine: Engine) -> None:
    for day in (f"2030-02-{number:02}" for number in range(1, 22)):
        spoil(engine, member.lease(start_date=f"{day} 10:00", end_date=f"{day} 11:00")["id"])
    warning = member("GET", "/leases").headers["Warning"]
    assert warning.count("199 - ") == 21
    assert "1 more leases that this release cannot read" in warning


def test_one_of_another_project_is_not_named(
    member: Person, stranger: Person, admin: Person, clock: Clock, engine: Engine
) -> None:
    bad = member.lease("bad", sharing=AS_PROJECT)["id"]
    other = member.lease("other")["id"]
    for one in (bad, other):
        spoil(engine, one)
    answer = stranger("GET", "/leases")
    assert _ids(answer) == []
    assert answer.headers["Warning"].count("199 - ") == 1
    assert "A lease of another project" in answer.headers["Warning"]
    assert not any(one in str(answer.headers) for one in (bad, other))
    assert bad in admin("GET", "/leases").headers["Warning"]
    assert stranger("GET", f"/leases/{other}").status_code == 404


def test_it_answers_503_with_its_repair(member: Person, climate: Climate, clock: Clock, engine: Engine) -> None:
    bad, _ = _both(member, clock)
    spoil(engine, bad)
    answer = member("GET", f"/leases/{bad}")
    assert answer.status_code == 503
    assert answer.json["error_message"] == (
        f"Lease {bad} has rows that this release cannot read: "
        f"an administrator repairs it with `climate event mend {bad}`"
    )
    broken_leases.repair_lease(climate, UUID(bad), "events")
    assert member.get(f"/leases/{bad}")["lease"]["project_id"] == MEMBER.project_id


def test_events_of_it_are_left_out(admin: Person, member: Person, clock: Clock, engine: Engine) -> None:
    bad, good = _both(member, clock)
    spoil(engine, bad)
    answer = admin("GET", "/events")
    assert {one["lease_id"] for one in answer.json["events"]} == {good}
    assert answer.headers["Warning"].count(f"Lease {bad} ") == 1
    path, seen = "/events?limit=1", []
    while path:
        answer = admin("GET", path)
        seen += [one["lease_id"] for one in answer.json["events"]]
        links = answer.json["events_links"]
        path = f"/events?{urlsplit(links[0]['href']).query}" if links else ""
    assert set(seen) == {good}


def test_hold_that_cannot_be_read_is_left_out(member: Person, clock: Clock, engine: Engine) -> None:
    bad = member.lease("bad", hold_seconds=60)["id"]
    good = member.lease("good", hold_seconds=60)["id"]
    spoil(engine, bad)
    answer = member("GET", "/holds")
    assert [one["id"] for one in answer.json["holds"]] == [good]
    assert bad in answer.headers["Warning"]
