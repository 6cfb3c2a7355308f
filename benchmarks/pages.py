"""Time of each page at the server, and of the calendar in Chromium until it is painted and while it scrolls."""

import html
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flask.testing import FlaskClient
from sqlalchemy import Engine, func, select, text

from api import create_app
from benchmarks import processes, scratch, seed
from benchmarks.client import Connection
from benchmarks.figures import head, line, spread, timed
from benchmarks.orders import SPEC, windows
from climate import log_setup
from climate.settings import Settings
from climate.web import garbage_collection

if TYPE_CHECKING:
    from playwright.sync_api import Page

SERVER_HOSTS, SERVER_LEASES = 1000, 100_000
HOSTS, LEASES = 2000, 50_000
LEASES_PATH = "/reservation/v1/leases"
OVER = timedelta(days=90)
"""Time in which the leases of the calendar lie: each host is in use for half of it."""

VIEWS = ("/ui/", "/ui/leases", "/ui/find", "/ui/find?hosts=2&length=6h", "/ui/calendar", "/ui/calendar/table")
REPEATED = "length=2h&every=day"
SERIES_VIEWS = (f"/ui/find?{REPEATED}", f"/ui/series/new?{REPEATED}", "/ui/series")
OWN_VIEWS = ("/ui/servers", "/ui/servers/new", "/ui/usage", "/ui/notices", "/ui/settings")
HOST_VIEWS = ("/ui/hosts", "/ui/hosts/1", "/ui/hosts/pools/reservation")
MORE_VIEWS = ("/ui/past", "/ui/power", "/ui/tree", "/ui/audit", "/ui/failed-events")
SHARE = """
    UPDATE leases SET project_id = (SELECT id FROM identity_projects WHERE name = 'admin')
    WHERE project_id = 'project-3'
"""
"""Gives the administrator's project the leases of one of the fifty seeded projects."""
HTML = {"Accept": "text/html"}
_HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)">')
FRAMES = 60
SPANS = {"week": 168, "month": 744, "3 months": 2208}

_PAINTED = """
document.addEventListener("timeline:painted", () => requestAnimationFrame(() => setTimeout(() => {
  window.painted ??= performance.now();
})));
"""
_AWAITED = """
() => new Promise((done) => {
  const look = () => { if (window.painted) done(window.painted); else requestAnimationFrame(look); };
  look();
})
"""
_SCROLLED = """
async (frames) => {
  const grid = document.querySelector(".lt-grid"), times = [];
  let last = performance.now();
  for (let frame = 0; frame < frames; frame += 1) {
    grid.scrollTop += 130;
    const now = await new Promise(requestAnimationFrame);
    times.push((now - last) / 1000);
    last = now;
  }
  return times;
}
"""
_NODES = "document.querySelectorAll('*').length"


def main(short: bool) -> None:
    log_setup.configure(level="ERROR")
    garbage_collection.tune_gc()  # as a web process does
    at_the_server(SERVER_HOSTS, SERVER_LEASES, 20 if short else 100)
    _in_chromium(5 if short else 20)


def at_the_server(hosts: int, leases: int, times: int) -> None:
    """Print the time of each page beside this many hosts and leases, `times` requests of each."""
    head(f"HTML of a page at the server: {hosts:,} hosts and {leases:,} leases")
    with scratch.place() as place:
        processes.prepare(place.settings)
        deployment = place.deployment(pool_size=1)
        engine = deployment.climate.engine
        seed.hosts(engine, hosts)
        seed.leases(engine, leases, datetime.now(UTC), timedelta(0), timedelta(days=365))
        with engine.begin() as conn:
            conn.execute(text(SHARE))
        seed.settle(engine)
        client = create_app(deployment).test_client()
        _send(client, "/ui/sign-in", "/ui/sign-in", user="admin", password=_password(place.settings), next="/ui/")
        known = {path: path for path in (*VIEWS, *SERIES_VIEWS, *OWN_VIEWS, *HOST_VIEWS, *MORE_VIEWS)}
        for name, path in {**known, **_made(client)}.items():
            _measured(engine, client, name, path, times)
        engine.dispose()


def _made(client: FlaskClient) -> dict[str, str]:
    """Create a lease with a history, a hold and a series as a user does; return their pages by the names to print.

    Seeded leases have no journal, and so no page.
    """
    search = "/ui/find?hosts=1&length=1h"
    taken = _send(client, search, "/ui/holds")
    lease = _send(client, taken, f"{taken}/take", name="measured")
    for _ in range(4):
        _send(client, lease, f"{lease}/prolong", by="1h")
    pages = {"leases": lease, "holds": _send(client, search, "/ui/holds")}
    pages["series"] = _send(client, f"/ui/series/new?{REPEATED}", "/ui/series", name="measured", make="fitting")
    shown = {f"/ui/{noun}/<id>": path for noun, path in pages.items()}
    asked = {f"/ui/{noun}/<id>/delete": f"{pages[noun]}/delete" for noun in ("leases", "series")}
    return {**shown, **asked}


def _measured(engine: Engine, client: FlaskClient, name: str, path: str, times: int) -> None:
    """Print the time of a page, and the processor time of it, which a busy machine does not lengthen."""
    _get(client, path)
    used = _processor(engine)
    line(name, spread(timed(lambda: _get(client, path), times)), "< 100 ms")
    line(f"{name}: processor time", f"{1000 * (_processor(engine) - used) / times:.0f} ms")


