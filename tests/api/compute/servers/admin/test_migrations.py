"""Servers moved to other hosts over HTTP, and the list of migrations, by microversion."""

from typing import Any

import pytest
from sqlalchemy import text

from climate.compute.models.migration import LIVE, RUNNING
from climate.compute.store.servers import migrations as rows
from tests.api.compute.api_clients import Person, World, done, message

C = "/compute/v2.1"
LATEST = {"OpenStack-API-Version": "compute 2.79"}


@pytest.fixture
def open_nodes(there: World) -> World:
    """All nodes are for ordinary servers."""
    with there.climate.engine.begin() as conn:
        conn.execute(text("UPDATE compute_nodes SET pool = NULL"))
    return there


def acted(who: Person, server_id: str, action: str, details: Any = None, version: str = "2.79") -> Any:
    path, headers = f"{C}/servers/{server_id}/action", {"OpenStack-API-Version": f"compute {version}"}
    return who("POST", path, {action: details}, headers=headers)


def booted(there: World, member: Person) -> str:
    server_id = member.booted()
    there.settle()
    return server_id


def moved(there: World, member: Person, admin: Person) -> str:
    server_id = booted(there, member)
    done(acted(admin, server_id, "migrate"), 202)
    there.settle()
    return server_id


def listed(admin: Person, query: str = "", version: str = "2.79") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = admin.get(f"{C}/os-migrations?{query}", version)["migrations"]
    return found


def test_a_server_is_migrated_and_confirmed(open_nodes: World, member: Person, admin: Person) -> None:
    server_id = booted(open_nodes, member)
    before = admin.get(f"{C}/servers/{server_id}")["server"]["OS-EXT-SRV-ATTR:hypervisor_hostname"]
    done(acted(admin, server_id, "migrate"), 202)
    assert member.status(server_id) == "RESIZE"
    open_nodes.settle()
    assert member.status(server_id) == "VERIFY_RESIZE"
    (shown,) = listed(admin)
    after = admin.get(f"{C}/servers/{server_id}")["server"]["OS-EXT-SRV-ATTR:hypervisor_hostname"]
    assert (shown["source_node"], shown["dest_node"], shown["status"]) == (before, after, "finished")
    assert before != after
    done(member.act(server_id, "confirmResize"), 204)
    open_nodes.settle()
    assert member.status(server_id) == "ACTIVE"
    assert [one["status"] for one in listed(admin)] == ["confirmed"]
    told = member.get(f"{C}/servers/{server_id}/os-instance-actions")["instanceActions"]
    assert [one["action"] for one in told] == ["confirmResize", "migrate", "create"]


def test_what_a_migration_tells_depends_on_the_microversion(open_nodes: World, member: Person, admin: Person) -> None:
    server_id = moved(open_nodes, member, admin)
    ordinary = {
        *("id", "instance_uuid", "source_compute", "source_node", "dest_compute", "dest_node", "dest_host", "status"),
        *("old_instance_type_id", "new_instance_type_id", "created_at", "updated_at"),
    }
    for version, more in (("2.1", set()), ("2.23", {"migration_type"}), ("2.59", {"migration_type", "uuid"})):
        (shown,) = listed(admin, version=version)
        assert set(shown) == ordinary | more
    assert (shown["instance_uuid"], shown["migration_type"]) == (server_id, "migration")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("instance_uuid={id}", 1),
        ("instance_uuid=11111111-1111-4111-8111-111111111111", 0),
        ("status=finished", 1),
        ("status=error", 0),
        ("host=compute-1", 1),
        ("source_compute=compute-2", 0),
        ("migration_type=migration", 1),
        ("migration_type=evacuation", 0),
        ("changes-since=2020-01-01T00:00:00Z", 1),
        ("changes-since=2100-01-01T00:00:00Z", 0),
        ("changes-before=2020-01-01T00:00:00Z", 0),
    ],
)
def test_filters(open_nodes: World, member: Person, admin: Person, query: str, found: int) -> None:
    server_id = moved(open_nodes, member, admin)
    assert len(listed(admin, query.format(id=server_id))) == found


