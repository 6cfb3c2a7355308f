"""Notices over HTTP: one's own, in pages, and never another project's."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from climate.context import Climate
from climate.domain.notifications import Audience
from climate.service.notifications.delivery import Notice, notify
from tests.api.reservation.api_clients import Person
from tests.conftest import Clock

LEASE = UUID("00000000-0000-0000-0000-000000000007")


def say(climate: Climate, *notices: Notice) -> None:
    with climate.engine.begin() as conn:
        notify(conn, climate.now(conn), *notices)


def own(message: str, **more: Any) -> Notice:
    return Notice("lease.grace", message, "project", "user", **more)


def told(person: Person, query: str = "") -> list[str]:
    return [one["message"] for one in person.get(f"/notices{query}")["notices"]]


@pytest.fixture
def some(climate: Climate) -> None:
    say(climate, own("mine"), Notice("lease.grace", "theirs", "other-project"), Notice("host.failed", "broken", host=3))
    say(climate, own("told to services alone", audience=Audience.HOOK))
    say(climate, own("told to one service", audience=Audience.ENFORCEMENT))


@pytest.mark.usefixtures("some")
def test_recipients_of_notices(member: Person, reader: Person, stranger: Person, admin: Person) -> None:
    assert told(member) == told(reader) == ["mine"]
    assert told(stranger) == ["theirs"]
    assert told(admin) == ["mine", "theirs", "broken"]


def test_a_notice_whole(climate: Climate, member: Person) -> None:
    say(climate, own("so it is – «ß»", lease_id=LEASE, body={"on_end": ["recycle"]}))
    (one,) = member.get("/notices")["notices"]
    assert one == {
        "id": one["id"],
        "at": "2030-01-01T12:00:00.000000",
        "kind": "lease.grace",
        "message": "so it is – «ß»",
        "project_id": "project",
        "user_id": "user",
        "lease_id": str(LEASE),
        "host_id": None,
        "details": {"on_end": ["recycle"]},
    }


def test_conditions(climate: Climate, member: Person, clock: Clock) -> None:
    say(climate, own("first"), Notice("lease.ended", "second", "project", lease_id=LEASE))
    clock.time += timedelta(hours=1)
    say(climate, own("third"))
    assert told(member, "?since=2030-01-01T13:00:00Z") == ["third"]
    assert told(member, "?kind=lease.ended") == told(member, f"?lease_id={LEASE}") == ["second"]
    assert told(member, "?kind=host.failed") == []


def test_pages(climate: Climate, member: Person) -> None:
    say(climate, *[own(str(place)) for place in range(5)], Notice("lease.grace", "theirs", "other-project"))
    seen: list[str] = []
    query = "?limit=2"
    while query:
        answer = member.get(f"/notices{query}")
        seen += [one["message"] for one in answer["notices"]]
        links = answer["notices_links"]
        query = f"?{links[0]['href'].partition('?')[2]}" if links else ""
    assert seen == list("01234")


@pytest.mark.usefixtures("some")
def test_a_marker_does_not_tell_of_notices_of_others(member: Person, admin: Person) -> None:
    theirs = next(one["id"] for one in admin.get("/notices")["notices"] if one["message"] == "theirs")
    answers = [member("GET", f"/notices?marker={marker}") for marker in (theirs, "99999999")]
    assert [answer.status_code for answer in answers] == [400, 400]
    assert len({answer.json["error_message"].replace(theirs, "N").replace("99999999", "N") for answer in answers}) == 1


@pytest.mark.parametrize(
    "query",
    ["?marker=x", "?marker=-1", f"?marker={'9' * 40}", "?since=soon", "?lease_id=7", "?limit=0", "?of=x", "?kind=%00"],
)
def test_bad_queries(member: Person, query: str) -> None:
    answer = member("GET", f"/notices{query}")
    assert answer.status_code == 400, answer.json
    assert answer.json["error_message"]
