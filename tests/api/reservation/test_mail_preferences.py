"""Mail preferences over HTTP, and the notices whose delivery was given up."""

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import text

from climate.context import Climate
from climate.domain.notifications import Audience, Notice
from climate.service.notifications.delivery import notify
from tests.api.reservation.api_clients import Person

PATH = "/mail-preferences"


def test_topics_are_those_of_the_user(member: Person, reader: Person, stranger: Person) -> None:
    assert member.get(PATH)["mail_preferences"] == {"topics": [], "address": None, "is_sent": False}
    known = member.done(member("PUT", PATH, {"topics": ["end_1h", "start"]}))["mail_preferences"]
    assert known["topics"] == ["start", "end_1h"]
    assert member.get(PATH)["mail_preferences"] == known
    assert reader.get(PATH)["mail_preferences"]["topics"] == stranger.get(PATH)["mail_preferences"]["topics"] == []
    assert member.done(member("PUT", PATH, {"topics": []}))["mail_preferences"]["topics"] == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"topics": None},
        {"topics": "start"},
        {"topics": ["later"]},
        {"topics": [7]},
        {"topics": ["start", "start"]},
        {"topics": ["start"] * 9},
        {"topics": ["start\r\nBcc: x@example.org"]},
        {"topics": ["start"], "address": "x@example.org"},
        {"topics": ["start"], "user_id": "other-user"},
    ],
)
def test_bad_bodies(member: Person, body: dict[str, Any]) -> None:
    assert member("PUT", PATH, body).status_code == 400
    assert member.get(PATH)["mail_preferences"]["topics"] == []


def given_up(climate: Climate) -> None:
    with climate.engine.begin() as conn:
        now = datetime(2030, 1, 1, tzinfo=UTC)
        for audience in Audience:
            notify(conn, now, Notice("lease.ended", audience, "project", "user", audience=audience))
        notify(conn, now, Notice("lease.ended", "theirs", "other-project", audience=Audience.MAIL))
        conn.execute(text("UPDATE notices SET next_at = NULL, attempts = 15, error = 'HTTP 503'"))


def test_dead_letters(climate: Climate, member: Person, admin: Person) -> None:
    given_up(climate)
    seen = {one["message"]: one for one in member.get("/notices?dead=true")["notices"]}
    assert set(seen) == {"people", "mail"}
    assert (seen["mail"]["audience"], seen["mail"]["attempts"], seen["mail"]["error"]) == ("mail", 15, "HTTP 503")
    everybodys = [one["message"] for one in admin.get("/notices?dead=true")["notices"]]
    assert everybodys == [*Audience, "theirs"]
    assert [one["message"] for one in member.get("/notices")["notices"]] == ["people"]
    path = f"/notices/{seen['mail']['id']}/resend"
    assert member("POST", path).status_code == 403
    assert admin.done(admin("POST", path))["notice"]["message"] == "mail"
    assert admin("POST", path).status_code == 404, "it is due again"
    assert [one["message"] for one in member.get("/notices?dead=true")["notices"]] == ["people"]


@pytest.mark.parametrize("name", ["x", "0", "-1", "9" * 19, "1.5", "%00", "٣"])
def test_bad_ids(admin: Person, name: str) -> None:
    assert admin("POST", f"/notices/{name}/resend").status_code == 404


@pytest.mark.parametrize("query", ["?dead=x", "?dead=", "?dead=true&of=x"])
def test_bad_queries(member: Person, query: str) -> None:
    assert member("GET", f"/notices{query}").status_code == 400
