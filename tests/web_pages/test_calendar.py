"""The calendar in a browser: by keyboard, by pointer, live, without scripts, wide and narrow, dark and light."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import FloatRect, Locator, Page, Route, expect

from tests.system.api_client import Api
from tests.web_pages.chromium import NARROW, WIDE, Visitor
from tests.web_pages.conftest import Open
from tests.web_pages.stack import Pages

pytestmark = pytest.mark.slow

SCRIPT = "<img src=x onerror=alert(1)>"
HOST = {"resource_type": "physical:host", "min": 1, "max": 1, "hypervisor_properties": "", "resource_properties": ""}
Reserve = Callable[..., dict[str, Any]]


def at(days: int, hour: int = 0) -> datetime:
    """An hour of a day to come, in UTC."""
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return today + timedelta(days=days, hours=hour)


def calendar(day: int, span: int = 24, **more: str) -> str:
    """The address of the calendar of a day."""
    words = "".join(f"&{name}={value}" for name, value in more.items())
    return f"/ui/calendar?at={at(day):%Y-%m-%dT%H:%MZ}&span={span}{words}"


@pytest.fixture
def reserve(pages: Pages) -> Iterator[Reserve]:
    """Make leases of a cloud's user; they are deleted afterwards."""
    made: list[tuple[Api, str]] = []

    def one(name: str, day: int, begin: int, end: int, cloud: str = "climate-demo", **more: Any) -> dict[str, Any]:
        api = Api(pages.stack.home, cloud)
        dates = {"start_date": f"{at(day, begin):%Y-%m-%d %H:%M}", "end_date": f"{at(day, end):%Y-%m-%d %H:%M}"}
        answer = api.ask(
            "POST", "/v1/leases", {"name": name, **dates, "reservations": [{**HOST, **more}], "events": []}
        )
        assert answer.status_code == 201, answer.text
        lease: dict[str, Any] = answer.json()["lease"]
        made.append((api, lease["id"]))
        return lease

    yield one
    for api, lease_id in made:
        api.ask("DELETE", f"/v1/leases/{lease_id}")
        api.http.close()


def enter(person: Visitor, pages: Pages, user: str, path: str) -> Page:
    person.sign_in(user, pages.password(user))
    return person.go(path)


def box_of(one: Locator) -> FloatRect:
    """The place of an element; one that is drawn anew meanwhile has none for a moment."""
    while (box := one.bounding_box()) is None:
        one.wait_for()
    return box


def in_the_form(page: Page) -> None:
    """Answer the form of a new lease without a service, whatever it looks like."""
    page.route("**/ui/find?*", lambda route: route.fulfill(body="<title>form</title>", content_type="text/html"))


@pytest.mark.parametrize("size", [WIDE, NARROW])
@pytest.mark.parametrize("dark", [True, False])
def test_calendar_is_accessible_and_hides_other_projects(
    open_browser: Open, pages: Pages, reserve: Reserve, size: tuple[int, int], dark: bool
) -> None:
    reserve(SCRIPT, 40, 2, 8)
    reserve("hidden-name", 40, 2, 9, cloud="climate")
    with open_browser(size=size, dark=dark) as demo:
        page = enter(demo, pages, "demo", calendar(40))
        page.get_by_role("button", name=f"lease {SCRIPT}").wait_for()
        page.get_by_role("button", name=": busy").wait_for()
        assert "hidden-name" not in page.content()
        demo.check_accessible()
        demo.check_no_sideways_scrolling()


