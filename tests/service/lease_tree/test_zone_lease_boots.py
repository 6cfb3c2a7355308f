"""Servers on leases over zones: on own hosts and on parts in children, all that were asked for or none."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from climate.compute.nodes.services import IMAGE_ID
from climate.compute.zones import polling
from climate.compute.zones.builds.blobs import BlobKeys
from tests.compute.zones.build_plan_trees import carry_out, changed, done, make_due, rows
from tests.compute.zones.tree import LATEST, Zone
from tests.service.zone_tree import Family, family_of, hosts_wanted

pytestmark = pytest.mark.slow

WHOLE_HOST = "4"
"""A flavor of which one server fits on a host."""


@pytest.fixture(scope="module")
def standing(
    make_database: Callable[..., str], cloud_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Family]:
    below = {"left": "parent", "right": "parent", "grandchild": "left"}
    with family_of(make_database, cloud_template, tmp_path_factory.mktemp("boots"), below) as found:
        yield found


@pytest.fixture
def family(standing: Family) -> Iterator[Family]:
    yield standing
    standing.tidy()
    for zone in standing.tree.zones.values():
        for row in rows(zone, "compute_servers"):
            zone.ask("DELETE", f"/servers/{row['id']}")
        zone.settle()
    for zone in standing.tree.zones.values():
        poll(zone)


def leased(family: Family, count: int, **more: Any) -> str:
    """The reservation of a lease of the member that has begun."""
    end = family.now() + timedelta(hours=2)
    body = {"name": "l", "start_date": "now", "end_date": f"{end:%Y-%m-%d %H:%M}"}
    body["reservations"] = [hosts_wanted(count, across=True, **more)]  # type: ignore[assignment]
    answer = family.tree["parent"].person("demo").ask("POST", "/reservation/v1/leases", json=body)
    family.settle()
    return str(done(answer, 201)["lease"]["reservations"][0]["id"])


def ask(family: Family, reservation: str, **changes: Any) -> Any:
    """The answer to a request for servers at the parent, of which one fits on a host."""
    server = {"name": "s", "imageRef": IMAGE_ID, "flavorRef": WHOLE_HOST, "networks": "auto", **changes}
    body = {"server": server, "OS-SCH-HNT:scheduler_hints": {"reservation": reservation}}
    return family.tree["parent"].ask("POST", "/servers", body, "demo", headers=LATEST)


def boot(family: Family, reservation: str, **changes: Any) -> list[dict[str, Any]]:
    """All servers of a request, as their owner sees them at the parent once it is carried out."""
    build = done(ask(family, reservation, return_reservation_id=True, **changes), 202)["reservation_id"]
    family.settle()
    path = f"/servers/detail?reservation_id={build}"
    return list(done(family.tree["parent"].ask("GET", path, user="demo", headers=LATEST))["servers"])


def spread(family: Family) -> dict[str, int]:
    """Zone -> servers that are there."""
    return {name: len(rows(zone, "compute_servers")) for name, zone in family.tree.zones.items()}


def usage(family: Family) -> int:
    """The servers that count in the quota of the member."""
    limits = done(family.tree["parent"].ask("GET", "/limits", user="demo"))["limits"]["absolute"]
    return int(limits["totalInstancesUsed"])


@contextmanager
def unlimited(family: Family) -> Iterator[None]:
    """No quotas in any zone, until the end of the block."""
    before = {"instances": 10, "cores": 20, "ram": 51200}
    for zone in family.tree.zones.values():
        done(zone.ask("PUT", f"/os-quota-sets/{_project(zone)}", {"quota_set": dict.fromkeys(before, -1)}))
    yield
    for zone in family.tree.zones.values():
        done(zone.ask("PUT", f"/os-quota-sets/{_project(zone)}", {"quota_set": {**before, "force": True}}))


def _project(zone: Zone) -> str:
    """The project of the member, or in a child of the account that its parent has there."""
    user = "demo" if zone.name == "parent" else "admin"
    return str(done(zone.person(user).ask("GET", "/identity/v3/auth/projects"))["projects"][0]["id"])


def poll(zone: Zone) -> None:
    """One poll of the children, as if its time had come."""
    with zone.compute.engine.begin() as conn:
        conn.exec_driver_sql("UPDATE compute_zones SET polled_at = NULL")
    polling.poll(zone.compute)


def test_servers_of_one_request_go_to_own_hosts_and_to_parts(family: Family) -> None:
    reservation = leased(family, 5)
    servers = boot(family, reservation, min_count=5)
    assert [server["status"] for server in servers] == ["ACTIVE"] * 5
    assert sorted(server["name"] for server in servers) == [f"s-{number}" for number in range(1, 6)]
    assert spread(family) == {"parent": 2, "left": 2, "right": 0, "grandchild": 1}
    hosts = [
        (zone.name, row["node_id"]) for zone in family.tree.zones.values() for row in rows(zone, "compute_servers")
    ]
    assert len(set(hosts)) == 5, "each has a host of its own"


def test_own_hosts_take_what_fits_on_them(family: Family) -> None:
    reservation = leased(family, 5)
    family.tree.asked.clear()
    assert len(boot(family, reservation, min_count=2)) == 2
    assert spread(family) == {"parent": 2, "left": 0, "right": 0, "grandchild": 0}
    assert not [path for _, path in family.tree.asked if path in ("/zones/select", "/servers")]


def test_fewer_than_the_most_are_booted_where_there_is_no_more_room(family: Family) -> None:
    reservation = leased(family, 3)
    assert len(boot(family, reservation, min_count=1, max_count=5)) == 3
    assert spread(family) == {"parent": 2, "left": 1, "right": 0, "grandchild": 0}


def test_without_room_for_the_least_nothing_is_booted(family: Family) -> None:
    reservation = leased(family, 3)
    servers = boot(family, reservation, min_count=4)
    assert [server["status"] for server in servers] == ["ERROR"] * 4
    assert "No valid host was found" in servers[0]["fault"]["message"]
    assert spread(family) == {"parent": 4, "left": 0, "right": 0, "grandchild": 0}
    assert not any(row["node_id"] for row in rows(family.tree["parent"], "compute_servers"))


def test_hosts_that_are_not_of_the_lease_take_none(family: Family) -> None:
    """The child on the right has room, and its hosts belong to nobody."""
    reservation = leased(family, 2, zone="left")
    boot(family, reservation, min_count=2)
    assert spread(family) == {"parent": 0, "left": 2, "right": 0, "grandchild": 0}
    servers = boot(family, reservation, name="more")
    assert [server["status"] for server in servers] == ["ERROR"]
    assert spread(family)["right"] == 0


def test_what_a_child_gives_away_meanwhile_takes_back_the_rest(family: Family) -> None:
    reservation, left = leased(family, 5), family.tree["left"]

    def application(environ: dict[str, Any], start_response: Any) -> Any:
        if environ["REQUEST_METHOD"] == "POST" and environ["PATH_INFO"].endswith("/servers"):
            start_response("409 Conflict", [("Content-Type", "application/json")])
            return [b'{"conflictingRequest": {"message": "taken"}}']
        return left.app(environ, start_response)

    family.tree.applications["left"] = application
    servers = boot(family, reservation, min_count=5)
    assert {server["status"] for server in servers} == {"ERROR"}, "what was booted here is gone again"
    assert "2 of 5 servers were placed" in servers[0]["fault"]["message"]
    assert spread(family) == {"parent": 5, "left": 0, "right": 0, "grandchild": 0}


def test_a_part_that_lies_in_a_grandchild_is_booted_on(family: Family) -> None:
    family.take("left", 2, start=None)
    reservation = leased(family, 2, zone="left")
    servers = boot(family, reservation, min_count=2)
    assert [server["status"] for server in servers] == ["ACTIVE"] * 2
    assert spread(family) == {"parent": 0, "left": 0, "right": 0, "grandchild": 2}


def test_a_child_splits_its_part_and_servers_go_to_all_hosts(family: Family) -> None:
    """Own hosts, both children, and the grandchild: each has a share of one lease, and of one request for servers."""
    reservation = leased(family, 8)
    shown = done(family.tree["parent"].person("demo").ask("GET", "/reservation/v1/leases"))["leases"][0]
    assert {part["zone"]: part["hosts"] for part in shown["reservations"][0]["parts"]} == {"left": 4, "right": 2}
    (theirs,) = family.of("left")
    assert [(part.zone, part.hosts) for part in theirs.parts] == [("grandchild", 2)]
    with unlimited(family):
        servers = boot(family, reservation, min_count=8)
        assert [server["status"] for server in servers] == ["ACTIVE"] * 8
        assert spread(family) == {"parent": 2, "left": 2, "right": 2, "grandchild": 2}


def test_the_most_hosts_that_there_are_is_what_a_spread_lease_gets(family: Family) -> None:
    family.take("right", 2, start=None)
    lease = family.make(hosts_wanted(1, 9, across=True))
    assert len(lease.reservations[0].hosts) + sum(part.hosts for part in lease.parts) == 6
    assert not lease.held
    alone = family.make(hosts_wanted(1, across=True), start=5)
    assert (alone.parts, alone.held, len(alone.reservations[0].hosts)) == ((), False, 1)


def test_servers_on_parts_count_in_the_quota_until_they_are_deleted(family: Family) -> None:
    parent, reservation = family.tree["parent"], leased(family, 2, zone="left")
    before = usage(family)
    (mine,) = done(parent.person("demo").ask("GET", "/identity/v3/auth/projects"))["projects"]
    done(parent.ask("PUT", f"/os-quota-sets/{mine['id']}", {"quota_set": {"instances": before + 2}}))
    try:
        first, second = boot(family, reservation, min_count=2)
        assert usage(family) == before + 2
        assert ask(family, reservation, flavorRef="1").status_code == 403
        assert parent.ask("DELETE", f"/servers/{first['id']}", user="demo").status_code == 204
        family.settle()
        poll(parent)
        assert usage(family) == before + 1
        (again,) = boot(family, reservation)
        assert again["status"] == "ACTIVE"
        assert {str(row["id"]) for row in rows(family.tree["left"], "compute_servers")} == {again["id"], second["id"]}
    finally:
        done(parent.ask("PUT", f"/os-quota-sets/{mine['id']}", {"quota_set": {"instances": 10}}))


def nothing_before(environ: dict[str, Any], pass_on: Callable[[], Any]) -> Any:
    raise ConnectionResetError


def nothing_after(environ: dict[str, Any], pass_on: Callable[[], Any]) -> Any:
    b"".join(pass_on())
    raise ConnectionResetError


@pytest.mark.parametrize("how", [nothing_before, nothing_after])
def test_a_boot_whose_answer_is_lost_makes_one_server(family: Family, how: Any) -> None:
    reservation, left = leased(family, 2, zone="left"), family.tree["left"]

    def application(environ: dict[str, Any], start_response: Any) -> Any:
        if environ["REQUEST_METHOD"] == "POST" and environ["PATH_INFO"].endswith("/servers"):
            return how(environ, lambda: left.app(environ, start_response))
        return left.app(environ, start_response)

    family.tree.applications["left"] = application
    assert ask(family, reservation).status_code == 503
    assert usage(family) == 1, "it counts as long as it may be there"
    family.tree.mend("left")
    make_due(family.tree["parent"])
    carry_out(family.tree["parent"])
    (made,) = rows(left, "compute_servers")
    (placed,) = rows(family.tree["parent"], "compute_zone_servers")
    assert placed["server_id"] == made["id"]
    assert usage(family) == 1


def test_a_child_without_a_key_boots_nothing_and_says_so(family: Family) -> None:
    reservation, left = leased(family, 2, zone="left"), family.tree["left"]
    with changed(left, zones=replace(left.compute.zones, blobs=BlobKeys())):
        (server,) = boot(family, reservation)
    assert server["status"] == "ERROR"
    assert "CLIMATE_BUILD_PLAN_ENCRYPTION_KEY" in server["fault"]["message"]
