"""Failed events, the audit trail, the pools at a past time, power and the tree, for administrators."""

import re

import pytest
from flask import Flask
from sqlalchemy import update

from climate.compute.cells import neighbours
from climate.compute.cells.models import Cell
from climate.compute.cells.state import report_validation, state
from climate.compute.store.cells import cells
from climate.compute.store.tables.zones import zones
from climate.compute.zones import registry
from climate.context import Climate
from tests.api.compute.api_clients import World
from tests.api.reservation.api_clients import Person, run_due
from tests.api.web.page_clients import Browser, signed_in
from tests.broken_rows import spoil
from tests.conftest import ADMIN, Clock

PAGES = ("/ui/failed-events", "/ui/audit", "/ui/past", "/ui/power", "/ui/tree")


@pytest.mark.parametrize("path", PAGES)
def test_only_administrators_see_them(admin: Browser, member: Browser, reader: Browser, path: str) -> None:
    admin.text(path)
    for browser in (member, reader):
        browser.text(path, 403)


def test_failed_event_is_listed_and_runs_again(climate: Climate, clock: Clock, pages: Flask, admin: Browser) -> None:
    Person(pages, "member").lease("late")
    clock.forward(days=2)  # its start is long over when a worker comes
    run_due(climate)
    text = admin.text("/ui/failed-events")
    assert "start_lease" in text
    assert "late" in text
    assert '<span title="project">project by name</span>' in text
    form = next(one for one in [admin.form("/ui/failed-events", action) for action in _actions(text)])
    assert admin.post(form.action, form.fields).status_code == 303


def _actions(text: str) -> list[str]:
    return [part.split('"')[0] for part in text.split('action="') if part.startswith("/ui/failed-events/")]


def test_audit_trail_shows_both_sides_and_is_filtered(pages: Flask, admin: Browser) -> None:
    asker = Person(pages, "admin")
    asker.done(asker("PUT", "/limits/project", {"leases": 5}))
    asker.done(asker("PUT", "/os-hosts/1", {"note": "<b>new</b>"}))
    text = admin.text("/ui/audit")
    assert "&lt;b&gt;new&lt;/b&gt;" in text
    assert "limits" in text
    only = admin.text("/ui/audit?kind=limits")
    assert "<code>note</code>" not in only
    assert "<code>leases</code>" in only
    assert "No change matches." in admin.text("/ui/audit?author=nobody")
    admin.text("/ui/audit?since=never", 400)


def test_audit_trail_has_names_and_is_filtered_by_them(pages: Flask, admin: Browser) -> None:
    asker = Person(pages, "admin")
    asker.done(asker("PUT", "/limits/project", {"leases": 5}))
    window = {"host_id": "2", "start_date": "2030-01-05 10:00", "end_date": "2030-01-05 11:00", "reason": "memory"}
    asker.done(asker("POST", "/maintenances", window), 201)
    text = admin.text("/ui/audit")
    author = ADMIN.user_id
    assert f'<span>{author} by name</span><div class="soft"><code>{author}</code></div>' in text
    assert '<span title="project">project by name</span>' in text
    assert '<code>host_id</code>: <span title="2">h2</span>' in text
    for given in (f"author={author}+by+name", f"author={author}", "project=project+by+name", "project=project"):
        assert "project by name" in admin.text(f"/ui/audit?{given}"), given
    assert "No change matches." in admin.text("/ui/audit?project=project+by")


def test_pools_as_they_were(climate: Climate, pages: Flask, admin: Browser) -> None:
    with climate.engine.connect() as conn:
        before = conn.exec_driver_sql(
            'SELECT to_char(clock_timestamp(), \'YYYY-MM-DD"T"HH24:MI:SS.US"Z"\')'
        ).scalar_one()
    asker = Person(pages, "admin")
    asker.done(asker("POST", "/pools/multi-tenant/moves", {"hosts": ["1", "2"], "reason": "for all"}))
    assert "No host was registered then." in admin.text("/ui/past?at=2001-01-01T00:00")
    then = admin.text(f"/ui/past?at={before}")
    assert "No host was registered then." not in then
    assert "for all" not in then
    now = admin.text("/ui/past?at=2029-12-31 12:00")
    assert now.count("for all") == 2


