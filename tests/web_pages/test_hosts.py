"""The board of pools and the pages of administrators in a browser."""

import pytest
from playwright.sync_api import expect

from tests.system.api_client import Api
from tests.web_pages.chromium import NARROW, WIDE
from tests.web_pages.conftest import Open
from tests.web_pages.stack import Pages
from tests.web_pages.test_keyboard import press, reach

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("scripts", [True, False])
def test_host_moves_through_pools_by_keyboard_alone(open_browser: Open, pages: Pages, scripts: bool) -> None:
    with open_browser(scripts=scripts) as admin:
        admin.sign_in("admin", pages.password("admin"))
        keys = admin.page.keyboard
        for pool in ("multi-tenant", "reservation"):
            page = admin.go("/ui/hosts")
            reach(page, page.get_by_label("Choose gpu-2"))
            keys.press("Space")
            reach(page, page.get_by_label("Move chosen hosts to"), "Shift+Tab")
            keys.type(pool)
            reach(page, page.get_by_label("Reason"))
            keys.type("new disks")
            keys.press("Enter")
            page.get_by_text("No lease is hit.").wait_for()
            press(page, "Move")
            page.get_by_text(f"Moved to {pool}: gpu-2.").wait_for()
    shown = Api(pages.stack.home, "climate").read("/v1/os-hosts/2/health")["health"]
    assert shown["pool"] == "reservation"


def test_dragging_a_host_opens_the_preview(open_browser: Open, pages: Pages) -> None:
    with open_browser() as admin:
        admin.sign_in("admin", pages.password("admin"))
        page = admin.go("/ui/hosts")
        card = page.locator(".host-card", has_text="gpu-1")
        card.drag_to(page.locator('[data-pool="failed"]'))
        expect(page.get_by_role("heading", name="Move to failed")).to_be_visible()
        expect(page.get_by_role("rowheader", name="gpu-1")).to_be_visible()


@pytest.mark.parametrize(
    ("size", "dark", "scripts"), [(WIDE, False, True), (NARROW, True, True), (NARROW, False, False)]
)
def test_preview_of_a_move_is_accessible(
    open_browser: Open, pages: Pages, size: tuple[int, int], dark: bool, scripts: bool
) -> None:
    with open_browser(size=size, dark=dark, scripts=scripts) as admin:
        admin.sign_in("admin", pages.password("admin"))
        admin.preview_move("failed", "gpu-1")
        admin.check_no_sideways_scrolling()
        if scripts:
            admin.check_accessible()
