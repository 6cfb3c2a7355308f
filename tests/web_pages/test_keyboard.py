"""By keyboard alone: find, hold, take, boot, prolong, delete."""

import pytest
from playwright.sync_api import Locator, Page

from tests.web_pages.conftest import Open
from tests.web_pages.stack import Pages

pytestmark = pytest.mark.slow

MOST_STEPS = 80


def reach(page: Page, wanted: Locator, key: str = "Tab") -> None:
    """Press Tab, or another key, until the element has the focus."""
    wanted.first.wait_for()
    for _ in range(MOST_STEPS):
        if wanted.first.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{wanted} is not reached by {key}")


def press(page: Page, name: str, role: str = "button") -> None:
    """Reach a button or link by Tab, and press Enter."""
    reach(page, page.get_by_role(role, name=name, exact=True))  # type: ignore[arg-type]
    page.keyboard.press("Enter")


def test_lease_from_the_search_to_its_end(open_browser: Open, pages: Pages) -> None:
    with open_browser() as demo:
        demo.sign_in("demo", pages.password("demo"))
        page, keys = demo.page, demo.page.keyboard
        reach(page, page.get_by_label("Find hosts"))
        keys.type("1 host gpu_count>1 2h now")
        keys.press("Enter")
        press(page, "Hold it")
        page.get_by_role("heading", name="Held for you").wait_for()
        reach(page, page.get_by_label("Name of the lease"))
        keys.type("by-keyboard")
        keys.press("Enter")
        page.get_by_text("by-keyboard is yours.").wait_for()
        pages.climate("lease", "wait", "by-keyboard")
        page.reload()
        press(page, "Boot a server", "link")
        reach(page, page.get_by_label("Name", exact=True))
        keys.type("node-k")
        press(page, "Boot")
        page.get_by_role("heading", name="node-k").wait_for()
        press(page, "Home", "link")
        press(page, "Prolong by-keyboard by 1 hour")
        page.get_by_text("by-keyboard was prolonged.").wait_for()
        press(page, "by-keyboard", "link")
        press(page, "Delete", "link")
        press(page, "Delete the lease")
        page.get_by_text("by-keyboard is deleted").wait_for()