def test_time_to_come_is_refused(admin: Browser) -> None:
    assert "still to come" in admin.text("/ui/past?at=2031-01-01 09:00", 400)
    assert "a time such as" in admin.text("/ui/past?at=never", 400)


def test_power_is_drawn_against_the_backlog(pages: Flask, admin: Browser) -> None:
    asker = Person(pages, "admin")
    asker.done(asker("PUT", "/os-hosts/1/power", {"driver": "memory", "settings": {}, "watts": 150}))
    text = admin.text("/ui/power")
    assert "<rect" in text
    assert "1 hosts with power settings that are on" in text


def test_tree_has_cells_at_every_level_with_what_they_report(cloud: World) -> None:
    admin, compute = signed_in(cloud.app, "admin"), cloud.here.compute
    for name in ("east", "silent"):
        neighbours.create(compute, Cell(name))
    neighbours.create(compute, Cell("above", is_parent=True))
    with compute.engine.begin() as conn:
        now = compute.now(conn)
        mine = state.total(compute, conn)
        told = {
            "capabilities": {"gpu": ["a100", "<b>"]},
            "capacities": mine.capacities,
            "offers": {},
            "children": [{"name": "deep", "state": "up", "age": 1.0, "capacities": {"ram_free": {"total_mb": 77}}}],
        }
        below = {"name": "middle", "state": "mute", "age": None, "children": told["children"]}
        assert cells.store_report(conn, "east", report_validation.read({**told, "children": [below]}), now, now)
    text = admin.text("/ui/tree")
    states = re.findall(r'cell <strong>(\w+)</strong> <span class="status status-(\w+)"', text)
    expected = {"above": "active", "east": "active", "silent": "mute", "middle": "mute", "deep": "active"}
    assert dict(states) == expected
    assert "gpu=a100,&lt;b&gt;" in text
    total = mine.capacities["ram_free"]
    assert total["units_by_mb"]
    size, count = next(iter(total["units_by_mb"].items()))
    assert f"<dt>Memory free</dt><dd>{total['total_mb']} MB; {count} of {size} MB" in text
    assert "<dt>Memory free</dt><dd>77 MB</dd>" in text


def test_tree_has_zones_and_cells_with_state_and_capacity(cloud: World) -> None:
    admin, compute = signed_in(cloud.app, "admin"), cloud.here.compute
    for name in ("east", "west"):
        registry.add(compute, {"api_url": f"http://{name}", "username": "u", "password": "p"})
    broken = update(zones).where(zones.c.api_url == "http://west").values(is_active=False, last_error="refused")
    with compute.engine.begin() as conn:
        conn.execute(update(zones).values(name=zones.c.api_url, capabilities="gpu=1;room=4096,8192"))
        conn.execute(broken)
    text = admin.text("/ui/tree")
    states = dict(re.findall(r'zone <strong>http://(\w+)</strong> <span class="status status-(\w+)"', text))
    assert states == {"east": "active", "west": "failed"}
    assert text.count("gpu=1;room=4096,8192") == 2
    assert "refused" in text


def test_failed_events_of_a_lease_that_cannot_be_read_are_left_out(
    climate: Climate, clock: Clock, pages: Flask, admin: Browser
) -> None:
    bad, _ = (Person(pages, "member").lease(name)["id"] for name in ("bad", "late"))
    clock.forward(days=2)
    run_due(climate)
    spoil(climate.engine, bad)
    text = admin.text("/ui/failed-events")
    assert f"Lease {bad} has rows that this release cannot read" in text
    assert "late" in text
