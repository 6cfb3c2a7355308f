"""Calendar feeds over HTTP: without a token, never logged, and gone once revoked."""

import io
from typing import Any

import pytest
import vobject  # type: ignore[import-untyped]
from flask import Flask

from api.auth import CALENDARS
from api.rate_limit import Allowance
from climate import log_setup
from climate.context import Climate
from climate.domain.policy import Caller
from climate.service.calendars import feeds
from climate.store.notices.calendar_feeds import Scope
from tests.api.reservation.api_clients import Person

FEEDS = "/calendar-feeds"


def created(person: Person, **body: Any) -> dict[str, Any]:
    feed: dict[str, Any] = person.done(person("POST", FEEDS, body), 201)["calendar_feed"]
    return feed


def path_of(feed: dict[str, Any]) -> str:
    return str(feed["url"]).removeprefix("http://here")


def read(app: Flask, feed: dict[str, Any], query: str = "", **headers: str) -> Any:
    return app.test_client().get(path_of(feed) + query, headers=headers)


def test_a_feed_is_read_without_a_token(app: Flask, member: Person) -> None:
    member.lease("training")
    feed = created(member, name="GPU hosts")
    answer = read(app, feed)
    assert answer.status_code == 200
    assert answer.content_type == "text/calendar; charset=utf-8"
    assert answer.headers["Cache-Control"] == "private, no-cache"
    calendar = vobject.readOne(answer.get_data(as_text=True))
    assert [one.summary.value for one in calendar.vevent_list] == ["training"]
    again = read(app, feed, **{"If-None-Match": answer.headers["ETag"]})
    assert (again.status_code, again.get_data()) == (304, b"")


def test_the_secret_is_shown_once(member: Person) -> None:
    feed = created(member, scope="project")
    assert feed["url"].startswith("http://here/reservation/v1/calendar/")
    (listed,) = member.get(FEEDS)["calendar_feeds"]
    assert listed == {key: value for key, value in feed.items() if key != "url"}
    assert listed["scope"] == "project"


def test_revoked_feeds_are_404(app: Flask, member: Person) -> None:
    feed = created(member)
    assert member("DELETE", f"{FEEDS}/{feed['id']}").status_code == 204
    assert read(app, feed).status_code == 404
    assert member("DELETE", f"{FEEDS}/{feed['id']}").status_code == 404


def test_a_user_without_a_role_in_the_project_has_no_feed(app: Flask, climate: Climate) -> None:
    left = Caller("left-user", "project", frozenset({"member"}))
    _, secret = feeds.create(climate, left, "mine", Scope.PROJECT)
    answer = app.test_client().get(f"/v1/calendar/{secret}.ics")
    assert answer.status_code == 404
    assert answer.get_json()["error_message"] == feeds.GONE


@pytest.mark.parametrize(
    "body",
    [
        {"name": ""},
        {"name": " "},
        {"name": "x" * 81},
        {"name": "a\r\nBEGIN:VEVENT"},
        {"name": 7},
        {"name": None},
        {"scope": "everything"},
        {"scope": None},
        {"user_id": "other-user"},
        {"secret": "A" * 43},
    ],
)
def test_bad_bodies(member: Person, body: dict[str, Any]) -> None:
    answer = member("POST", FEEDS, body)
    assert answer.status_code == 400, answer.json
    assert next(iter(body)) in answer.json["error_message"]


@pytest.mark.parametrize(
    "query", ["?past=-1", "?past=367", "?future=0", "?future=1101", "?future=365000", "?past=x", "?of=x", "?past=%00"]
)
def test_bad_queries(app: Flask, member: Person, query: str) -> None:
    assert read(app, created(member), query).status_code == 400


@pytest.mark.parametrize("name", ["x", "7", "00000000-0000-0000-0000-00000000000g", "../leases", "%00"])
def test_bad_ids(member: Person, name: str) -> None:
    assert member("DELETE", f"{FEEDS}/{name}").status_code == 404


@pytest.mark.parametrize("form", [".ics", "", ".json", ".ics/x", ".txt"])
def test_no_log_line_has_the_secret(app: Flask, member: Person, form: str) -> None:
    path = path_of(created(member)).removesuffix(".ics") + form
    secret = path.split("/")[4].partition(".")[0]
    log = io.StringIO()
    log_setup.configure("json", "DEBUG", log)
    for prefix in ("", "/reservation/v1/project", "/x"):
        app.test_client().get(f"{prefix}{path}".replace("/project/reservation/v1", "/project"))
    assert log.getvalue().count("/calendar/…") == 3, log.getvalue()
    assert secret not in log.getvalue()


def test_reads_are_limited_by_address(app: Flask, member: Person) -> None:
    feed = created(member)
    app.extensions[CALENDARS] = Allowance(1, clock=lambda: 0.0)
    assert [read(app, feed).status_code for _ in range(4)] == [200, 200, 200, 429]


def test_other_media_types_are_not_offered(app: Flask, member: Person) -> None:
    assert read(app, created(member), Accept="image/png").status_code == 406
    assert read(app, created(member), Accept="text/calendar").status_code == 200