def _processor(engine: Engine) -> float:
    """Return the processor time so far of this process and of its one connection to the database, in seconds."""
    with engine.connect() as conn:
        backend = conn.scalar(select(func.pg_backend_pid()))
    ticks = Path(f"/proc/{backend}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[11:13]
    return time.process_time() + sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def _send(client: FlaskClient, page: str, action: str, **fields: str) -> str:
    """Send the first form of a page that goes to `action`; return where it leads."""
    form = client.get(page, headers=HTML).text.partition(f'action="{action}"')[2].partition("</form>")[0]
    given = {name: html.unescape(value) for name, value in _HIDDEN.findall(form)}
    answer = client.post(action, data={**given, **fields}, headers={"Origin": "http://localhost"})
    assert answer.status_code == 303, answer.text
    return answer.location


def _password(settings: Settings) -> str:
    return (settings.home / "admin-password").read_text(encoding="utf-8").strip()


def _get(client: FlaskClient, path: str) -> str:
    answer = client.get(path, headers=HTML)
    assert answer.status_code == 200, f"{path}: {answer.status_code}"
    return answer.text


def _in_chromium(times: int) -> None:
    head(f"The calendar in Chromium, software rendering: {HOSTS:,} hosts and {LEASES:,} leases in {OVER.days} days")
    with scratch.place() as place:
        settings = processes.with_port(place.settings)
        processes.prepare(settings)
        deployment = place.deployment(pool_size=2)
        seed.hosts(deployment.climate.engine, HOSTS)
        seed.leases(deployment.climate.engine, LEASES, datetime.now(UTC), timedelta(0), OVER)
        seed.settle(deployment.climate.engine)
        deployment.climate.engine.dispose()
        with processes.running(settings, "web"), _page(settings) as page:
            at = f"{datetime.now(UTC) + timedelta(days=7):%Y-%m-%dT00:00Z}"
            for name, span in SPANS.items():
                _calendar(page, name, f"{settings.base_url}/ui/calendar?at={at}&span={span}", times)
            _followed(page, settings, times)


def _calendar(page: "Page", name: str, address: str, times: int) -> None:
    """Print the times of one zoom of the calendar, and the processor time of the page."""
    thread = page.context.new_cdp_session(page)
    thread.send("Performance.enable", {"timeDomain": "threadTicks"})

    def used() -> float:
        """Return the processor time of scripts, layout and painting since the navigation, in seconds."""
        found = thread.send("Performance.getMetrics")["metrics"]
        return float(next(one["value"] for one in found if one["name"] == "TaskDuration"))

    _painted(page, address)
    painted, processor = [], 0.0
    for _ in range(times):
        painted.append(_painted(page, address))
        processor += used()
    line(f"{name}: until painted", spread(painted), "< 500 ms")
    line(f"{name}: until painted, processor time of the page", f"{1000 * processor / times:.0f} ms")
    before = used()
    line(f"{name}: a frame while scrolling", spread(page.evaluate(_SCROLLED, FRAMES)), "< 60 ms")
    line(f"{name}: a frame, processor time of the page", f"{1000 * (used() - before) / FRAMES:.0f} ms")
    line(f"{name}: elements of the page", page.evaluate(_NODES))


def _followed(page: "Page", settings: Settings, times: int) -> None:
    """Print the time from the answer to a create by the API until an open list of leases shows the lease."""
    connection = Connection(settings, processes.token(settings, "climate"))
    page.goto(f"{settings.base_url}/ui/leases")
    page.locator("html[data-live=stream]").wait_for(state="attached")
    shown = []
    for number, (start, end) in zip(range(times), windows(datetime.now(UTC), 1), strict=False):
        name = f"followed-{number}"
        dates = {"start_date": f"{start:%Y-%m-%d %H:%M}", "end_date": f"{end:%Y-%m-%d %H:%M}"}
        answer = connection.post(LEASES_PATH, json.dumps({"name": name, **dates, "reservations": [SPEC]}).encode())
        assert answer.status == 201, answer
        answered = time.perf_counter()
        page.get_by_role("link", name=name, exact=True).wait_for()
        shown.append(time.perf_counter() - answered)
    connection.close()
    line("a lease created by the API: until an open list shows it", spread(shown), "< 1 s")


def _painted(page: "Page", address: str) -> float:
    """Return the seconds from the navigation until the rows are painted."""
    page.goto(address)
    return float(page.evaluate(_AWAITED)) / 1000


@contextmanager
def _page(settings: Settings) -> Iterator["Page"]:
    """A page of the administrator in Chromium of the system."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("google-chrome")
    options: dict[str, Any] = {"executable_path": program, "args": ["--headless", "--no-sandbox", "--disable-gpu"]}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**options)
        page = browser.new_page(viewport={"width": 1600, "height": 950})
        page.set_default_timeout(300_000)
        page.add_init_script(_PAINTED)
        page.goto(f"{settings.base_url}/ui/sign-in")
        page.get_by_label("User name").fill("admin")
        page.get_by_label("Password").fill(_password(settings))
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("button", name="Sign out").wait_for()
        yield page
        browser.close()


if __name__ == "__main__":
    main("--short" in sys.argv)
