"""Every view in Chromium: accessible, without violations, and readable on a phone and a wall; for each role."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.web_pages.chromium import NARROW, WIDE
from tests.web_pages.conftest import Open
from tests.web_pages.stack import Pages

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Furnished:
    """Paths of pages with something on them."""

    paths: dict[str, str]


@pytest.fixture(scope="module")
def furnished(pages: Pages) -> Iterator[Furnished]:
    """A lease with a server, a sleeping server, a hold; all are gone in the end."""
    made = pages.furnish()
    yield Furnished(made)
    pages.clear()


VIEWS = (
    "home",
    "leases",
    "lease",
    "delete lease",
    "find",
    "nothing fits",
    "hold",
    "servers",
    "server",
    "asleep",
    "boot",
)
VIEWS = (*VIEWS, "delete server", "usage", "notices", "settings", "error")


@pytest.mark.parametrize(("size", "dark"), [(WIDE, False), (NARROW, True)], ids=["wide light", "narrow dark"])
def test_views_of_a_member_are_accessible(
    open_browser: Open, pages: Pages, furnished: Furnished, size: tuple[int, int], dark: bool
) -> None:
    with open_browser(size=size, dark=dark) as demo:
        demo.sign_in("demo", pages.password("demo"))
        for view in VIEWS:
            demo.page.goto(pages.url + furnished.paths[view])
            demo.check_accessible()
            demo.check_no_sideways_scrolling()


def test_views_of_an_administrator_are_accessible(open_browser: Open, pages: Pages, furnished: Furnished) -> None:
    with open_browser(dark=True) as admin:
        admin.sign_in("admin", pages.password("admin"))
        for path in ("/ui/", "/ui/leases?all=1", f"{furnished.paths['server']}/explain", furnished.paths["lease"]):
            admin.go(path)
            admin.check_accessible()
            admin.check_no_sideways_scrolling()


def test_views_work_without_scripts(open_browser: Open, pages: Pages, furnished: Furnished) -> None:
    with open_browser(scripts=False) as demo:
        demo.sign_in("demo", pages.password("demo"))
        for view in VIEWS:
            page = demo.page
            page.goto(pages.url + furnished.paths[view])
            assert page.locator("h1").count() == 1
        assert "UTC" in page.goto(pages.url + furnished.paths["lease"]).text()  # type: ignore[union-attr]
