"""Limits, usage and notices of the project."""

from datetime import timedelta

import pytest

from climate.context import Climate
from climate.domain.limits import Limit
from climate.domain.notifications import Notice
from climate.service.admission import limits
from climate.service.leases import leases
from climate.service.leases.leases import Order
from climate.service.notifications import delivery
from climate.service.usage import round as usage_round
from tests.api.reservation.api_clients import HOST
from tests.api.web.page_clients import Browser
from tests.conftest import ADMIN, MEMBER, Clock

XSS = "<script>alert(1)</script>"


def test_limits_are_shown_with_their_use(climate: Climate, clock: Clock, member: Browser) -> None:
    limits.put(climate, ADMIN, MEMBER.project_id, {Limit.HOSTS_AT_ONCE: 4})
    start = clock.time + timedelta(hours=1)
    leases.create(climate, MEMBER, Order("l", start, start + timedelta(hours=1), reservations=[HOST]))
    text = member.text("/ui/usage")
    assert "25 %" in text
    assert "this project" in text


def test_hours_are_those_of_the_own_project(climate: Climate, clock: Clock, member: Browser, stranger: Browser) -> None:
    leases.create(climate, MEMBER, Order("l", None, clock.time + timedelta(hours=4), reservations=[HOST]))
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
