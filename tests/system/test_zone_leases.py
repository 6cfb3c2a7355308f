"""Leases over a real tree of zones, while a child or the parent is killed: in every zone all of it or nothing."""

import json
import re
import subprocess
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import psycopg
import pytest

from climate.bootstrap import plain_url
from tests.campaign import length
from tests.system import allocation_oracle
from tests.system.stack import ROOT, await_so
from tests.system.zone_tree import SECONDS, ZONES, C, ZoneTree

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]

NEW = {"OpenStack-API-Version": "compute 2.79"}
LEASES = "/reservation/v1/leases"
HOSTS = 6
"""Four here, which are all, and two in a child: each zone of the demo has four."""

WIDE = 14
"""Hosts here, in both children and in the grandchild: the child above it spreads its part."""

XLARGE = "5"
"""A flavor of which one server fits on a host."""

BACK = 900.0
"""Seconds until a deployment that was killed answers again, and has done what it has missed."""

OPEN = """
    SELECT l.name, l.status, e.kind, e.status FROM events e JOIN leases l ON l.id = e.lease_id
    WHERE NOT l.gone AND (e.status = 'IN_PROGRESS' OR (e.status = 'UNDONE' AND e.due_at < now()))"""
"""Events that are at work, or late."""


@pytest.fixture(autouse=True)
def _quota(tree: ZoneTree) -> None:
    """A server on each host is more than a project may have at first."""
    for zone in ZONES:
        api, cloud = tree.api(zone), "climate-demo" if zone == "parent" else "climate"
        tree.api(zone, cloud).sign_in()
        path = f"{C}/os-quota-sets/{tree.api(zone, cloud).project_id}"
        body = {"quota_set": {"instances": -1, "cores": -1, "ram": -1}}
        assert api.ask("PUT", path, body).status_code == 200


def wanted(hosts: int, **more: Any) -> dict[str, Any]:
    end = datetime.now(UTC) + timedelta(days=1)
    reservation = {"resource_type": "physical:host", "min": hosts, "max": hosts, "across": True}
    dates = {"start_date": "now", "end_date": f"{end:%Y-%m-%d %H:%M}"}
    return {"name": "wide", **dates, "reservations": [reservation], **more}


def lease(tree: ZoneTree, hosts: int, **more: Any) -> dict[str, Any]:
    """Create a lease of the parent's member over the tree.  It asks again while a busy child offers nothing."""
    answers: list[httpx.Response] = []

    def created() -> bool:
        answers.append(tree.api("parent", "climate-demo").ask("POST", LEASES, wanted(hosts, **more)))
        assert answers[-1].status_code in (201, 409), answers[-1].text
        return answers[-1].status_code == 201

    await_so(created, SECONDS, f"a lease of {hosts} hosts over the tree")
    return dict(answers[-1].json()["lease"])


def seen(tree: ZoneTree, lease_id: str) -> dict[str, Any] | None:
    """The lease as its owner sees it; None when it is gone."""
    answer = tree.api("parent", "climate-demo").ask("GET", f"{LEASES}/{lease_id}")
    assert answer.status_code in (200, 404), answer.text
    return dict(answer.json()["lease"]) if answer.status_code == 200 else None


def parts(shown: dict[str, Any]) -> list[dict[str, Any]]:
    return list(shown["reservations"][0].get("parts", ()))


def await_active(tree: ZoneTree, lease_id: str) -> dict[str, Any]:
    """The lease, once it is ACTIVE here and in each child that has a part."""

    def all_started() -> dict[str, Any] | None:
        shown = seen(tree, lease_id)
        if shown is None or shown["status"] != "ACTIVE":
            return None
        theirs = [tree.api(part["zone"]).ask("GET", f"{LEASES}/{part['lease_id']}") for part in parts(shown)]
        return shown if all(one.json()["lease"]["status"] == "ACTIVE" for one in theirs) else None

    shown = await_so(all_started, SECONDS, "the start of the lease in all zones")
    assert shown is not None
    return shown


def boot(tree: ZoneTree, reservation: str, count: int) -> str:
    """Boot as many servers as hosts at the parent, in one request; its reservation id."""
    member = tree.api("parent", "climate-demo")
    image = member.read("/image/v2/images")["images"][0]["id"]
    server = {"name": "on", "flavorRef": XLARGE, "imageRef": image, "networks": "auto", "min_count": count}
    body = {
        "server": {**server, "return_reservation_id": True},
        "OS-SCH-HNT:scheduler_hints": {"reservation": reservation},
    }
    answer = member.ask("POST", f"{C}/servers", body, **NEW)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["reservation_id"])


