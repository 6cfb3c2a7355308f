"""Pools and hosts for administrators: previews before moves, and what becomes of refusals."""

import re

import pytest
from flask import Flask
from sqlalchemy import event

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from tests.api.compute.api_clients import World
from tests.api.reservation.api_clients import Person
from tests.api.web.page_clients import Browser, signed_in
from tests.conftest import Clock
from tests.service.host_operations.test_recycling import ended, following

SCRIPT = "<script>alert(1)</script>"


def chosen(admin: Browser, *hosts: str, to: str = "maintenance", reason: str = "") -> str:
    """The page of a preview."""
    return sent(admin, "preview", hosts, to, reason)


def sent(admin: Browser, action: str, hosts: tuple[str, ...], to: str, reason: str = "", **more: str) -> str:
    secret = admin.form("/ui/hosts", "/ui/hosts/preview").fields["csrf_token"]
    fields = {"csrf_token": secret, "hosts": list(hosts), "to": to, "reason": reason, **more}
    return admin.post(f"/ui/hosts/{action}", fields).get_data(as_text=True)


def pool_of(pages: Flask, host: int) -> str:
    return str(Person(pages, "admin").get(f"/os-hosts/{host}/health")["health"]["pool"])


def test_board_has_each_pool_with_its_hosts(admin: Browser) -> None:
    text = admin.text("/ui/hosts")
    for pool in ("multi-tenant", "reservation", "lent", "recycling", "draining", "cleaning", "maintenance", "failed"):
        assert f'data-pool="{pool}"' in text
    assert text.count('class="host-card"') == 8


def test_preview_names_the_leases_and_moves_nothing(pages: Flask, admin: Browser) -> None:
    Person(pages, "member").lease(SCRIPT, reservations=[{**HOST, "min": 8, "max": 8}])
    text = chosen(admin, "1", "2", to="failed")
    assert "1 lease would lose a host" in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert SCRIPT not in text
    assert pool_of(pages, 1) == "reservation"


HOST = {
    "resource_type": "physical:host",
    "min": 1,
    "max": 1,
    "hypervisor_properties": "",
    "resource_properties": "",
}


def test_move_needs_force_where_a_lease_is_hit(pages: Flask, admin: Browser) -> None:
    Person(pages, "member").lease(reservations=[{**HOST, "min": 8, "max": 8}])
    assert "would lose host" in sent(admin, "move", ("1",), "failed", "smoke")
    assert pool_of(pages, 1) == "reservation"
    sent(admin, "move", ("1",), "failed", "smoke", force="1")
    assert pool_of(pages, 1) == "failed"
    assert "smoke" in admin.text("/ui/hosts")


def test_several_hosts_move_at_once(pages: Flask, admin: Browser) -> None:
    sent(admin, "move", ("1", "2", "h3"), "multi-tenant", "for all")
    assert [pool_of(pages, host) for host in (1, 2, 3)] == ["multi-tenant"] * 3
    assert "3 hosts" in admin.text("/ui/hosts/pools/multi-tenant") or "h3" in admin.text("/ui/hosts/pools/multi-tenant")


@pytest.mark.parametrize(
    ("hosts", "to", "said"),
    [((), "failed", "No host was chosen"), (("1",), "lent", "by hand"), (("99",), "failed", "No host &#39;99&#39;")],
)
def test_what_is_refused(admin: Browser, hosts: tuple[str, ...], to: str, said: str) -> None:
    assert said in chosen(admin, *hosts, to=to)


def test_host_has_its_state_calendar_and_journal(pages: Flask, admin: Browser) -> None:
    Person(pages, "admin").done(Person(pages, "admin")("PUT", "/os-hosts/1", {"note": SCRIPT}))
    text = admin.text("/ui/hosts/1")
    assert "/ui/calendar/data?hosts=1" in text
    assert "Host enrolled" in text
    assert "token" not in text.partition('id="journal"')[2]
    assert SCRIPT not in text
    admin.text("/ui/hosts/99", 404)


def test_host_fails_and_is_declared_healthy(pages: Flask, admin: Browser) -> None:
    secret = admin.form("/ui/hosts/1", "/ui/hosts/1/fail").fields["csrf_token"]
    admin.post("/ui/hosts/1/fail", {"csrf_token": secret, "reason": "smoke"})
    assert pool_of(pages, 1) == "failed"
    admin.post("/ui/hosts/1/reservable", {"csrf_token": secret, "reservable": "0", "reason": "old"})
    assert "Allow new leases" in admin.text("/ui/hosts/1")


