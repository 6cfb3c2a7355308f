"""Pages of leases: list, lease, changes, deletion, calendar; scoped by project, and safe against any text."""

from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import update

from climate.context import Climate
from climate.domain.notifications import Notice
from climate.service.leases import leases
from climate.service.leases.leases import LeaseRequest
from climate.service.notifications import delivery
from climate.service.subleases import create
from climate.service.subleases.create import SubleaseOrder
from climate.store.tables.limits_and_notices import notices
from tests.api.reservation.api_clients import HOST, run_due
from tests.api.web.page_clients import Browser
from tests.broken_rows import spoil
from tests.conftest import MEMBER, STRANGER, Clock

XSS = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


def made(climate: Climate, clock: Clock, name: str = "training", hours: int = 2, **changes: object) -> str:
    """Return the id of a lease of one host that starts in an hour."""
    start = clock.time + timedelta(hours=1)
    spec = {**HOST, **changes}
    order = LeaseRequest(name, start, start + timedelta(hours=hours), reservations=[spec])
    return str(leases.create(climate, MEMBER, order).id)


def test_home_shows_leases_with_the_time_left_and_prolongs_them(
    climate: Climate, clock: Clock, member: Browser
) -> None:
    lease = made(climate, clock)
    text = member.text("/ui/")
    assert "training" in text
    assert "starts in" in text
    answer = member.submit("/ui/", f"/ui/leases/{lease}/prolong", by="1h")
    assert (answer.status_code, answer.location) == (303, "/ui/")
    assert "training was prolonged." in member.text("/ui/")
    assert "Free hosts of the next two weeks" in member.text("/ui/")


def test_home_of_a_reader_has_no_forms_for_changes(climate: Climate, clock: Clock, reader: Browser) -> None:
    made(climate, clock)
    text = reader.text("/ui/")
    assert "training" in text
    assert "/prolong" not in text


def test_a_page_names_the_parent_and_the_sub_leases(
    climate: Climate, clock: Clock, member: Browser, stranger: Browser
) -> None:
    parent = made(climate, clock, hours=5)
    start = clock.time + timedelta(hours=1)
    order = SubleaseOrder("course", STRANGER.project_id, start + timedelta(hours=1), start=start, hosts=1)
    own = str(create.create(climate, MEMBER, UUID(parent), order).id)
    assert f'<a href="/ui/leases/{own}">course</a>, 1 host' in member.text(f"/ui/leases/{parent}")
    text = member.text(f"/ui/leases/{own}")
    assert f'<a href="/ui/leases/{parent}">' in text
    assert f"/ui/leases/{own}/delete" in text
    assert f"/ui/leases/{own}/name" not in text
    text = stranger.text(f"/ui/leases/{own}")
    assert f"<code>{parent}</code> of project" in text
    assert f"/ui/leases/{own}/name" in text


def test_list_filters_and_pages(climate: Climate, clock: Clock, member: Browser, admin: Browser) -> None:
    first = made(climate, clock, "first")
    made(climate, clock, "second")
    assert "second" in member.text("/ui/leases")
    text = member.text("/ui/leases?name=first")
    assert f"/ui/leases/{first}" in text
    assert "second" not in text
    assert "No lease matches." in member.text("/ui/leases?status=ERROR")
    assert "No lease matches." in admin.text("/ui/leases")
    assert "first" in admin.text("/ui/leases?all=1")


@pytest.mark.parametrize(
    "query", ["status=NONE", "after=yesterday", "name=%00", "marker=x", "before=0001-01-01T00:00%2B23:00"]
)
def test_wrong_filters_are_refused_in_words(member: Browser, query: str) -> None:
    assert "<h1>That is not possible</h1>" in member.text(f"/ui/leases?{query}", 400)


def test_lease_shows_hosts_history_and_what_fits(climate: Climate, clock: Clock, member: Browser) -> None:
    lease = made(climate, clock)
    text = member.text(f"/ui/leases/{lease}")
    for shown in ("Reserved: everything is allocated", "1 host", "Lease created", "Prolong by"):
        assert shown in text
    clock.forward(hours=1.5)
    run_due(climate)
    text = member.text(f"/ui/leases/{lease}")
    assert "Running: what was reserved is yours" in text
    assert "Status: PENDING → STARTING" in text


def test_prolonging_ends_where_somebody_else_begins(climate: Climate, clock: Clock, member: Browser) -> None:
    lease = made(climate, clock, min=8, max=8)
    start = clock.time + timedelta(hours=5)
    other = {**HOST, "min": 8, "max": 8}
    leases.create(climate, MEMBER, LeaseRequest("other", start, start + timedelta(hours=1), reservations=[other]))
    text = member.text(f"/ui/leases/{lease}")
    assert 'value="1h"' in text
    assert "By 4h it does not fit" in text
    answer = member.submit(f"/ui/leases/{lease}", f"/ui/leases/{lease}/prolong", by="4h")
    assert answer.status_code == 303
    assert "Nothing was changed" in member.text(f"/ui/leases/{lease}")


def test_lease_is_shown_as_it_was(climate: Climate, clock: Clock, member: Browser) -> None:
    lease = made(climate, clock)
    before = clock.time.isoformat()
    clock.forward(minutes=1)
    member.submit(f"/ui/leases/{lease}", f"/ui/leases/{lease}/name", name="renamed")
    assert "<h1>renamed" in member.text(f"/ui/leases/{lease}")
    text = member.text(f"/ui/leases/{lease}?at={before.replace('+', '%2B')}")
    assert "<h1>training" in text
    assert "Name: training → renamed" in text