def test_end_is_changed_by_keyboard_alone(open_browser: Open, pages: Pages, reserve: Reserve) -> None:
    lease = reserve("by-keyboard", 41, 2, 6)
    with open_browser() as demo:
        page = enter(demo, pages, "demo", calendar(41, group="zone"))
        bar = page.get_by_role("button", name="lease by-keyboard")
        bar.wait_for()
        page.locator(".lt-grid button[tabindex='0']").focus()
        keys = page.keyboard
        keys.press("Control+Home")
        for _ in range(6):  # at most: a group and four hosts
            if page.locator(".lt-row:focus-within", has=bar).count():
                break
            keys.press("ArrowDown")
        expect(page.locator(".lt-row:focus-within", has=bar)).to_have_count(1)
        keys.press("Home")
        keys.press("ArrowRight")
        expect(bar).to_be_focused()
        keys.press("Shift+ArrowRight")
        keys.press("Shift+ArrowRight")
        expect(page.locator(".lt-status")).to_contain_text("fits")
        keys.press("Enter")
        expect(page.get_by_role("button", name="Apply")).to_be_focused()
        keys.press("Enter")
        expect(page.locator(".lt-status")).to_contain_text("now ends")
        shown = Api(pages.stack.home, "climate-demo").read(f"/v1/leases/{lease['id']}")["lease"]
        assert shown["end_date"] == f"{at(41, 7):%Y-%m-%dT%H:%M:%S.000000}", "two steps of half an hour"


def test_edge_is_dragged_and_a_clash_is_told(open_browser: Open, pages: Pages, reserve: Reserve) -> None:
    lease = reserve("dragged", 42, 2, 6, min=4, max=4)
    reserve("in the way", 42, 12, 14, cloud="climate", min=4, max=4)
    with open_browser() as demo:
        page = enter(demo, pages, "demo", calendar(42))
        bar = page.get_by_role("button", name="lease dragged").first
        box = box_of(bar)
        track = page.locator(".lt-axis .lt-track").bounding_box()
        assert box
        assert track
        hour, right, middle = track["width"] / 24, box["x"] + box["width"] - 3, box["y"] + box["height"] / 2
        page.mouse.move(right, middle)
        page.mouse.down()
        page.mouse.move(right + 7 * hour, middle, steps=4)
        expect(page.locator(".lt-mark")).to_have_attribute("data-words", "clashes")
        expect(page.locator(".lt-status")).to_contain_text("clashes: ")
        page.mouse.move(right + 2 * hour, middle, steps=4)
        expect(page.locator(".lt-mark")).to_have_attribute("data-words", "fits")
        page.mouse.up()
        page.get_by_role("button", name="Cancel").click()
        shown = Api(pages.stack.home, "climate-demo").read(f"/v1/leases/{lease['id']}")["lease"]
        assert shown["end_date"] == lease["end_date"]


def test_start_is_dragged_and_changed_by_keyboard(open_browser: Open, pages: Pages, reserve: Reserve) -> None:
    lease = reserve("to come", 48, 6, 10, min=4, max=4)
    reserve("before it", 48, 1, 3, cloud="climate", min=4, max=4)
    with open_browser() as demo:
        page = enter(demo, pages, "demo", calendar(48))
        bar = page.get_by_role("button", name="lease to come").first
        box, track = box_of(bar), page.locator(".lt-axis .lt-track").bounding_box()
        assert box
        assert track
        hour, left, middle = track["width"] / 24, box["x"] + 2, box["y"] + box["height"] / 2
        page.mouse.move(left, middle)
        page.mouse.down()
        page.mouse.move(left - 4 * hour, middle, steps=4)
        expect(page.locator(".lt-mark")).to_have_attribute("data-words", "clashes")
        page.mouse.move(left - 2 * hour, middle, steps=4)
        expect(page.locator(".lt-mark")).to_have_attribute("data-words", "fits")
        page.mouse.up()
        page.get_by_role("button", name="Cancel").click()
        bar.focus()
        for _ in range(2):
            page.keyboard.press("Control+Shift+ArrowLeft")
        expect(page.locator(".lt-status")).to_contain_text("fits")
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Apply")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator(".lt-status")).to_contain_text("now starts")
        shown = Api(pages.stack.home, "climate-demo").read(f"/v1/leases/{lease['id']}")["lease"]
        assert (shown["start_date"], shown["end_date"]) == (f"{at(48, 5):%Y-%m-%dT%H:%M:%S.000000}", lease["end_date"])