def test_maintenance_is_checked_and_planned(pages: Flask, admin: Browser) -> None:
    fields = admin.form("/ui/hosts/2", "/ui/hosts/2/maintenance").fields
    fields |= {"start": "2030-01-05 10:00", "end": "2030-01-05 11:00", "reason": "new memory"}
    admin.post("/ui/hosts/2/maintenance", {**fields, "preview": "1"})
    assert "would fit" in admin.text("/ui/hosts/2")
    assert Person(pages, "admin").get("/maintenances")["maintenances"] == []
    admin.post("/ui/hosts/2/maintenance", fields)
    assert "new memory" in admin.text("/ui/hosts/2")
    (window,) = Person(pages, "admin").get("/maintenances")["maintenances"]
    admin.post(f"/ui/hosts/2/maintenance/{window['id']}/end", {"csrf_token": fields["csrf_token"]})
    assert Person(pages, "admin").get("/maintenances")["maintenances"] == []


@pytest.mark.parametrize("path", ["/ui/hosts", "/ui/hosts/1", "/ui/hosts/pools/lent"])
def test_only_administrators_see_hosts(member: Browser, reader: Browser, path: str) -> None:
    for browser in (member, reader):
        assert "h7" not in browser.text(path, 403)


def test_statements_of_the_board_do_not_grow_with_hosts_in_a_pool(climate: Climate, admin: Browser) -> None:
    seen: list[str] = []

    def note(*executed: object) -> None:
        seen.append(str(executed[2]))

    event.listen(climate.engine, "before_cursor_execute", note)
    admin.text("/ui/hosts")
    one = len(seen)
    sent(admin, "move", ("1", "2", "3", "4"), "failed", "smoke")
    seen.clear()
    admin.text("/ui/hosts")
    event.remove(climate.engine, "before_cursor_execute", note)
    assert len(seen) <= one + 3, "a pool that is not empty costs its owners and its next allocations"


def test_recycling_says_what_it_waits_for_and_until_when(climate: Climate, clock: Clock, admin: Browser) -> None:
    assert isinstance(climate.cloud, FakeCloud)
    _, number, _ = ended(climate, clock, climate.cloud, recycle_deadline="move")
    following(climate, clock, number, minutes=60)
    for path in ("/ui/hosts", "/ui/hosts/pools/recycling", f"/ui/hosts/{number}"):
        text = admin.text(path)
        assert "1 server still there" in text
        assert re.search(r"Waits for its servers until <time[^>]*>[^<]+</time>, then: move", text)
        assert "next: next from" in text


def test_names_of_projects_users_and_leases_stand_for_their_ids(
    climate: Climate, clock: Clock, pages: Flask, admin: Browser
) -> None:
    assert isinstance(climate.cloud, FakeCloud)
    _, number, _ = ended(climate, clock, climate.cloud)
    of_project = '<span title="project">project by name</span>'
    for path in ("/ui/hosts", "/ui/hosts/pools/recycling", f"/ui/hosts/{number}"):
        assert of_project in admin.text(path), path
    coming = Person(pages, "member").lease("coming", reservations=[{**HOST, "min": 7, "max": 7}])["id"]
    free = next(host for host in range(1, 9) if host != number)
    text = admin.text(f"/ui/hosts/{free}")
    assert f'<a href="/ui/leases/{coming}">coming</a>' in text
    assert '<span title="admin-user">admin-user by name</span>' in text
    assert of_project in chosen(admin, str(free), to="failed")
    assert of_project in admin.text("/ui/leases?all=1")


def test_host_without_a_deadline_waits_until_its_servers_leave(
    climate: Climate, clock: Clock, admin: Browser, pages: Flask
) -> None:
    assert isinstance(climate.cloud, FakeCloud)
    lease, number, _ = ended(climate, clock, climate.cloud)
    text = admin.text(f"/ui/hosts/{number}")
    assert "Waits until its servers leave by themselves; 1 server still there" in text
    assert f'<a href="/ui/leases/{lease.id}">the lease that is over</a>' in text
    other = next(host for host in range(1, 9) if host != number)
    assert "Waits" not in admin.text(f"/ui/hosts/{other}")


def test_pool_of_hosts_that_are_not_registered_says_so(cloud: World) -> None:
    admin = signed_in(cloud.app, "admin")
    for path in ("/ui/hosts", "/ui/hosts/pools/multi-tenant"):
        assert admin.text(path).count("None of them is registered for leases.") == 1
    assert "No host is in this pool." in admin.text("/ui/hosts/pools/failed")