def servers(tree: ZoneTree, build: str) -> list[dict[str, Any]]:
    """The servers of a request, as their owner sees them at the parent."""
    path = f"{C}/servers/detail?reservation_id={build}"
    return list(tree.api("parent", "climate-demo").ask("GET", path, **NEW).json()["servers"])


def there(tree: ZoneTree, zone: str) -> set[str]:
    """Ids of the servers in the database of a zone."""
    with psycopg.connect(plain_url(tree.database_url(zone))) as conn:
        return {str(row[0]) for row in conn.execute("SELECT id FROM compute_servers")}


def agree(tree: ZoneTree, shown: dict[str, Any]) -> bool:
    """Return whether the parent shows a lease and its servers as its children do."""
    below = set().union(*(there(tree, zone) for zone in ZONES[1:]))
    for part in parts(shown):
        theirs = tree.api(part["zone"]).read(f"{LEASES}/{part['lease_id']}")["lease"]
        if (theirs["status"], theirs["end_date"]) != (shown["status"], shown["end_date"]):
            return False
        if part["state"] != "confirmed" or hosts(tree, part["zone"], theirs) != part["hosts"]:
            return False
    return placed(tree) == below


def hosts(tree: ZoneTree, zone: str, shown: dict[str, Any]) -> int:
    """The hosts that a zone keeps for a lease, with those of its parts in zones below."""
    held = [one for one in allocation_oracle.in_rows(tree.database_url(zone)) if one.lease_id == shown["id"]]
    return len(held) + sum(part["hosts"] for part in parts(shown))


def placed(tree: ZoneTree) -> set[str]:
    """Ids of the servers that the parent knows in its children."""
    with psycopg.connect(plain_url(tree.database_url("parent"))) as conn:
        return {str(row[0]) for row in conn.execute("SELECT server_id FROM compute_zone_servers")}


def is_settled(tree: ZoneTree) -> bool:
    """Whether nothing is at work or late in any zone."""
    return not any(unfinished(tree, zone) for zone in ZONES)


def unfinished(tree: ZoneTree, zone: str) -> list[Any]:
    """Events of a zone that are at work, or late; its database, while that is away."""
    try:
        with psycopg.connect(plain_url(tree.database_url(zone))) as conn:
            return conn.execute(OPEN).fetchall()
    except (OSError, psycopg.Error) as error:
        return [error]


def check(tree: ZoneTree) -> None:
    """The invariants of the engine, in each zone."""
    for zone in ZONES:
        assert allocation_oracle.overlaps(allocation_oracle.in_rows(tree.database_url(zone))) == [], zone
        checked = tree.run(zone, "journal", "check")
        assert checked.returncode == 0, (zone, checked.stdout + checked.stderr)


def nothing_left(tree: ZoneTree) -> bool:
    """Return whether no zone keeps a host or a server, and the parent knows of none."""
    held = {zone: allocation_oracle.in_rows(tree.database_url(zone)) for zone in ZONES}
    return not any(held.values()) and not any(there(tree, zone) for zone in ZONES) and not placed(tree)


def give_back(tree: ZoneTree, lease_id: str) -> None:
    """Delete a lease, and see everything of it go in all zones."""
    answer = tree.api("parent", "climate-demo").ask("DELETE", f"{LEASES}/{lease_id}")
    assert answer.status_code == 204, answer.text
    await_so(lambda: seen(tree, lease_id) is None, BACK, "the deletion of the lease")
    await_so(lambda: nothing_left(tree) and is_settled(tree), SECONDS, "that nothing is kept")
    check(tree)


def revive(tree: ZoneTree, environ: Any, zone: str) -> None:
    tree.begin(environ)
    await_so(lambda: tree.is_ready(zone), BACK, f"the return of {zone}")
    await_so(lambda: len(tree.active()) == 2, BACK, "both children")


def test_a_lease_over_two_children_starts_takes_servers_and_ends(tree: ZoneTree) -> None:
    made = lease(tree, WIDE)
    shown = await_active(tree, made["id"])
    assert {part["zone"]: part["hosts"] for part in parts(shown)} == {"child-1": 8, "child-2": 2}
    build = boot(tree, shown["reservations"][0]["id"], WIDE)
    await_so(lambda: [one["status"] for one in servers(tree, build)] == ["ACTIVE"] * WIDE, SECONDS, "the boot")
    spread = {"parent": 4, "child-1": 4, "child-2": 2, "grandchild": 4}
    assert {zone: len(there(tree, zone)) for zone in ZONES} == spread
    assert agree(tree, shown)
    check(tree)
    ended = tree.api("parent", "climate-demo").ask("PUT", f"{LEASES}/{made['id']}", {"end_date": "now"})
    assert ended.status_code == 200, ended.text
    await_so(lambda: (seen(tree, made["id"]) or {})["status"] == "TERMINATED", SECONDS, "the early end")
    await_so(lambda: nothing_left(tree) and is_settled(tree), SECONDS, "that servers and hosts are given back")
    give_back(tree, made["id"])


