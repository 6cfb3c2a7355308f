"""The calendar's page, its data by cookie, its table, and ends that are changed by dragging."""

import json
from typing import Any

from flask import Flask

from tests.api.reservation.api_clients import Person
from tests.api.web.page_clients import Browser, forms_of

AT = "?at=2030-01-02T00:00Z&span=24"
NAME = "<img src=x onerror=alert(1)>"


def data(browser: Browser) -> dict[str, Any]:
    query = {"from": "2030-01-02 00:00", "to": "2030-01-03 00:00"}
    answer = browser.client.get("/ui/calendar/data", query_string=query, headers={"Accept": "application/json"})
    assert answer.status_code == 200
    shown: dict[str, Any] = answer.json["timeline"]
    return shown


def end(browser: Browser, lease: str, moment: str, **more: str) -> Any:
    """Ask for another end, with the secret of the calendar's page."""
    secret = next(
        one.fields["csrf_token"] for one in forms_of(browser.get("/ui/calendar")) if "csrf_token" in one.fields
    )
    fields = {"end": moment, **more}
    headers = {"Accept": "application/json", "X-CSRF-Token": secret, "Origin": "http://localhost"}
    return browser.client.post(f"/ui/calendar/leases/{lease}/times", data=fields, headers=headers)


def test_page_has_the_component_and_a_table_beside_it(member: Browser) -> None:
    text = member.text("/ui/calendar?span=24&search=%22%3E%3Cscript%3E")
    assert "<lease-timeline" in text
    assert 'search="&#34;&gt;&lt;script&gt;"' in text
    assert "may-update" in text
    assert "/ui/calendar/table?span=24" in text


def test_readers_see_the_calendar_without_changing_anything(reader: Browser) -> None:
    assert "may-update" not in reader.text("/ui/calendar")


def test_data_is_that_of_the_session(pages: Flask, member: Browser, stranger: Browser, admin: Browser) -> None:
    Person(pages, "member").lease(NAME)
    assert [span["lease_name"] for row in data(member)["rows"] for span in row["spans"]] == [NAME]
    assert [set(span) for row in data(stranger)["rows"] for span in row["spans"]] == [{"kind", "start", "end"}]
    assert NAME in json.dumps(data(admin))


def test_data_is_not_sent_twice(member: Browser) -> None:
    query = "/ui/calendar/data?from=2030-01-02 00:00&to=2030-01-03 00:00"
    tag = member.client.get(query).headers["ETag"]
    assert member.client.get(query, headers={"If-None-Match": tag}).status_code == 304


def test_table_shows_the_same_and_hides_the_same(pages: Flask, member: Browser, stranger: Browser) -> None:
    Person(pages, "member").lease(NAME)
    own = member.text(f"/ui/calendar/table{AT}")
    assert "&lt;img src=x onerror=alert(1)&gt;" in own
    assert "<img src=x" not in own
    others = stranger.text(f"/ui/calendar/table{AT}")
    assert "busy" in others
    assert "onerror" not in others


def test_table_has_pages_and_a_search(pages: Flask, member: Browser) -> None:
    assert "8 hosts, 1 to 8" in member.text(f"/ui/calendar/table{AT}")
    assert "1 host, 1 to 1" in member.text(f"/ui/calendar/table{AT}&search=h7")
    assert "No host matches." in member.text(f"/ui/calendar/table{AT}&search=nothing")
    assert "Hosts before" in member.text(f"/ui/calendar/table{AT}&row=5")


def test_a_misspelled_address_shows_the_usual(member: Browser) -> None:
    assert "8 hosts" in member.text("/ui/calendar/table?at=never&span=x&group=colour&row=-1")


def test_trial_of_an_end_says_whether_it_fits_and_changes_nothing(pages: Flask, member: Browser) -> None:
    person = Person(pages, "member")
    lease = person.lease()
    assert end(member, lease["id"], "2030-01-02 14:00", dry_run="1").json["fits"] is True
    assert person.get(f"/leases/{lease['id']}")["lease"]["end_date"] == "2030-01-02T12:00:00.000000"
    changed = end(member, lease["id"], "2030-01-02 14:00").json
    assert (changed["fits"], changed["end"]) == (True, "2030-01-02T14:00:00.000000")


def test_start_is_tried_and_changed(pages: Flask, member: Browser) -> None:
    person = Person(pages, "member")
    lease = person.lease()
    start = lease["start_date"]
    sent = {"csrf_token": "secret", "start": "2030-01-02 10:30"}
    path = f"/ui/calendar/leases/{lease['id']}/times"
    assert member.post(path, {**sent, "dry_run": "1"}).json["fits"] is True
    assert person.get(f"/leases/{lease['id']}")["lease"]["start_date"] == start
    told = member.post(path, {**sent, "end": "2030-01-02 15:00"}).json
    assert (told["start"], told["end"]) == ("2030-01-02T10:30:00.000000", "2030-01-02T15:00:00.000000")
    for wrong in ({}, {"start": "never"}, {"start": "2030-01-02 16:00"}, {"start": "2029-01-01 00:00"}):
        refused = member.post(path, {"csrf_token": "secret", **wrong}).json
        assert (refused["fits"], refused["message"].startswith("clashes: ")) == (False, True)


def test_clash_is_told(pages: Flask, member: Browser) -> None:
    person, other = Person(pages, "member"), Person(pages, "stranger")
    lease = person.lease(reservations=[{**HOSTS, "min": 8, "max": 8}])
    other.lease("secret", start_date="2030-01-02 13:00", end_date="2030-01-02 15:00")
    told = end(member, lease["id"], "2030-01-02 14:00", dry_run="1").json
    assert told["fits"] is False
    assert told["message"].startswith("clashes: ")
    assert "secret" not in told["message"]


HOSTS = {
    "resource_type": "physical:host",
    "min": 1,
    "max": 1,
    "hypervisor_properties": "",
    "resource_properties": "",
}


def test_lease_of_another_project_is_not_changed(pages: Flask, stranger: Browser, reader: Browser) -> None:
    lease = Person(pages, "member").lease("hidden-name")
    answer = end(stranger, lease["id"], "2030-01-02 14:00")
    assert (answer.status_code, answer.json["fits"], "hidden-name" in answer.text) == (404, False, False)
    assert end(reader, lease["id"], "2030-01-02 14:00").status_code == 403


def test_change_without_the_secret_is_refused(pages: Flask, member: Browser) -> None:
    lease = Person(pages, "member").lease()
    assert member.post(f"/ui/calendar/leases/{lease['id']}/times", {"end": "2030-01-02 14:00"}).status_code == 403


def test_stream_is_that_of_the_session(pages: Flask, member: Browser, stranger: Browser) -> None:
    def told(browser: Browser, after: str = "0") -> str:
        return browser.client.get(f"/ui/events?after={after}", headers={"Accept": "text/event-stream"}).text

    lease = Person(pages, "member").lease("hidden-name")
    assert lease["id"] in told(member)
    assert lease["id"] not in told(stranger)
    assert "event: calendar" in told(stranger)
