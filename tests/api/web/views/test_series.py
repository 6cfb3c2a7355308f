"""Series on pages: their dates before they are created, and what becomes of them."""

from datetime import timedelta

import pytest

from climate.context import Climate
from climate.service.leases import leases
from climate.service.leases.leases import LeaseRequest
from climate.store.leases.leases import Listing
from tests.api.reservation.api_clients import HOST
from tests.api.web.page_clients import Browser
from tests.conftest import MEMBER, Clock

QUESTION = "hosts=8&length=2h&earliest=2030-01-02T09:00&every=day&times=3"
NEW, LIST = f"/ui/series/new?{QUESTION}", "/ui/series"
XSS = "<script>alert(1)</script>"


def taken(climate: Climate, clock: Clock) -> None:
    """One host has a lease on the second day."""
    start = clock.time + timedelta(hours=44)
    leases.create(climate, MEMBER, LeaseRequest(XSS, start, start + timedelta(hours=10), reservations=[HOST]))


def test_question_becomes_dates_and_a_series_of_leases(climate: Climate, member: Browser) -> None:
    link = member.form(f"/ui/find?{QUESTION}", "/ui/series/new")
    assert (link.fields["every"], link.fields["times"]) == ("day", "3")
    text = member.text(NEW)
    assert "3 of 3 dates fit" in text
    assert leases.listed(climate, MEMBER, Listing()) == [], "nothing is reserved yet"
    path = str(member.submit(NEW, LIST, name="course", make="all").location)
    text = member.text(path)
    assert "FREQ=DAILY;COUNT=3" in text
    assert text.count('href="/ui/leases/') == 3
    lease = leases.listed(climate, MEMBER, Listing())[0]
    for page in ("/ui/", "/ui/leases", f"/ui/leases/{lease.id}"):
        assert f'href="{path}">series</a>' in member.text(page)
    assert path in member.text(LIST)


def test_dates_that_clash_have_their_reason_and_are_left_out(climate: Climate, clock: Clock, member: Browser) -> None:
    taken(climate, clock)
    text = member.text(NEW)
    assert "2 of 3 dates fit" in text
    assert "clashes</span>" in text
    assert "It fits " in text
    assert 'value="all"' not in text
    refused = member.submit(NEW, LIST, name="course", make="all")
    assert refused.status_code == 409
    assert "do not fit, so nothing was changed" in refused.text
    path = str(member.submit(NEW, LIST, name="course", make="fitting").location)
    text = member.text(path)
    assert text.count('href="/ui/leases/') == 2
    assert "no lease</span>" in text
    assert XSS not in text


def test_series_is_deleted_once_that_was_confirmed(climate: Climate, member: Browser) -> None:
    path = str(member.submit(NEW, LIST, name=XSS, make="all").location)
    for page in (path, f"{path}/delete", LIST):
        assert XSS not in member.text(page)
        assert "&lt;script&gt;" in member.text(page)
    assert member.submit(f"{path}/delete", f"{path}/delete").location == LIST
    assert leases.listed(climate, MEMBER, Listing()) == []
    member.get(path, 404)
    assert "This project has no series." in member.text(LIST)


@pytest.mark.parametrize("query", ["hosts=1", "every=noon", "rule=FREQ%3DX", "every=day&times=0", "every=day&length=x"])
def test_wrong_rules_are_refused_in_words(member: Browser, query: str) -> None:
    assert "<h1>That is not possible</h1>" in member.text(f"/ui/series/new?{query}", 400)


@pytest.mark.parametrize("fields", [{"name": ""}, {"make": "some"}])
def test_wrong_orders_are_refused_above_the_dates(member: Browser, fields: dict[str, str]) -> None:
    answer = member.submit(NEW, LIST, **{"name": "course", "make": "all", **fields})
    assert answer.status_code == 409
    assert 'role="alert"' in answer.text


def test_series_of_others_are_not_found(member: Browser, reader: Browser, stranger: Browser) -> None:
    path = str(member.submit(NEW, LIST, name="course", make="all").location)
    for other in (path, f"{path}/delete", f"{LIST}/x", f"{LIST}/00000000-0000-0000-0000-000000000000"):
        stranger.get(other, 404)
    assert stranger.post(f"{path}/delete", {"csrf_token": "secret"}).status_code == 404
    assert "course" not in stranger.text(LIST)
    assert "Delete the series" not in reader.text(path)
    reader.get(NEW, 403)
    for action in (LIST, f"{path}/delete"):
        assert reader.post(action, {"csrf_token": "secret"}).status_code == 403