@pytest.mark.parametrize("victim", length([], ["child", "parent"]))
def test_who_is_killed_between_hold_and_confirm_leaves_all_or_nothing(tree: ZoneTree, victim: str) -> None:
    member, made = tree.api("parent", "climate-demo"), lease(tree, HOSTS, hold_seconds=60)
    assert made["status"] == "HELD"
    assert {part["state"] for part in parts(made)} == {"held"}
    zone = "parent" if victim == "parent" else parts(made)[0]["zone"]
    environ, answer = tree.kill(zone), None
    with suppress(httpx.HTTPError):
        answer = member.ask("POST", f"{LEASES}/{made['id']}/confirm", {})
        assert answer.status_code in (409, 503), answer.text
    assert (answer is None) is (victim == "parent")
    revive(tree, environ, zone)
    await_so(lambda: seen(tree, made["id"]) is None, BACK, "the end of the hold")
    await_so(lambda: nothing_left(tree) and is_settled(tree), BACK, "that nothing stays held")
    check(tree)
    again = lease(tree, HOSTS)
    await_active(tree, again["id"])
    give_back(tree, again["id"])


def start_again(tree: ZoneTree, build: str, count: int) -> None:
    """Start the servers whose processes were killed with their zone; the others have never stopped."""

    def stopped() -> list[str] | None:
        found = [(one["status"], one["id"]) for one in servers(tree, build)]
        there = [server for status, server in found if status == "SHUTOFF"]
        running = [server for status, server in found if status == "ACTIVE"]
        return there if len(there) == count and len(running) == len(found) - count else None

    member = tree.api("parent", "climate-demo")
    for server in await_so(stopped, SECONDS, "the servers") or ():
        answer = member.ask("POST", f"{C}/servers/{server}/action", {"os-start": None})
        assert answer.status_code == 202, answer.text
    await_so(lambda: {one["status"] for one in servers(tree, build)} == {"ACTIVE"}, SECONDS, "the servers to start")


@pytest.mark.parametrize("victim", length(["child"], ["child", "parent"]))
def test_who_is_killed_while_the_lease_is_active_loses_nothing(tree: ZoneTree, victim: str) -> None:
    made = lease(tree, HOSTS)
    shown = await_active(tree, made["id"])
    build = boot(tree, shown["reservations"][0]["id"], HOSTS)
    await_so(lambda: [one["status"] for one in servers(tree, build)] == ["ACTIVE"] * HOSTS, SECONDS, "the boot")
    (part,) = parts(shown)
    zone = "parent" if victim == "parent" else part["zone"]
    environ = tree.kill(zone)
    if victim == "child":
        states = {one["status"] for one in servers(tree, build)}
        assert states == {"ACTIVE", "UNKNOWN"}, states
        later = (datetime.now(UTC) + timedelta(days=2)).strftime("%Y-%m-%d %H:%M")
        refused = tree.api("parent", "climate-demo").ask("PUT", f"{LEASES}/{made['id']}", {"end_date": later})
        assert refused.status_code == 503, refused.text
    revive(tree, environ, zone)
    again = await_active(tree, made["id"])
    assert again["end_date"] == shown["end_date"]
    start_again(tree, build, HOSTS - part["hosts"] if victim == "parent" else part["hosts"])
    await_so(lambda: is_settled(tree), BACK, "that all zones have done what they missed")
    assert agree(tree, again)
    check(tree)
    give_back(tree, made["id"])


def test_the_command_of_the_page_makes_a_spread_lease(tree: ZoneTree) -> None:
    page = (ROOT / "docs" / "zone-leases.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^```\n(END=.*?)^```$", page, re.MULTILINE | re.DOTALL)
    member = tree.api("parent", "climate-demo")
    environ = {**tree.environ, "CLIMATE": f"http://127.0.0.1:{tree.port}", "TOKEN": member.sign_in()}
    ran = subprocess.run(["bash", "-c", command], env=environ, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    made = json.loads(ran.stdout)["lease"]
    assert sum(part["hosts"] for part in parts(made)) == 1
    give_back(tree, await_active(tree, made["id"])["id"])