def test_history_is_gone_through_step_by_step(climate: Climate, clock: Clock, member: Browser) -> None:
    path = f"/ui/leases/{made(climate, clock)}"
    for name in ("second", "third"):
        clock.forward(minutes=1)
        member.submit(path, f"{path}/name", name=name)
    text = member.text(f"{path}?step=1")
    assert "<h1>training" in text
    assert "1 of 3: Lease created" in text
    assert f'rel="next" href="{path}?step=2"' in text
    assert "Prolong by" not in text
    assert "<h1>second" in member.text(f"{path}?step=2")
    last = member.text(f"{path}?step=3")
    assert "<h1>third" in last
    assert "as it was" not in last
    for wrong in ("0", "4", "x"):
        member.get(f"{path}?step={wrong}", 400)


def test_end_is_changed_renamed_and_deleted(climate: Climate, clock: Clock, member: Browser) -> None:
    lease = made(climate, clock)
    path = f"/ui/leases/{lease}"
    end = (clock.time + timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M")
    assert member.submit(path, f"{path}/end", end=end).status_code == 303
    assert "training was changed." in member.text(path)
    assert "Delete training?" in member.text(f"{path}/delete")
    assert member.submit(f"{path}/delete", f"{path}/delete").location == "/ui/leases"
    member.get(path, 404)


def test_calendar_file_has_the_lease(climate: Climate, clock: Clock, member: Browser) -> None:
    answer = member.get(f"/ui/leases/{made(climate, clock)}/lease.ics")
    assert answer.content_type.startswith("text/calendar")
    assert "SUMMARY:training" in answer.get_data(as_text=True)


def test_another_projects_lease_is_not_found(
    climate: Climate, clock: Clock, member: Browser, stranger: Browser
) -> None:
    lease = made(climate, clock)
    for path in ("", "/delete", "/lease.ics"):
        stranger.get(f"/ui/leases/{lease}{path}", 404)
    secret = {"csrf_token": "secret", "by": "1h", "name": "x", "now": "1"}
    for path in ("prolong", "end", "name", "delete"):
        assert stranger.post(f"/ui/leases/{lease}/{path}", secret).status_code == 404
    assert lease not in stranger.text("/ui/leases")
    assert "training" not in stranger.text("/ui/")


def test_readers_change_nothing(climate: Climate, clock: Clock, reader: Browser) -> None:
    lease = made(climate, clock)
    assert "Prolong by" not in reader.text(f"/ui/leases/{lease}")
    for path in ("prolong", "end", "name", "delete"):
        answer = reader.post(
            f"/ui/leases/{lease}/{path}", {"csrf_token": "secret", "by": "1h", "name": "x", "now": "1"}
        )
        assert answer.status_code == 403


def test_texts_of_users_are_no_html(climate: Climate, clock: Clock, member: Browser) -> None:
    lease = made(climate, clock, XSS)
    for path in ("/ui/", "/ui/leases", f"/ui/leases/{lease}", f"/ui/leases/{lease}/delete"):
        text = member.text(path)
        assert "&lt;script&gt;alert(1)" in text
        assert "<script>alert" not in text
        assert "<img src=x" not in text


@pytest.mark.parametrize("lease_id", ["x", "00000000-0000-0000-0000-000000000000", "%3Cscript%3E"])
def test_unknown_leases_are_not_found(member: Browser, lease_id: str) -> None:
    assert "<script>" not in member.text(f"/ui/leases/{lease_id}", 404).replace("<script src=", "")


def test_notices_of_a_lease_have_their_deliveries(climate: Climate, clock: Clock, member: Browser) -> None:
    lease = made(climate, clock)
    with climate.engine.begin() as conn:
        delivery.notify_now(conn, climate, Notice("lease.before_end", "Soon over.", "project", lease_id=UUID(lease)))
    assert "in this list" in member.text(f"/ui/leases/{lease}")
    with climate.engine.begin() as conn:
        conn.execute(update(notices).values(attempts=5, error="refused with 503", next_at=clock.time))
    for path in (f"/ui/leases/{lease}", "/ui/notices"):
        text = member.text(path)
        assert "Soon over." in text
        assert "failed after 5 tries: refused with 503; next try <time" in text


def test_a_lease_that_cannot_be_read_is_named_and_left_out(
    climate: Climate, clock: Clock, member: Browser, admin: Browser
) -> None:
    bad = made(climate, clock, "broken")
    for path in ("/ui/leases", "/ui/"):
        assert "cannot read" not in member.text(path)
    spoil(climate.engine, bad)
    for path in ("/ui/leases", "/ui/"):
        text = member.text(path)
        assert f"Lease {bad} has rows that this release cannot read" in text
        assert "No lease matches." not in text
    assert f"climate event mend {bad}" in admin.text("/ui/leases?all=1")
    made(climate, clock, "sound")
    for path in ("/ui/leases", "/ui/"):
        assert "sound" in member.text(path)
    assert f"Lease {bad} has rows" in member.text(f"/ui/leases/{bad}", 503)


def test_a_page_of_broken_leases_leads_to_the_next(climate: Climate, clock: Clock, admin: Browser) -> None:
    start = clock.time + timedelta(hours=1)
    for number in range(51):
        order = LeaseRequest(
            f"one-{number}", start + timedelta(days=number), start + timedelta(days=number, hours=1), None, [HOST]
        )
        lease = leases.create(climate, MEMBER, order)
        if number < 50:
            spoil(climate.engine, lease.id)
        clock.forward(seconds=1)
    text = admin.text("/ui/leases?all=1")
    assert 'rel="next"' in text
    link = text.split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&")
    assert "one-50" in admin.text(link)
