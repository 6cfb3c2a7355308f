"""Sign-in in a browser: by keyboard, without scripts, wide and narrow, light and dark."""

import pytest
from playwright.sync_api import expect

from tests.web_pages.chromium import NARROW, WIDE
from tests.web_pages.conftest import Open
from tests.web_pages.stack import Pages

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("scripts", [True, False])
def test_user_signs_in_and_out_by_keyboard(open_browser: Open, pages: Pages, scripts: bool) -> None:
    with open_browser(scripts=scripts) as demo:
        demo.go("/")
        expect(demo.page.get_by_label("User name")).to_be_focused()
        keys = demo.page.keyboard
        keys.type("demo")
        keys.press("Tab")
        keys.type(pages.password("demo"))
        keys.press("Enter")
        demo.page.get_by_role("button", name="Sign out").wait_for()
        demo.page.get_by_role("button", name="Sign out").press("Enter")
        demo.page.get_by_text("You are signed out").wait_for()


@pytest.mark.parametrize("size", [WIDE, NARROW])
@pytest.mark.parametrize("dark", [True, False])
def test_form_is_accessible(open_browser: Open, size: tuple[int, int], dark: bool) -> None:
    with open_browser(size=size, dark=dark) as nobody:
        nobody.go("/ui/sign-in")
        nobody.check_accessible()
        nobody.check_no_sideways_scrolling()
