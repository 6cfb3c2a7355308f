"""Statements of the pages: as many for many rows as for few."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import UUID

import pytest
from flask import Flask
from sqlalchemy import Engine, event

from benchmarks import seed
from climate.context import Climate
from climate.service.leases import leases
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes, update
from tests.api.compute.api_clients import Person as Owner
from tests.api.compute.api_clients import World
from tests.api.reservation.api_clients import HOST, Person, run_due
from tests.api.web.page_clients import Browser, signed_in
from tests.conftest import MEMBER, Clock
from tests.identity.identity_factory import Place

MOST: dict[str, int] = {
    "/ui/": 16,
    "/ui/leases": 4,
    "/ui/leases?after=2020-01-01T00:00": 4,
    "/ui/find": 4,
    "/ui/find?hosts=9&length=2h": 30,
    "/ui/series": 4,
    "/ui/usage": 10,
    "/ui/notices": 4,
    "/ui/calendar": 3,
    "/ui/calendar/table": 8,
}
"""Maximum of statements of a page for members, by its path."""

MOST_OF_ADMINISTRATORS: dict[str, int] = {
    "/ui/hosts": 45,
    "/ui/hosts/1": 18,
    "/ui/hosts/pools/reservation": 12,
    "/ui/past": 5,
    "/ui/power": 20,
    "/ui/tree": 8,
    "/ui/audit": 5,
    "/ui/failed-events": 5,
}


@contextmanager
def counted(engine: Engine) -> Iterator[list[str]]:
    found: list[str] = []

    def note(conn: object, cursor: object, statement: str, *rest: object) -> None:
        found.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    yield found
    event.remove(engine, "before_cursor_execute", note)


def statements(engine: Engine, browser: Browser, path: str) -> int:
    """Return the number of statements of a page; what it keeps in memory is known already.

    What is read anew from time to time, such as revocations of tokens, falls into some visits and not into others.
    """
    browser.get(path)
    visits = []
    for _ in range(3):
        with counted(engine) as found:
            browser.get(path)
        visits.append(len(found))
    return min(visits)


def compare(engine: Engine, browser: Browser, path: str, most: int, grow: Callable[[], None]) -> None:
    """Fail if a page needs more statements once there are more rows, or more than `most`."""
    few = statements(engine, browser, path)
    grow()
    assert (statements(engine, browser, path), few <= most) == (few, True), f"{path}: {few} statements before"


def add(climate: Climate, clock: Clock, number: int, hosts: int = 1) -> list[UUID]:
    """Leases of the member, one a day from tomorrow on."""
    made = []
    for place in range(number):
        start = clock.time + timedelta(days=1 + place)
        order = LeaseRequest(
            "l", start, start + timedelta(hours=1), reservations=[{**HOST, "min": hosts, "max": hosts}]
        )
        made.append(leases.create(climate, MEMBER, order).id)
    return made


@pytest.mark.parametrize("path", MOST)
def test_more_leases_need_no_more_statements(climate: Climate, clock: Clock, member: Browser, path: str) -> None:
    add(climate, clock, 1)

    def grow() -> None:
        clock.forward(days=30)
        add(climate, clock, 8)

    compare(climate.engine, member, path, MOST[path], grow)


@pytest.mark.parametrize("path", MOST_OF_ADMINISTRATORS)
def test_more_hosts_leases_and_failures_need_no_more_statements(
    climate: Climate, clock: Clock, pages: Flask, admin: Browser, path: str
) -> None:
    asker = Person(pages, "admin")

    def begin(number: int, host: int) -> None:
        """Leases that have failed and leases to come, settings of power, and entries of the audit trail."""
        asker.done(asker("PUT", f"/os-hosts/{host}/power", {"driver": "memory", "settings": {}, "watts": 150}))
        asker.done(asker("PUT", f"/os-hosts/{host}", {"note": "new"}))
        add(climate, clock, number)
        clock.forward(days=number + 2)  # their starts are long over when a worker comes
        run_due(climate)
        add(climate, clock, number)

    begin(1, 1)

    def grow() -> None:
        seed.hosts(climate.engine, 30)
        for host in range(2, 5):
            begin(2, host)

    compare(climate.engine, admin, path, MOST_OF_ADMINISTRATORS[path], grow)


@pytest.mark.parametrize("part", ["", "/delete", "?at={at}", "/lease.ics"])
def test_lease_with_more_hosts_and_history_needs_no_more_statements(
    climate: Climate, clock: Clock, member: Browser, part: str
) -> None:
    part = part.format(at=f"{clock.time:%Y-%m-%dT%H:%M}")
    small, large = add(climate, clock, 1)[0], add(climate, clock, 1, hosts=6)[0]
    end = leases.get(climate, MEMBER, large).period.end
    for hours in range(1, 6):
        update(climate, MEMBER, large, Changes(end=end + timedelta(hours=hours)))
    few, many = (statements(climate.engine, member, f"/ui/leases/{one}{part}") for one in (small, large))
    assert (many, few <= 60) == (few, True), f"{few} statements before"


@pytest.mark.parametrize("repeated", ["", "&every=day"])
def test_search_with_all_its_offers_needs_no_more_statements(
    climate: Climate, clock: Clock, member: Browser, repeated: str
) -> None:
    """Each of at most five offers is planned as the lease that it would be."""
    add(climate, clock, 6)

    def grow() -> None:
        clock.forward(days=30)
        add(climate, clock, 9)
        clock.forward(days=-30)

    compare(climate.engine, member, f"/ui/find?hosts=1&length=2h{repeated}", 40, grow)


def test_more_holds_and_limits_need_no_more_statements(
    climate: Climate, clock: Clock, pages: Flask, member: Browser
) -> None:
    search = "/ui/find?hosts=1&length=1h"
    path = str(member.submit(search, "/ui/holds").location)

    def grow() -> None:
        for _ in range(3):
            member.submit(search, "/ui/holds")
        add(climate, clock, 8)

    compare(climate.engine, member, path, 20, grow)


def test_series_with_more_dates_need_no_more_statements(climate: Climate, member: Browser) -> None:
    def made(times: int) -> str:
        asked = f"/ui/series/new?hosts=1&length=1h&every=day&times={times}&earliest=2030-03-01T09:00"
        return str(member.submit(asked, "/ui/series", name="course", make="all").location)

    small = made(2)
    lists = statements(climate.engine, member, "/ui/series")
    large = made(7)
    for part in ("", "/delete"):
        few, many = (statements(climate.engine, member, f"{one}{part}") for one in (small, large))
        assert (many, few <= 6) == (few, True), f"{few} statements before"
    assert statements(climate.engine, member, "/ui/series") == lists


@pytest.mark.parametrize("path", ["/ui/", "/ui/leases"])
def test_more_places_in_the_waiting_list_need_no_more_statements(
    climate: Climate, clock: Clock, member: Browser, path: str
) -> None:
    def wait(number: int) -> None:
        for _ in range(number):
            until = f"{clock.time + timedelta(days=3):%Y-%m-%dT%H:%M}"
            fields = {"hosts": "8", "length": "1h", "until": until, "name": "w"}
            secret = member.form("/ui/", "/ui/sign-out").fields
            assert member.post("/ui/waiting", {**secret, **fields}).status_code == 303

    add(climate, clock, 1, hosts=8)
    wait(2)
    compare(climate.engine, member, path, 24, lambda: wait(4))


def test_more_feeds_and_credentials_need_no_more_statements(visit: Callable[[str], Browser], here: Place) -> None:
    browser = visit("demo")

    def grow() -> None:
        for name in ("one", "two", "three"):
            browser.submit("/ui/settings", "/ui/settings/feeds", name=name, scope="user")
            browser.submit("/ui/settings", "/ui/settings/credentials", name=name)

    compare(here.climate.engine, browser, "/ui/settings", 10, grow)


def test_more_servers_need_no_more_statements(cloud: World) -> None:
    member, engine = signed_in(cloud.app, "member"), cloud.climate.engine
    owner = Owner(cloud.app, "member")
    server = owner.booted()
    cloud.settle()
    paths = ("/ui/servers", "/ui/servers/new", f"/ui/servers/{server}", f"/ui/servers/{server}/delete")
    few = {path: statements(engine, member, path) for path in paths}
    for _ in range(3):
        owner.booted()
    cloud.settle()
    assert {path: statements(engine, member, path) for path in paths} == few
    assert max(few.values()) <= 12
