"""Servers on leases over cells: each goes to the cell that has the part of its reservation."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from climate.service.lease_tree import leases
from tests.conftest import MEMBER
from tests.service.cell_tree import LEFT, ORDINARY, PATHS, RIGHT, CellFamily
from tests.service.deployments import hosts_wanted


def boot(cells: CellFamily, reservation: str, **changes: Any) -> str:
    cells.settle()
    with cells.running():
        return cells.app().booted({"reservation": reservation}, **changes)


def at_top(cells: CellFamily, server_id: str, status: str) -> dict[str, Any]:
    """The server as the top shows it, once it has this status."""
    cells.flow()
    while True:
        shown: dict[str, Any] = cells.app().get(f"/compute/v2.1/servers/{server_id}")["server"]
        if shown["status"] == status:
            return shown
        assert shown["status"] in ("BUILD", "RESERVED"), shown
        cells.settle()
        cells.flow()


def test_a_server_is_booted_in_the_cell_of_the_part(cells: CellFamily) -> None:
    answer = cells.app()("POST", "/reservation/v1/leases", cells.wire_order(least=1, cell="right"))
    assert answer.status_code == 201, answer.get_data(as_text=True)
    (one,) = answer.get_json()["lease"]["reservations"]
    assert [(part["cell"], part["state"], part["hosts"]) for part in one["parts"]] == [(RIGHT, "confirmed", 1)]
    assert "zone" not in one["parts"][0]
    server_id = boot(cells, one["id"])
    at_top(cells, server_id, "ACTIVE")
    assert cells.site("right").look(server_id).node == "right-n1"
    assert cells.app()("DELETE", f"/reservation/v1/leases/{one['lease_id']}").status_code == 204
    cells.settle(60)
    assert cells.app()("GET", f"/reservation/v1/leases/{one['lease_id']}").status_code == 404
    assert cells.free("right")
    assert cells.site("right").count("compute_servers") == 0


@pytest.mark.slow
def test_servers_go_where_the_lease_has_room(cells: CellFamily) -> None:
    """Each of its two hosts of 8 GB promises half as much again: room for three servers of 4 GB."""
    cells.take("leaf", 3, start=None)
    cells.take("left", 1, start=None)
    answer = cells.app()("POST", "/reservation/v1/leases", cells.wire_order(least=2, across=True))
    assert answer.status_code == 201, answer.get_data(as_text=True)
    (one,) = answer.get_json()["lease"]["reservations"]
    assert [part["cell"] for part in one["parts"]] == [LEFT, RIGHT]
    for _ in range(6):
        at_top(cells, boot(cells, one["id"], flavorRef="h"), "ACTIVE")
    counts = {name: cells.site(name).count("compute_servers", "status = 'ACTIVE'") for name in PATHS}
    assert counts == {"left": 3, "right": 3, "leaf": 0}
    with cells.running():
        refused = cells.app().boot({"reservation": one["id"]}, flavorRef="h")
    assert refused.status_code == 409
    assert "The cells of the lease have no room for 1 servers" in refused.get_data(as_text=True)


def spread(cells: CellFamily, *full: tuple[str, int]) -> str:
    """The reservation of a lease over two cells with a host each, the hosts of others being taken."""
    for name, hosts in full:
        cells.take(name, hosts, start=None)
    answer = cells.app()("POST", "/reservation/v1/leases", cells.wire_order(least=2, across=True))
    assert answer.status_code == 201, answer.get_data(as_text=True)
    (one,) = answer.get_json()["lease"]["reservations"]
    assert [part["hosts"] for part in one["parts"]] == [1, 1]
    cells.settle()
    return str(one["id"])


def boot_many(cells: CellFamily, reservation: str, least: int, most: int) -> Any:
    """Servers of 4 GB in one request; a host of the lease has room for three."""
    with cells.running():
        return cells.app().boot({"reservation": reservation}, flavorRef="h", min_count=least, max_count=most)


def listed(cells: CellFamily) -> list[dict[str, Any]]:
    """All servers as the top shows them, by name, once none is being built."""
    for _ in range(100):
        cells.flow()
        cells.settle()
        found: list[dict[str, Any]] = cells.app().get("/compute/v2.1/servers/detail")["servers"]
        if all(one["status"] != "BUILD" for one in found):
            break
    return sorted(found, key=lambda one: str(one["name"]))


def there(cells: CellFamily) -> dict[str, list[str]]:
    """Names of the servers that each cell has."""
    found = {}
    for name in PATHS:
        with cells.tree[name].engine.connect() as conn:
            names = conn.execute(text("SELECT name FROM compute_servers ORDER BY launch_index")).scalars()
            found[name] = list(names)
    return found


@pytest.mark.slow
def test_servers_of_one_request_are_divided_over_the_cells(cells: CellFamily) -> None:
    """Both parts are reached through one cell, which tells the two builds apart."""
    reservation = spread(cells, ("left", 2), ("leaf", 2))
    assert boot_many(cells, reservation, 5, 5).status_code == 202
    found = listed(cells)
    assert [(one["name"], one["status"]) for one in found] == [(f"s1-{place}", "ACTIVE") for place in range(1, 6)]
    with cells.tree["top"].engine.connect() as conn:
        live = "SELECT DISTINCT build_id FROM compute_cell_servers WHERE deleted_at IS NULL"
        assert len(conn.execute(text(live)).all()) == 1
    booted = there(cells)
    assert sorted(len(names) for names in booted.values()) == [0, 2, 3]
    assert sorted(name for names in booted.values() for name in names) == [one["name"] for one in found]


@pytest.mark.slow
def test_more_servers_than_all_cells_have_room_for_are_refused_as_a_whole(cells: CellFamily) -> None:
    reservation = spread(cells, ("leaf", 3), ("left", 1))
    refused = boot_many(cells, reservation, 7, 9)
    assert refused.status_code == 409
    said = refused.get_data(as_text=True)
    assert f"no room for 7 servers: cell {LEFT}: room for 3; cell {RIGHT}: room for 3" in said
    assert listed(cells) == []
    assert boot_many(cells, reservation, 2, 9).status_code == 202
    assert [one["status"] for one in listed(cells)] == 6 * ["ACTIVE"]


@pytest.mark.slow
def test_divided_servers_count_against_the_quota_of_the_top(cells: CellFamily) -> None:
    reservation = spread(cells, ("leaf", 3), ("left", 1))
    with cells.tree["top"].engine.begin() as conn:
        given = {"project_id": MEMBER.project_id, "most": 4}
        conn.execute(
            text(
                "INSERT INTO compute_quotas (project_id, instances, cores, ram_mb) VALUES (:project_id, :most, -1, -1) "
                "ON CONFLICT (project_id) DO UPDATE SET instances = :most, cores = -1, ram_mb = -1"
            ),
            given,
        )
    refused = boot_many(cells, reservation, 5, 5)
    assert refused.status_code == 403
    assert "Quota exceeded for instances: Requested 5" in refused.get_data(as_text=True)
    assert boot_many(cells, reservation, 2, 5).status_code == 202
    assert [one["name"] for one in listed(cells)] == ["s1-1", "s1-2", "s1-3", "s1-4"]
    assert sorted(len(names) for names in there(cells).values()) == [0, 1, 3]


@pytest.mark.slow
def test_a_lease_that_has_not_started_is_refused_at_the_top(cells: CellFamily) -> None:
    lease = cells.make(hosts_wanted(1), start=1)
    answer = cells.app().boot({"reservation": str(lease.reservations[0].id)})
    assert answer.status_code == 409
    assert "starts at" in answer.get_data(as_text=True)


@pytest.mark.slow
def test_another_project_cannot_boot_on_the_part(cells: CellFamily) -> None:
    order = cells.order(hosts_wanted(1, cell="right"), start=None)
    (part,) = leases.create(cells.parent, replace(MEMBER, project_id="another"), order).parts
    cells.settle()
    cells.report()
    server_id = cells.app().booted({"reservation": str(part.reservation_id)})
    fault = at_top(cells, server_id, "ERROR")["fault"]["message"]
    assert "not found" in fault
    assert cells.site("right").count("compute_servers") == 0


@pytest.mark.slow
def test_a_server_that_sleeps_does_so_in_the_cell_that_was_chosen(cells: CellFamily) -> None:
    start, end = cells.now() + timedelta(hours=1), cells.now() + timedelta(hours=2)
    params = {"name": "nap", "start": f"{start:%Y-%m-%d %H:%M}", "end": f"{end:%Y-%m-%d %H:%M}"}
    server_id = cells.app().booted({"reserved": True, "lease_params": params})
    at_top(cells, server_id, "RESERVED")
    assert cells.site("leaf").look(server_id).node == ORDINARY
    (lease,) = cells.of("leaf")
    assert (lease.project_id, lease.reservations[0].resource_id) == (MEMBER.project_id, server_id)
    assert cells.of("top") == []
    cells.clock.forward(hours=1)
    cells.settle(60)
    at_top(cells, server_id, "ACTIVE")
