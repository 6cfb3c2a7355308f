"""Pictures of the web pages for the documentation: `make screenshots` writes them to docs/images.

A climate with the demo cloud is started for them, and Chromium of the system takes them.
"""

import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, sync_playwright

from tests.web_pages.chromium import ARGUMENTS, program, visitor
from tests.web_pages.stack import Pages, running

FOLDER = Path(__file__).parent.parent / "docs" / "images"
SIZE, PHONE = (1200, 760), (375, 760)
SIGNED_OUT = "sign in"
OF_MEMBERS = (
    *("home", "leases", "find", "nothing fits", "hold", "lease", "as it was", "give hosts", "delete lease"),
    *("waiting", "preemptible", "all series", "series", "delete series", "dates"),
    *("calendar", "month", "three months", "kiosk", "table", "servers", "server", "delete server", "asleep", "boot"),
    *("usage", "notices", "settings", "error"),
)
OF_ADMINISTRATORS = {
    "board": "/ui/hosts",
    "host": "/ui/hosts/1",
    "pool": "/ui/hosts/pools/reservation",
    "failed events": "/ui/failed-events",
    "given up": "/ui/notices?failed=1&all=1",
    "all leases": "/ui/leases?all=1",
    "past": "/ui/past",
    "power": "/ui/power",
    "tree": "/ui/tree",
    "audit": "/ui/audit",
}
DARK = frozenset({"find", "board", "boot"})
ON_A_PHONE = ("home", "lease")


def main() -> int:
    """Take the pictures."""
    FOLDER.mkdir(exist_ok=True)
    with TemporaryDirectory(prefix="climate-screenshots-") as home, running(Path(home)) as pages:
        paths = {**pages.furnish(), **OF_ADMINISTRATORS}
        paths["past"] += f"?at={datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        paths["explain"] = f"{paths['server']}/explain"
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=program(), args=ARGUMENTS)
            paths[SIGNED_OUT] = "/ui/sign-in"
            for view in (SIGNED_OUT, *OF_MEMBERS, *OF_ADMINISTRATORS, "explain"):
                _take(chromium, pages, view, paths[view], SIZE)
            for view in ON_A_PHONE:
                _take(chromium, pages, view, paths[view], PHONE)
            _take_move(chromium, pages)
            chromium.close()
    return 0


def _take(chromium: Browser, pages: Pages, view: str, path: str, size: tuple[int, int]) -> None:
    """Take the picture of a view once its times and the calendar are written."""
    user = "demo" if view in OF_MEMBERS else "admin"
    name = view.replace(" ", "-") + ("" if size == SIZE else "-phone")
    with visitor(chromium, pages.url, size=size, dark=view in DARK) as somebody:
        if view != SIGNED_OUT:
            somebody.sign_in(user, pages.password(user))
        page = somebody.go(path, 404 if view == "error" else 200)
        if page.locator("lease-timeline").count():
            page.locator(".lt-span").first.wait_for()
            page.locator(".lt-count").first.wait_for(state="attached")
        elif page.locator("time").count():
            page.locator("time[data-done]").first.wait_for(state="attached")
        page.screenshot(path=str(FOLDER / f"{name}.png"))


def _take_move(chromium: Browser, pages: Pages) -> None:
    """Take the picture of the preview of a move of all hosts of the pool, some of which leases have."""
    with visitor(chromium, pages.url, size=SIZE) as admin:
        admin.sign_in("admin", pages.password("admin"))
        admin.preview_move("failed").screenshot(path=str(FOLDER / "move.png"))


if __name__ == "__main__":
    sys.exit(main())
