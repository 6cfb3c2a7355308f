"""Every text that a page shows, with markup in it: the page has no element and no attribute of that markup."""

from html.parser import HTMLParser

import pytest
from flask import Flask
from sqlalchemy import text, update

from climate.compute.store.tables.servers import flavors
from climate.compute.store.tables.zones import zones
from climate.compute.zones import registry
from climate.context import Climate
from climate.domain.notifications import Notice
from climate.identity import projects_and_users as accounts
from climate.identity import read_operations, roles
from climate.identity.audit_trail import SETUP
from climate.identity.store.assignments import Holder
from climate.service.notifications import delivery
from tests.api.compute.api_clients import World
from tests.api.reservation.api_clients import HOST, Person, run_due
from tests.api.web.page_clients import Browser, signed_in
from tests.conftest import MEMBER, Clock
from tests.identity.identity_factory import Place

HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>{{ 7007*7007 }}"
MARK = "alert(1)"


class Elements(HTMLParser):
    """Collects what could run a script."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.texts = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        if (tag == "script" and not known.get("src")) or known.get("src") == "x":
            self.found.append(tag)
        self.found += [f"{tag} {name}" for name in known if name.startswith("on")]
        self.found += [f"{tag} {value}" for value in known.values() if (value or "").startswith("javascript:")]

    def handle_data(self, data: str) -> None:
        self.texts += data


def harmless(browser: Browser, path: str, status: int = 200, *, shows: bool = True) -> None:
    """Fail if a page has an element of the text, or does not show it though it should."""
    parser = Elements()
    parser.feed(text := browser.text(path, status))
    assert parser.found == [], path
    assert "49098049" not in text, path
    assert MARK in parser.texts or not shows, f"{path} does not show the text"


@pytest.fixture
def paths(climate: Climate, clock: Clock, pages: Flask, member: Browser) -> dict[str, list[str]]:
    """Pages of the member and of the administrator with the text in names, properties and reasons."""
    admin, owner = Person(pages, "admin"), Person(pages, "member")
    admin.done(admin("PUT", "/os-hosts/1", {"note": HOSTILE}))
    admin.done(admin("PUT", "/limits/project", {"leases": 50}))
    admin.done(admin("POST", "/pools/maintenance/moves", {"hosts": ["7"], "reason": HOSTILE}))
    admin.done(admin("POST", "/pools/failed/moves", {"hosts": ["8"], "reason": HOSTILE}))
    lease = owner.lease(HOSTILE)["id"]
    hold = str(member.submit("/ui/find?hosts=1&length=1h", "/ui/holds").location)
    dates = "hosts=1&length=1h&every=day&times=2&earliest=2030-03-01T09:00"
    series = str(member.submit(f"/ui/series/new?{dates}", "/ui/series", name=HOSTILE[:64], make="all").location)
    with climate.engine.begin() as conn:
        delivery.notify_now(conn, climate, Notice("lease.before_end", HOSTILE, MEMBER.project_id, lease_id=None))
    return {
        "member": [
            "/ui/",
            "/ui/leases",
            f"/ui/leases/{lease}",
            f"/ui/leases/{lease}/delete",
            f"/ui/leases/{lease}?step=1",
        ],
        "series": ["/ui/series", series, f"{series}/delete"],
        "hold": [hold],
        "more": ["/ui/notices", "/ui/calendar/table?at=2030-01-02T00:00Z&span=744"],
        "admin": ["/ui/hosts", "/ui/hosts/7", "/ui/hosts/8", "/ui/hosts/pools/failed", "/ui/past?at=now", "/ui/audit"],
    }


def test_names_properties_and_reasons_are_texts(paths: dict[str, list[str]], member: Browser, admin: Browser) -> None:
    for group in ("member", "series", "more"):
        for path in paths[group]:
            harmless(member, path)
    for path in paths["admin"]:
        harmless(admin, path, shows="past" not in path, status=200 if "past" not in path else 400)
    harmless(admin, "/ui/leases?all=1")


def test_names_and_properties_of_hosts_are_texts(
    climate: Climate, pages: Flask, member: Browser, admin: Browser
) -> None:
    asker = Person(pages, "admin")
    asker.done(asker("PUT", "/os-hosts/7", {"note": HOSTILE}))
    lease = Person(pages, "member").lease(reservations=[{**HOST, "min": 8, "max": 8}])["id"]
    with climate.engine.begin() as conn:
        conn.execute(text("UPDATE hosts SET hypervisor_hostname = :name WHERE id = 7"), {"name": HOSTILE})
    table = "/ui/calendar/table?at=2030-01-02T00:00Z"
    for browser in (member, admin):
        harmless(browser, table)
        harmless(browser, f"/ui/leases/{lease}")
    for path in ("/ui/hosts", "/ui/hosts/7", "/ui/hosts/pools/reservation", "/ui/audit"):
        harmless(admin, path)
    form = admin.form("/ui/hosts", "/ui/hosts/preview")
    preview = Elements()
    preview.feed(admin.post(form.action, {**form.fields, "hosts": ["7"], "to": "failed"}).text)
    assert preview.found == []
    assert MARK in preview.texts


def test_names_of_projects_users_and_their_things_are_texts(app: Flask, here: Place) -> None:
    name = HOSTILE[:60]
    user = accounts.create_user(here.identity, SETUP, accounts.NewUser(name, "a-long-password"))
    (member,) = read_operations.named_roles(here.identity, ["member"])
    for project_name in (name, f"other {name}"[:60]):
        project = accounts.create_project(here.identity, SETUP, accounts.NewProject(project_name))
        roles.assign(here.identity, SETUP, Holder(user.id), project.id, member.id)
    browser = Browser(app)
    assert browser.sign_in(name, "a-long-password").status_code == 303
    browser.submit("/ui/settings", "/ui/settings/feeds", name=name, scope="user")
    browser.submit("/ui/settings", "/ui/settings/credentials", name=name, description=HOSTILE)
    harmless(browser, "/ui/settings")
    assert browser.text("/ui/settings").count("&lt;script&gt;alert(1)") >= 6


def test_reasons_of_failed_events_are_texts(climate: Climate, clock: Clock, pages: Flask, admin: Browser) -> None:
    Person(pages, "member").lease(HOSTILE)
    clock.forward(days=2)
    run_due(climate)
    harmless(admin, "/ui/failed-events")


def test_preview_of_a_move_has_texts(pages: Flask, admin: Browser) -> None:
    Person(pages, "member").lease(HOSTILE, reservations=[{**HOST, "min": 8, "max": 8}])
    form = admin.form("/ui/hosts", "/ui/hosts/preview")
    parser = Elements()
    parser.feed(admin.post(form.action, {**form.fields, "hosts": ["1"], "to": "failed", "reason": HOSTILE}).text)
    assert parser.found == []
    assert MARK in parser.texts


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/ui/find?q={}", 200),
        ("/ui/find?requirements={}", 400),
        ("/ui/find?every={}", 400),
        ("/ui/find?rule={}", 200),
        ("/ui/series/new?rule={}", 400),
        ("/ui/leases?name={}", 200),
        ("/ui/leases?status={}", 400),
        ("/ui/leases?after={}", 400),
        ("/ui/leases/{}", 404),
        ("/ui/holds/{}", 404),
        ("/ui/series/{}", 404),
        ("/ui/usage?by={}", 400),
        ("/ui/notices?kind={}", 200),
        ("/ui/calendar?search={}&at={}&group={}&span={}", 200),
        ("/ui/calendar/table?search={}&at={}&group={}&span={}", 200),
        ("/ui/{}", 404),
    ],
)
def test_addresses_are_texts(member: Browser, path: str, status: int) -> None:
    harmless(member, path.replace("{}", "%22%27%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E"), status, shows=False)


@pytest.mark.parametrize(
    "path", ["/ui/audit?author={}&object={}&project={}", "/ui/past?at={}", "/ui/hosts/{}", "/ui/hosts/pools/{}"]
)
def test_addresses_of_administrators_are_texts(admin: Browser, path: str) -> None:
    filled = path.replace("{}", "%22%27%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E")
    harmless(admin, filled, admin.client.get(filled, headers={"Accept": "text/html"}).status_code, shows=False)


def test_names_of_servers_are_texts(cloud: World) -> None:
    member, admin = signed_in(cloud.app, "member"), signed_in(cloud.app, "admin")
    path = str(member.submit("/ui/servers/new", "/ui/servers", name=HOSTILE).location)
    cloud.settle()
    for one in ("/ui/servers", path, f"{path}/delete"):
        harmless(member, one)
    harmless(admin, f"{path}/explain")
    harmless(member, "/ui/servers?name=%22%3E%3Cscript%3Ealert(1)", shows=False)


def test_what_zones_and_flavors_are_called_is_text(cloud: World) -> None:
    member, admin = signed_in(cloud.app, "member"), signed_in(cloud.app, "admin")
    compute = cloud.here.compute
    registry.add(compute, {"api_url": "http://below", "username": "u", "password": "p"})
    with compute.engine.begin() as conn:
        conn.execute(update(zones).values(name=HOSTILE, capabilities=HOSTILE, last_error=HOSTILE))
        conn.execute(update(flavors).where(flavors.c.id == "1").values(name=HOSTILE))
    harmless(admin, "/ui/tree")
    harmless(member, "/ui/servers/new")