@pytest.mark.parametrize("details", [None, {}, {"host": None}])
def test_before_2_56_a_client_may_send_an_object_without_a_host(
    open_nodes: World, member: Person, admin: Person, details: Any
) -> None:
    server_id = booted(open_nodes, member)
    done(acted(admin, server_id, "migrate", details, "2.1"), 202)
    open_nodes.settle()
    assert member.status(server_id) == "VERIFY_RESIZE"


def test_pages_begin_with_the_newest(open_nodes: World, member: Person, admin: Person) -> None:
    server_id = moved(open_nodes, member, admin)
    for _ in range(2):
        done(member.act(server_id, "revertResize"), 202)
        open_nodes.settle()
        done(acted(admin, server_id, "migrate"), 202)
        open_nodes.settle()
    every = [one["uuid"] for one in listed(admin)]
    assert [one["status"] for one in listed(admin)] == ["finished", "reverted", "reverted"]
    first = admin.get(f"{C}/os-migrations?limit=2", "2.59")
    assert [one["uuid"] for one in first["migrations"]] == every[:2]
    assert f"marker={every[1]}" in first["migrations_links"][0]["href"]
    assert [one["uuid"] for one in listed(admin, f"limit=2&marker={every[1]}")] == every[2:]
    assert message(admin("GET", f"{C}/os-migrations?marker={server_id}", headers=LATEST), 400, "badRequest")
    assert message(admin("GET", f"{C}/os-migrations?limit=0", headers=LATEST), 400, "badRequest")
    assert message(admin("GET", f"{C}/os-migrations?changes-since=soon", headers=LATEST), 400, "badRequest")


def test_only_live_migrations_under_way_are_shown_with_their_server(
    open_nodes: World, member: Person, admin: Person
) -> None:
    server_id = moved(open_nodes, member, admin)
    path = f"{C}/servers/{server_id}/migrations"
    assert admin.get(path, "2.23") == {"migrations": []}
    number = listed(admin)[0]["id"]
    assert message(admin("GET", f"{path}/{number}", headers=LATEST), 404, "itemNotFound")
    with open_nodes.climate.engine.begin() as conn:
        conn.execute(
            text("UPDATE compute_migrations SET type = :type, status = :status"), {"type": LIVE, "status": RUNNING}
        )
        rows.set_progress(conn, number, {"memory_total_bytes": 1024}, open_nodes.here.compute.now(conn))
    shown = admin.get(f"{path}/{number}", "2.59")["migration"]
    assert admin.get(path, "2.59") == {"migrations": [shown]}
    assert (shown["server_uuid"], shown["memory_total_bytes"], shown["disk_total_bytes"]) == (server_id, 1024, None)
    assert listed(admin)[0]["links"][0]["href"].endswith(f"/servers/{server_id}/migrations/{number}")
    assert message(admin("GET", path, headers={}), 404, "itemNotFound")


def test_what_cannot_be_understood_is_refused(open_nodes: World, member: Person, admin: Person) -> None:
    server_id = booted(open_nodes, member)
    for details in ({"to": "gpu-1"}, "gpu-1", {"host": ""}, {"host": 3}):
        assert message(acted(admin, server_id, "migrate", details), 400, "badRequest")
    assert message(acted(admin, server_id, "migrate", {"host": "gpu-1"}, "2.55"), 400, "badRequest")
    assert "nowhere" in message(acted(admin, server_id, "migrate", {"host": "nowhere"}), 400, "badRequest")
    for details in (None, {"onSharedStorage": False}, {"force": True}, {"host": "nowhere", "more": 1}):
        assert message(acted(admin, server_id, "evacuate", details), 400, "badRequest")
    assert "still in use" in message(acted(admin, server_id, "evacuate", {}), 409, "conflictingRequest")
    assert message(acted(member, server_id, "migrate"), 403, "forbidden")
    assert message(acted(member, server_id, "evacuate", {}), 403, "forbidden")
    assert listed(admin) == []


def test_a_server_goes_to_the_host_that_is_named(open_nodes: World, member: Person, admin: Person) -> None:
    server_id = booted(open_nodes, member)
    here = admin.get(f"{C}/servers/{server_id}")["server"]["OS-EXT-SRV-ATTR:hypervisor_hostname"]
    other = next(name for name in ("gpu-1", "gpu-2", "std-1") if name != here)
    done(acted(admin, server_id, "migrate", {"host": other}, "2.56"), 202)
    open_nodes.settle()
    assert listed(admin)[0]["dest_node"] == other
