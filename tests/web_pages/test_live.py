"""Open pages follow changes that are made elsewhere, and keep what somebody is doing on them."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, Request, Route, expect

from tests.system.api_client import Api
from tests.web_pages.conftest import Open
from tests.web_pages.stack import Pages

pytestmark = pytest.mark.slow

TELLS_ALL = """
window.toldAll = 0;
document.addEventListener("climate:all", () => { toldAll += 1; });
"""
SPECS = ("--hosts", "1", "--start", "+6d", "--for", "2h")


@pytest.fixture
def lease(pages: Pages) -> Iterator[str]:
    """The id of a lease to come; all leases are gone in the end."""
    pages.climate("lease", "create", "followed", *SPECS)
    yield pages.id_of("lease", "followed")
    pages.clear()


def is_live(page: Page) -> None:
    expect(page.locator("html")).to_have_attribute("data-live", "stream")


@pytest.mark.parametrize("path", ["/ui/", "/ui/leases", "/ui/calendar/table?span=2208"])
def test_lists_show_a_lease_that_is_made_by_a_command(open_browser: Open, pages: Pages, lease: str, path: str) -> None:
    with open_browser() as demo:
        demo.sign_in("demo", pages.password("demo"))
        page = demo.go(path)
        is_live(page)
        page.get_by_role("link", name="followed").first.focus()
        pages.climate("lease", "create", "made-elsewhere", *SPECS)
        page.get_by_role("link", name="made-elsewhere").first.wait_for()
        expect(page.get_by_role("link", name="followed").first).to_be_focused()


def test_nothing_is_fetched_twice(open_browser: Open, pages: Pages, lease: str) -> None:
    with open_browser() as demo:
        demo.sign_in("demo", pages.password("demo"))
        demo.page.add_init_script(TELLS_ALL)
        fetched: list[str] = []
        demo.page.on("request", lambda one: fetched.append(one.url) if "hx-request" in one.headers else None)
        page = demo.go("/ui/leases")
        is_live(page)
        assert page.evaluate("toldAll") == 0
        pages.climate("lease", "set", lease, "--name", "renamed-elsewhere")
        page.get_by_role("link", name="renamed-elsewhere").wait_for()
        assert len(fetched) == 1, fetched


def test_change_between_the_page_and_its_stream_is_shown(open_browser: Open, pages: Pages, lease: str) -> None:
    with open_browser() as demo:
        demo.sign_in("demo", pages.password("demo"))
        held: list[Route] = []
        demo.page.route("**/ui/events?*", lambda route: held.append(route))
        with demo.page.expect_request("**/ui/events?*"):
            page = demo.go("/ui/leases")
        pages.climate("lease", "create", "in-between", *SPECS)
        expect(page.get_by_role("link", name="in-between")).to_have_count(0)
        held[0].continue_()
        page.get_by_role("link", name="in-between").wait_for()


def test_page_of_a_lease_shows_a_change_and_keeps_what_is_typed(open_browser: Open, pages: Pages, lease: str) -> None:
    with open_browser() as demo:
        demo.sign_in("demo", pages.password("demo"))
        page = demo.go(f"/ui/leases/{lease}")
        is_live(page)
        name = page.get_by_label("Name", exact=True)
        name.fill("half a na")
        pages.climate("lease", "extend", "followed", "1h")
        page.locator(".history li").nth(1).wait_for()
        expect(name).to_have_value("half a na")
        expect(name).to_be_focused()
        slider = page.get_by_label("History", exact=True)
        slider.press("Home")
        page.get_by_text("The lease as it was at").wait_for()
        pages.climate("lease", "extend", "followed", "1h")
        slider.press("End")
        page.locator(".history li").nth(2).wait_for()


def test_change_that_arrives_late_leaves_the_past_alone(open_browser: Open, pages: Pages, lease: str) -> None:
    with open_browser() as demo:
        demo.sign_in("demo", pages.password("demo"))
        page = demo.go(f"/ui/leases/{lease}")
        is_live(page)
        pages.climate("lease", "extend", "followed", "1h")
        page.locator(".history li").nth(1).wait_for()
        held: list[Route] = []

        def hold(route: Route) -> None:
            if is_refresh(route.request):
                held.append(route)
            else:
                route.continue_()

        page.route(f"**/ui/leases/{lease}*", hold)
        with page.expect_request(is_refresh):
            pages.climate("lease", "extend", "followed", "1h")
        page.get_by_label("History", exact=True).press("Home")
        page.get_by_text("The lease as it was at").wait_for()
        with page.expect_event("requestfinished", is_refresh):
            held[0].continue_()
        page.evaluate("() => new Promise(requestAnimationFrame)")
        expect(page.get_by_text("The lease as it was at")).to_be_visible()


def is_refresh(request: Request) -> bool:
    """Return whether htmx fetches a part of the page."""
    return "hx-request" in request.headers


def test_page_of_a_lease_outlasts_a_restart_of_everything(open_browser: Open, pages: Pages, lease: str) -> None:
    with open_browser() as demo:
        demo.sign_in("demo", pages.password("demo"))
        page = demo.go(f"/ui/leases/{lease}")
        is_live(page)
        assert pages.stack.stop() == 0
        pages.stack.start()
        pages.climate("lease", "extend", "followed", "1h")
        page.locator(".history li").nth(1).wait_for()
        demo.complaints[:] = [one for one in demo.complaints if "Failed to" not in one]


def test_servers_that_are_booted_and_deleted_by_commands_are_shown(open_browser: Open, pages: Pages) -> None:
    with open_browser() as demo:
        demo.sign_in("demo", pages.password("demo"))
        page = demo.go("/ui/servers")
        pages.climate("boot", "elsewhere", "--flavor", "m1.tiny", "--image", "demo")
        page.get_by_role("link", name="elsewhere").click()
        page.get_by_text("Running.").wait_for()
        page.go_back()
        pages.climate("server", "delete", "elsewhere")
        expect(page.get_by_role("link", name="elsewhere")).to_have_count(0)


def test_page_of_a_host_shows_its_new_pool(open_browser: Open, pages: Pages) -> None:
    api = Api(pages.stack.home, "climate")
    with open_browser() as admin:
        admin.sign_in("admin", pages.password("admin"))
        page = admin.go("/ui/hosts/1")
        is_live(page)
        for pool in ("multi-tenant", "reservation"):
            answer = api.ask("POST", f"/v1/pools/{pool}/moves", {"hosts": ["1"], "reason": f"to {pool} elsewhere"})
            assert answer.status_code == 200, answer.text
            expect(page.locator("#state-now")).to_contain_text(f"to {pool} elsewhere")
            expect(page.locator("#changes")).to_contain_text(f"to {pool} elsewhere")
