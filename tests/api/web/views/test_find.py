"""New lease: question, offers, hold, lease."""

import re
from datetime import timedelta

import pytest

from climate.context import Climate
from climate.domain.limits import Limit
from climate.service.admission import limits
from climate.service.leases import leases
from climate.service.leases.leases import LeaseRequest
from tests.api.reservation.api_clients import HOST
from tests.api.web.page_clients import Browser, forms_of
from tests.conftest import ADMIN, MEMBER, Clock


def test_question_becomes_an_offer_a_hold_and_a_lease(climate: Climate, member: Browser) -> None:
    text = member.text("/ui/find?q=4+hosts+gpu_count%3E1+2h+tomorrow")
    assert "Understood: 4 hosts for 2h" in text
    assert "4 of 4 free for all of it" in text
    answer = member.submit("/ui/find?q=4+hosts+gpu_count%3E1+2h+tomorrow", "/ui/holds")
    hold = answer.location or ""
    assert hold.startswith("/ui/holds/")
    text = member.text(hold)
    assert "Held for you" in text
    assert "4 hosts" in text
    answer = member.submit(hold, f"{hold}/take", name="training")
    assert answer.location == hold.replace("holds", "leases")
    assert "<h1>training" in member.text(answer.location)
    member.get(hold, 404)


def test_hold_says_what_it_takes_of_the_limits(climate: Climate, member: Browser) -> None:
    search = "/ui/find?hosts=3&length=2h"
    assert "whole hosts at any one time" not in member.text(str(member.submit(search, "/ui/holds").location))
    limits.put(climate, ADMIN, MEMBER.project_id, {Limit.HOSTS_AT_ONCE: 7})
    text = member.text(str(member.submit(search, "/ui/holds").location))
    assert re.search(r'whole hosts at any one time</th><td class="number">6</td><td class="number">7</td>', text)
    assert 'role="timer"' in text


def test_hold_is_renewed_once_and_released(member: Browser) -> None:
    hold = member.submit("/ui/find?hosts=1", "/ui/holds").location or ""
    assert member.submit(hold, f"{hold}/renew").status_code == 303
    assert f"{hold}/renew" not in member.text(hold)
    assert hold in member.text("/ui/find")
    assert member.submit(hold, f"{hold}/release").location == "/ui/find"
    member.get(hold, 404)


def test_form_asks_what_the_box_asks(member: Browser) -> None:
    form = next(
        one for one in forms_of(member.get("/ui/find?q=2+hosts+gpu_count%3E1+1d+6h")) if one.action == "/ui/find"
    )
    assert form.fields["hosts"] == "2"
    assert form.fields["length"] == "1d 6h"
    assert form.fields["requirements"] == "gpu_count&gt;1" or form.fields["requirements"] == "gpu_count>1"
    assert "Hold it" in member.text("/ui/find?hosts=2&length=1d+6h&requirements=gpu_count%3E1")


def test_the_same_is_shown_for_other_tools(member: Browser) -> None:
    text = member.text("/ui/find?hosts=2&length=6h&requirements=gpu_count%3E1")
    assert "climate find --hosts 2 --for 6h" in text
    assert "curl -s http://here/v1/availability" in text
    assert "from climate.client import connect, hosts" in text


def test_refusal_says_why_and_what_would_fit(climate: Climate, clock: Clock, member: Browser) -> None:
    spec = {**HOST, "min": 8, "max": 8}
    start = clock.time + timedelta(minutes=1)
    leases.create(climate, MEMBER, LeaseRequest("all", start, start + timedelta(days=20), reservations=[spec]))
    text = member.text("/ui/find?q=8+hosts+6h+this+week")
    assert "Nothing fits." in text
    assert "It fits at a later time" in text


@pytest.mark.parametrize(
    "query",
    [
        "hosts=0",
        "hosts=x",
        "length=ever",
        "requirements=%3Cscript%3E",
        "earliest=soon",
        "latest=2029-01-01T00:00",
        "hosts=4&requirements=nothing%3E1",
        "length=730d",
    ],
)
def test_wrong_questions_are_refused_in_words(member: Browser, query: str) -> None:
    text = member.text(f"/ui/find?{query}", 400)
    assert 'role="alert"' in text
    assert "<script>" not in text


def test_words_that_are_not_understood_are_named(member: Browser) -> None:
    text = member.text("/ui/find?q=2+hosts+%3Cscript%3Ealert(1)%3C/script%3E")
    assert "Not understood:" in text
    assert "<script>alert" not in text


def test_readers_and_strangers_hold_nothing(member: Browser, reader: Browser, stranger: Browser) -> None:
    hold = member.submit("/ui/find?hosts=1", "/ui/holds").location or ""
    reader.get("/ui/find", 403)
    assert "Take it</button>" not in reader.text(hold)
    stranger.get(hold, 404)
    for action in ("take", "renew", "release"):
        assert reader.post(f"{hold}/{action}", {"csrf_token": "secret", "name": "x"}).status_code == 403
        assert stranger.post(f"{hold}/{action}", {"csrf_token": "secret", "name": "x"}).status_code == 404
    offer = member.form("/ui/find?hosts=1", "/ui/holds").fields["offer"]
    answer = stranger.post("/ui/holds", {"csrf_token": "secret", "offer": offer})
    assert answer.location == "/ui/find"
    assert "Nothing was held" in stranger.text("/ui/find")


@pytest.mark.parametrize("search", ["earliest=2300-01-01T00:00", "q=on+9000-01-01", "earliest=2199-12-30T23:00"])
def test_nothing_is_offered_after_the_last_date(member: Browser, search: str) -> None:
    assert "the last possible date" in member.text(f"/ui/find?hosts=1&length=2h&{search}", 400)
