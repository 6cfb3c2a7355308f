"""Every view in Chromium for each role: accessible, readable on a phone and a wall, dark and light, without scripts."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

import pytest

from tests.campaign import FULL
from tests.web_pages.chromium import MEDIUM, NARROW, WIDE, Visitor
from tests.web_pages.conftest import Open
from tests.web_pages.stack import READER, Pages

pytestmark = pytest.mark.slow

ADMINISTRATORS: Mapping[str, str] = {
    "board": "/ui/hosts",
    "host": "/ui/hosts/1",
    "pool": "/ui/hosts/pools/reservation",
    "past": "/ui/past",
    "power": "/ui/power",
    "tree": "/ui/tree",
    "audit": "/ui/audit",
    "failed events": "/ui/failed-events",
    "given up": "/ui/notices?failed=1&all=1",
    "all leases": "/ui/leases?all=1",
}
"""Paths of the pages for administrators."""
CHANGES = frozenset(
    {"find", "nothing fits", "boot", "dates", "give hosts", "delete lease", "delete series", "delete server"}
)
"""Views that readers may not see."""
MISSING = frozenset({"error"})


@dataclass(frozen=True)
class Furnished:
    """Paths of pages with something on them."""

    paths: Mapping[str, str]


@pytest.fixture(scope="module")
def furnished(pages: Pages) -> Iterator[Furnished]:
    """Leases of each kind, servers, a hold and a reader; all but the reader are gone in the end."""
    pages.add_reader()
    made = pages.furnish()
    yield Furnished({**made, **ADMINISTRATORS, "why there": f"{made['server']}/explain"})
    pages.clear()


@dataclass(frozen=True)
class Look:
    """A window, its colours, and whether scripts run in it."""

    size: tuple[int, int]
    dark: bool = False
    scripts: bool = True


LOOKS = {
    "wide light": Look(WIDE),
    "medium light": Look(MEDIUM),
    "wide dark": Look(WIDE, dark=True),
    "narrow light": Look(NARROW),
    "narrow dark": Look(NARROW, dark=True),
    "wide without scripts": Look(WIDE, scripts=False),
    "narrow without scripts": Look(NARROW, dark=True, scripts=False),
}
CHECKED = {("admin", "wide light"), ("member", "wide dark"), ("reader", "narrow light"), ("member", "narrow dark")}
"""Roles and looks for which axe looks at every view; it takes a second for each. The campaign has it look at all."""
SHARE = CHECKED | {("member", "medium light"), ("admin", "wide without scripts"), ("reader", "narrow without scripts")}
"""Roles and looks of `make test-slow`: each look, and each role, at least once. The campaign takes all."""


def status(role: str, view: str) -> int:
    """Return the status of a view for a role of project demo, or for the administrator."""
    if view in MISSING:
        return 404
    only_for_administrators = view in ADMINISTRATORS and view not in ("all leases", "given up")
    if role != "admin" and (only_for_administrators or view == "why there"):
        return 403
    return 403 if role == "reader" and view in CHANGES else 200


def enter(person: Visitor, pages: Pages, role: str) -> None:
    user = {"admin": "admin", "member": "demo", "reader": "reader"}[role]
    person.sign_in(user, READER if role == "reader" else pages.password(user))


@pytest.mark.parametrize(
    ("role", "look"),
    [
        pytest.param(role, look, marks=[] if (role, look) in SHARE else pytest.mark.campaign)
        for role in ("admin", "member", "reader")
        for look in LOOKS
    ],
)
def test_views_are_those_of_the_role_and_accessible(
    open_browser: Open, pages: Pages, furnished: Furnished, role: str, look: str
) -> None:
    with open_browser(**asdict(LOOKS[look])) as person:
        enter(person, pages, role)
        for view, path in furnished.paths.items():
            answer = person.page.goto(person.url + path)
            assert answer
            assert answer.status == status(role, view), f"{view} for {role}: {answer.status}"
            assert person.page.locator("h1").count() == 1, view
            person.check_no_sideways_scrolling()
            if LOOKS[look].scripts and (FULL or (role, look) in CHECKED):
                person.check_accessible()
        person.complaints[:] = [one for one in person.complaints if "status of 403" not in one]


@pytest.mark.parametrize("look", LOOKS)
def test_signed_out_nothing_is_shown(open_browser: Open, furnished: Furnished, look: str) -> None:
    with open_browser(**asdict(LOOKS[look])) as nobody:
        for view, path in furnished.paths.items():
            answer = nobody.page.request.get(nobody.url + path, headers={"Accept": "text/html"}, max_redirects=0)
            assert answer.status == (404 if view in MISSING else 303), view
            assert view in MISSING or answer.headers["location"].startswith("/ui/sign-in?next=/ui/"), view
        nobody.go(furnished.paths["lease"])
        nobody.page.get_by_label("Password").wait_for()
        nobody.check_no_sideways_scrolling()
        if LOOKS[look].scripts:
            nobody.check_accessible()


def test_slider_shows_the_lease_as_it_was(open_browser: Open, pages: Pages, furnished: Furnished) -> None:
    with open_browser() as demo:
        enter(demo, pages, "member")
        page = demo.go(furnished.paths["lease"])
        slider = page.get_by_label("History", exact=True)
        slider.focus()
        page.keyboard.press("Home")
        page.get_by_text("The lease as it was at").wait_for()
        assert page.url.endswith("?step=1")
        page.keyboard.press("End")
        page.get_by_text("Running: what was reserved is yours").wait_for()
        page.wait_for_url(lambda url: "?" not in url)
