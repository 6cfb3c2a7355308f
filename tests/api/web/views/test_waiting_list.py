"""The waiting list on pages: a search of which nothing fits stands in line."""

from datetime import timedelta

import pytest

from climate.context import Climate
from climate.service.leases import leases
from climate.service.leases.leases import LeaseRequest
from climate.store.leases.leases import Listing
from tests.api.reservation.api_clients import HOST
from tests.api.web.page_clients import Browser
from tests.conftest import MEMBER, Clock

QUESTION = "/ui/find?hosts=8&length=6h&earliest=2030-01-02T00:00&latest=2030-01-04T00:00"
XSS = "<script>alert(1)</script>"


@pytest.fixture
def all_taken(climate: Climate, clock: Clock) -> None:
    start = clock.time + timedelta(minutes=1)
    spec = {**HOST, "min": 8, "max": 8}
    leases.create(climate, MEMBER, LeaseRequest("all", start, start + timedelta(days=20), reservations=[spec]))


@pytest.mark.usefixtures("all_taken")
def test_lease_stands_in_line_where_nothing_fits(climate: Climate, member: Browser, reader: Browser) -> None:
    assert "Stand in line until" in member.text(QUESTION)
    path = str(member.submit(QUESTION, "/ui/waiting", name=XSS).location)
    (lease,) = leases.listed(climate, MEMBER, Listing(name=XSS))
    assert lease.wait_until is not None
    assert (lease.wait_until.day, lease.wait_until.hour) == (3, 18), "the latest end less the length"
    text = member.text(path)
    assert "It waits until" in text
    assert "at place 1 in the line" in text
    assert "As things stand, it would start" in text or "No time is known at which it would fit." in text
    assert "It stands in line." in text
    for browser in (member, reader):
        for page in ("/ui/", "/ui/leases"):
            assert "place 1 in the line" in browser.text(page)
            assert XSS not in browser.text(page)
    assert f'action="{path}/prolong"' not in member.text("/ui/")
    assert member.submit(f"{path}/delete", f"{path}/delete").location == "/ui/leases"


def test_lease_for_which_hosts_are_free_is_made_at_once(climate: Climate, member: Browser) -> None:
    fields = {"hosts": "1", "length": "2h", "until": "2030-01-05T00:00", "name": "quick", "csrf_token": "secret"}
    answer = member.post("/ui/waiting", fields)
    assert "is yours" in member.text(str(answer.location))


@pytest.mark.usefixtures("all_taken")
@pytest.mark.parametrize(("fields", "status"), [({}, 400), ({"until": "x"}, 400), ({"until": "2029-01-01T00:00"}, 303)])
def test_useless_waits_are_refused(member: Browser, fields: dict[str, str], status: int) -> None:
    answer = member.post("/ui/waiting", {"hosts": "8", "csrf_token": "secret", **fields})
    assert answer.status_code == status
    if status == 303:
        assert "It cannot stand in line" in member.text("/ui/find")


def test_readers_do_not_stand_in_line(reader: Browser) -> None:
    assert reader.post("/ui/waiting", {"csrf_token": "secret"}).status_code == 403


def test_preemptible_lease_is_asked_for_and_marked(climate: Climate, member: Browser) -> None:
    question = "/ui/find?hosts=2&length=2h&preemptible=1"
    text = member.text(question)
    assert "--preemptible" in text
    assert "preemptible=True" in text
    hold = str(member.submit(question, "/ui/holds").location)
    path = str(member.submit(hold, f"{hold}/take", name="rest").location)
    (lease,) = leases.listed(climate, MEMBER, Listing())
    assert lease.reservations[0].spec["preemptible"] is True
    for page in ("/ui/", "/ui/leases", path):
        assert "status-preemptible" in member.text(page)
    other = str(member.submit("/ui/find?hosts=8&length=2h&earliest=2030-01-01T13:00", "/ui/holds").location)
    assert "status-preemptible" not in member.text(other)
    member.submit(other, f"{other}/take", name="ordinary")
    assert "An ordinary lease needs hosts of it: they are taken from" in member.text(path)
