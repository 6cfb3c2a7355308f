"""Limits, usage and notices of the project."""

from datetime import timedelta

import pytest
from sqlalchemy import update

from climate.context import Climate
from climate.domain.limits import Limit
from climate.domain.notifications import Audience, Notice
from climate.service.admission import limits
from climate.service.leases import leases
from climate.service.leases.leases import LeaseRequest
from climate.service.notifications import delivery
from climate.service.notifications.delivery import Listing
from climate.service.usage import round as usage_round
from climate.store.tables.limits_and_notices import notices
from tests.api.reservation.api_clients import HOST
from tests.api.web.page_clients import Browser
from tests.conftest import ADMIN, MEMBER, Clock

XSS = "<script>alert(1)</script>"


def test_limits_are_shown_with_their_use(climate: Climate, clock: Clock, member: Browser) -> None:
    limits.put(climate, ADMIN, MEMBER.project_id, {Limit.HOSTS_AT_ONCE: 4})
    start = clock.time + timedelta(hours=1)
    leases.create(climate, MEMBER, LeaseRequest("l", start, start + timedelta(hours=1), reservations=[HOST]))
    text = member.text("/ui/usage")
    assert "25 %" in text
    assert "this project" in text


def test_hours_are_those_of_the_own_project(climate: Climate, clock: Clock, member: Browser, stranger: Browser) -> None:
    leases.create(climate, MEMBER, LeaseRequest("l", None, clock.time + timedelta(hours=4), reservations=[HOST]))
    usage_round.run_round(climate)
    clock.forward(hours=3)
    assert "3.0 h" in member.text("/ui/usage?per=all")
    assert "3.0 h" in member.text("/ui/usage?per=all&by=user")
    assert "No host was reserved in this time." in stranger.text("/ui/usage?per=all")


@pytest.mark.parametrize("query", ["by=pool", "per=hour", "start=x", "start=2031-01-01T00:00", "end=0001-01-01T00:00"])
def test_wrong_reports_are_refused_in_words(member: Browser, query: str) -> None:
    assert "<h1>That is not possible</h1>" in member.text(f"/ui/usage?{query}", 400)


def test_notices_are_those_of_the_own_project(climate: Climate, member: Browser, stranger: Browser) -> None:
    notice = Notice("lease.before_end", f"It ends {XSS}", MEMBER.project_id)
    with climate.engine.begin() as conn:
        for _ in range(51):
            delivery.notify_now(conn, climate, notice)
    text = member.text("/ui/notices")
    assert "It ends &lt;script&gt;" in text
    assert XSS not in text
    assert 'rel="next"' in text
    assert "No notice matches." in stranger.text("/ui/notices")
    assert "No notice matches." in member.text("/ui/notices?kind=other")
    member.get("/ui/notices?marker=x", 400)


def given_up(climate: Climate, *what: Notice) -> None:
    """Notices whose delivery was given up."""
    with climate.engine.begin() as conn:
        delivery.notify_now(conn, climate, *what)
        conn.execute(update(notices).values(attempts=8, error=f"refused {XSS}", next_at=None))


def test_delivery_that_was_given_up_is_sent_again(climate: Climate, admin: Browser) -> None:
    given_up(climate, Notice("lease.before_end", "It ends", "elsewhere"))
    path = "/ui/notices?failed=1&all=1"
    text = admin.text(path)
    assert "given up after 8 tries: refused &lt;script&gt;" in text
    assert XSS not in text
    (known,) = delivery.listed(climate, ADMIN, Listing(dead=True))
    answer = admin.submit(path, f"/ui/notices/{known.id}/resend")
    assert (answer.status_code, answer.location) == (303, path)
    assert "is sent again" in admin.text(path)
    assert delivery.listed(climate, ADMIN, Listing(dead=True)) == []
    (again,) = delivery.listed(climate, ADMIN, Listing())
    assert (again.attempts, again.error, again.again_at is not None) == (0, "", True)
    admin.post(answer.request.path, {"csrf_token": "secret", "next": "//evil.example"})
    assert "perhaps it is sent again already" in admin.text("/ui/notices")


def test_only_administrators_send_notices_again(climate: Climate, member: Browser, reader: Browser) -> None:
    given_up(climate, Notice("lease.before_end", "It ends", MEMBER.project_id))
    (known,) = delivery.listed(climate, ADMIN, Listing(dead=True))
    for browser in (member, reader):
        text = browser.text("/ui/notices?failed=1")
        assert "given up after 8 tries" in text
        assert "Send again" not in text
        assert browser.post(f"/ui/notices/{known.id}/resend", {"csrf_token": "secret"}).status_code == 403
    assert len(delivery.listed(climate, ADMIN, Listing(dead=True))) == 1


def test_notices_about_hosts_are_for_administrators(climate: Climate, admin: Browser, member: Browser) -> None:
    given_up(climate, Notice("host.failed", "Host h1 has failed", host=1, audience=Audience.PEOPLE))
    assert '<a href="/ui/hosts/1">the host</a>' in admin.text("/ui/notices?all=1")
    assert "No notice matches." in admin.text("/ui/notices")
    assert "No notice matches." in member.text("/ui/notices?all=1")


@pytest.mark.parametrize("number", ["x", "-1", "9" * 30])
def test_notice_that_is_not_there(admin: Browser, number: str) -> None:
    assert admin.post(f"/ui/notices/{number}/resend", {"csrf_token": "secret"}).status_code == 404