def test_free_time_opens_the_form_by_pointer_and_by_keyboard(open_browser: Open, pages: Pages) -> None:
    with open_browser() as demo:
        page = enter(demo, pages, "demo", calendar(43))
        in_the_form(page)
        gap = page.get_by_role("button", name="gpu-1: free").first
        gap.focus()
        page.keyboard.press("Shift+ArrowRight")
        page.keyboard.press("Shift+ArrowRight")
        page.keyboard.press("Enter")
        page.wait_for_url("**/ui/find?hosts=1&length=1h&*gpu-1*")
        page.go_back()
        box = box_of(page.get_by_role("button", name="gpu-2: free").first)
        assert box
        y, x = box["y"] + box["height"] / 2, box["x"] + box["width"] / 3
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + 200, y, steps=4)
        page.mouse.up()
        page.wait_for_url("**/ui/find?hosts=1&length=*gpu-2*")


def test_groups_fold_and_hosts_are_searched(open_browser: Open, pages: Pages) -> None:
    with open_browser() as demo:
        page = enter(demo, pages, "demo", calendar(44, group="zone"))
        fold = page.locator(".lt-fold").first
        expect(fold).to_have_attribute("aria-expanded", "true")
        fold.press("Enter")
        expect(page.locator(".lt-fold").first).to_have_attribute("aria-expanded", "false")
        expect(page.get_by_role("rowheader", name="gpu-1")).to_have_count(0)
        page.get_by_label("Search").fill("gpu-3")
        page.locator(".lt-fold").first.press("Enter")
        expect(page.locator(".lt-name")).to_have_text(["gpu-3"])
        assert "search=gpu-3" in page.url
        page.get_by_label("Zoom").select_option("2208")
        expect(page.locator(".lt-name")).to_have_text(["gpu-3"])


@pytest.mark.campaign
def test_changes_by_others_are_seen_live_also_after_a_restart_of_everything(
    open_browser: Open, pages: Pages, reserve: Reserve
) -> None:
    with open_browser() as demo:
        page = enter(demo, pages, "demo", calendar(45))
        expect(page.locator("html")).to_have_attribute("data-live", "stream")
        reserve("made elsewhere", 45, 2, 6)
        page.get_by_role("button", name="lease made elsewhere").wait_for()
        assert pages.stack.stop() == 0
        pages.stack.start()
        reserve("after the restart", 45, 8, 12)
        page.get_by_role("button", name="lease after the restart").wait_for()
        demo.complaints[:] = [one for one in demo.complaints if "Failed to load resource" not in one]


def test_page_looks_again_where_no_stream_comes_through(open_browser: Open, pages: Pages, reserve: Reserve) -> None:
    with open_browser() as demo:
        demo.page.route("**/ui/events*", lambda route: route.abort())
        page = enter(demo, pages, "demo", calendar(49))
        expect(page.locator("html")).to_have_attribute("data-live", "polling")
        reserve("by polling", 49, 2, 6)
        page.get_by_role("button", name="lease by polling").wait_for()
        demo.complaints[:] = [one for one in demo.complaints if "Failed to load resource" not in one]


def test_table_needs_no_scripts(open_browser: Open, pages: Pages, reserve: Reserve) -> None:
    reserve(SCRIPT, 46, 2, 8)
    with open_browser(scripts=False) as demo:
        page = enter(demo, pages, "demo", calendar(46))
        page.get_by_role("link", name="The same data as a table").click()
        page.get_by_role("cell", name=f"lease: {SCRIPT}").wait_for()


def test_kiosk_shows_nothing_else(open_browser: Open, pages: Pages) -> None:
    with open_browser() as demo:
        page = enter(demo, pages, "demo", calendar(47, kiosk="1"))
        page.locator(".lt-name").first.wait_for()
        expect(page.get_by_role("navigation")).to_have_count(0)
        expect(page.locator(".lt-bar")).to_be_hidden()


@pytest.mark.parametrize("zoom", ["6 hours", "12 hours", "1 day", "3 days", "1 week", "2 weeks", "1 month", "3 months"])
def test_each_zoom_has_its_times_leases_and_free_counts(
    open_browser: Open, pages: Pages, reserve: Reserve, zoom: str
) -> None:
    reserve("seen", 50, 0, 24, min=4, max=4)
    with open_browser() as demo:
        page = enter(demo, pages, "demo", calendar(50))
        page.get_by_label("Zoom").select_option(label=zoom)
        bar = page.get_by_role("button", name="lease seen").first
        bar.wait_for()
        expect(page.locator(".lt-tick").nth(2)).to_be_visible()
        expect(page.locator(".lt-fill").first).to_be_attached()
        track, box = page.locator(".lt-axis .lt-track").bounding_box(), box_of(bar)
        assert track
        share = min(1.0, 24 / int(page.get_by_label("Zoom").input_value()))
        assert abs(box["width"] / track["width"] - share) < 0.05, "a day in UTC, of days in Berlin"


@dataclass
class ManyHosts:
    """Answers of the service about 2,000 hosts without leases; `asked` has the query of each."""

    asked: list[dict[str, str]] = field(default_factory=list)

    def answer(self, route: Route) -> None:
        query = {name: values[0] for name, values in parse_qs(urlsplit(route.request.url).query).items()}
        self.asked.append(query)
        first, limit = int(query.get("cursor", 0)), int(query["limit"])
        rows = [{"host_id": str(n), "name": f"node-{n}", "spans": []} for n in range(first, min(2000, first + limit))]
        free = {"hosts": 2000, "points": [{"time": query["from"].rstrip("Z"), "free": 2000}]}
        shown = {"first": first, "total": 2000, "rows": rows, "free": free}
        route.fulfill(json={"timeline": {**shown, "groups": [{"name": "reservation", "rows": 2000}]}})

    def first_rows(self) -> set[int]:
        return {int(query["cursor"]) for query in self.asked if "cursor" in query}


def test_only_what_is_seen_is_drawn_and_fetched(open_browser: Open, pages: Pages) -> None:
    many = ManyHosts()
    with open_browser() as demo:
        demo.page.route("**/ui/calendar/data?*", many.answer)
        page = enter(demo, pages, "demo", calendar(51))
        page.get_by_role("rowheader", name="node-0", exact=True).wait_for()
        assert page.locator(".lt-row").count() < 60
        page.locator(".lt-grid").evaluate("grid => { grid.scrollTop = grid.scrollHeight; }")
        page.get_by_role("rowheader", name="node-1999", exact=True).wait_for()
        expect(page.get_by_role("rowheader", name="node-0", exact=True)).to_have_count(0)
        assert page.locator(".lt-row").count() < 60
        assert len(many.first_rows()) < 8
        for _ in range(4):
            page.get_by_role("button", name="Later").click()
        page.get_by_role("rowheader", name="node-1999", exact=True).wait_for()
        spans = {datetime.fromisoformat(one["to"]) - datetime.fromisoformat(one["from"]) for one in many.asked}
        assert spans == {timedelta(days=3)}, "the day that is shown, and one before and after it"


def test_print_has_rows_that_were_not_seen(open_browser: Open, pages: Pages) -> None:
    many = ManyHosts()
    with open_browser(dark=True) as demo:
        demo.page.route("**/ui/calendar/data?*", many.answer)
        page = enter(demo, pages, "demo", calendar(52))
        page.get_by_role("rowheader", name="node-0", exact=True).wait_for()
        page.evaluate("window.print = () => { dispatchEvent(new Event('beforeprint')); document.title = 'printed'; }")
        page.get_by_role("button", name="Print").click()
        page.wait_for_function("document.title === 'printed'")
        assert page.locator(".lt-name").all_inner_texts() == [f"node-{n}" for n in range(399)]
        page.emulate_media(media="print")
        expect(page.locator(".lt-bar")).to_be_hidden()
        expect(page.locator(".lt-row").nth(3)).to_have_css("background-color", "rgb(255, 255, 255)")
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        page.emulate_media(media="screen")
        expect(page.locator(".lt-row")).not_to_have_count(400)
