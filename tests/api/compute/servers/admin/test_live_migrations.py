"""Live migrations over HTTP, by microversion: begun, shown, hurried and aborted."""

from typing import Any

import pytest
from sqlalchemy import text

from tests.api.compute.api_clients import Person, World, done, message

C = "/compute/v2.1"
ANY = {"host": None, "block_migration": "auto"}


@pytest.fixture
def machines(there: World) -> World:
    """All nodes are for ordinary servers, and say that they run virtual machines."""
    with there.climate.engine.begin() as conn:
        conn.execute(text("UPDATE compute_nodes SET pool = NULL, driver = 'qemu'"))
    return there


def asked(who: Person, server_id: str, details: Any, version: str = "2.79") -> Any:
    path = f"{C}/servers/{server_id}/action"
    return who("POST", path, {"os-migrateLive": details}, headers={"OpenStack-API-Version": f"compute {version}"})


def at(who: Person, method: str, path: str, body: Any = None, version: str = "2.79") -> Any:
    return who(method, f"{C}{path}", body, headers={"OpenStack-API-Version": f"compute {version}"})


def booted(there: World, member: Person) -> str:
    server_id = member.booted()
    there.settle()
    return server_id


def begun(there: World, member: Person, admin: Person) -> tuple[str, str]:
    """A server that is asked to move, and the path of its migration."""
    server_id = booted(there, member)
    done(asked(admin, server_id, ANY), 202)
    (found,) = admin.get(f"{C}/servers/{server_id}/migrations", "2.79")["migrations"]
    return server_id, f"/servers/{server_id}/migrations/{found['id']}"


def test_a_server_that_is_moved_is_shown_as_migrating(machines: World, member: Person, admin: Person) -> None:
    server_id, path = begun(machines, member, admin)
    shown = admin.get(f"{C}/servers/{server_id}")["server"]
    assert (shown["status"], shown["OS-EXT-STS:task_state"], shown["OS-EXT-STS:vm_state"]) == (
        "MIGRATING",
        "migrating",
        "active",
    )
    assert [one["id"] for one in admin.get(f"{C}/servers?status=MIGRATING&all_tenants=1")["servers"]] == [server_id]
    found = admin.get(f"{C}{path}", "2.79")["migration"]
    assert (found["status"], found["server_uuid"]) == ("queued", server_id)
    (listed,) = admin.get(f"{C}/os-migrations", "2.79")["migrations"]
    assert (listed["migration_type"], listed["links"][0]["href"].endswith(path)) == ("live-migration", True)


def test_one_that_cannot_be_done_leaves_the_server_as_it_was(machines: World, member: Person, admin: Person) -> None:
    """The nodes of the test only say that they can."""
    server_id, path = begun(machines, member, admin)
    machines.settle()
    assert member.status(server_id) == "ACTIVE"
    assert admin.get(f"{C}/os-migrations", "2.79")["migrations"][0]["status"] == "error"
    assert message(at(admin, "GET", path), 404, "itemNotFound")
    told = member.get(f"{C}/servers/{server_id}/os-instance-actions")["instanceActions"]
    assert (told[0]["action"], told[0]["message"]) == ("os-migrateLive", "Error")


def test_one_that_has_not_begun_is_aborted_since_2_65(machines: World, member: Person, admin: Person) -> None:
    server_id, path = begun(machines, member, admin)
    assert message(at(admin, "DELETE", path, version="2.23"), 404, "itemNotFound")
    assert "queued" in message(at(admin, "DELETE", path, version="2.64"), 409, "conflictingRequest")
    done(at(admin, "DELETE", path, version="2.65"), 202)
    machines.settle()
    assert member.status(server_id) == "ACTIVE"
    assert admin.get(f"{C}/os-migrations", "2.79")["migrations"][0]["status"] == "cancelled"
    assert "cancelled" in message(at(admin, "DELETE", path), 409, "conflictingRequest")


def test_only_one_that_runs_is_hurried(machines: World, member: Person, admin: Person) -> None:
    server_id, path = begun(machines, member, admin)
    hurry = {"force_complete": None}
    assert message(at(admin, "POST", f"{path}/action", hurry, "2.21"), 404, "itemNotFound")
    assert "queued" in message(at(admin, "POST", f"{path}/action", hurry), 409, "conflictingRequest")
    for body in ({"force_complete": {}}, {"pause": None}, {}):
        assert message(at(admin, "POST", f"{path}/action", body), 400, "badRequest")
    with machines.climate.engine.begin() as conn:
        conn.execute(text("UPDATE compute_migrations SET status = 'running'"))
    done(at(admin, "POST", f"{path}/action", hurry), 202)
    for number in ("0", "x", "1" * 40):
        assert message(at(admin, "DELETE", f"/servers/{server_id}/migrations/{number}"), 404, "itemNotFound")
    assert message(at(member, "POST", f"{path}/action", hurry), 403, "forbidden")
    assert message(at(member, "DELETE", path), 403, "forbidden")


@pytest.mark.parametrize(
    ("details", "version"),
    [
        (None, "2.79"),
        ({"host": None}, "2.79"),
        ({"block_migration": "auto"}, "2.79"),
        ({"host": "", "block_migration": "auto"}, "2.79"),
        ({"host": None, "block_migration": "perhaps"}, "2.79"),
        ({"host": None, "block_migration": "auto", "force": True}, "2.68"),
        ({"host": None, "block_migration": "auto", "force": True}, "2.29"),
        ({"host": None, "block_migration": "auto", "disk_over_commit": False}, "2.25"),
        ({"host": None, "block_migration": "auto", "disk_over_commit": False}, "2.24"),
        ({"host": None, "block_migration": False}, "2.24"),
        ({"host": "nowhere", "block_migration": "auto"}, "2.79"),
    ],
)
def test_what_cannot_be_understood_is_refused(
    machines: World, member: Person, admin: Person, details: Any, version: str
) -> None:
    server_id = booted(machines, member)
    assert message(asked(admin, server_id, details, version), 400, "badRequest")
    assert member.status(server_id) == "ACTIVE"


@pytest.mark.parametrize(
    ("details", "version"),
    [
        ({"host": None, "block_migration": False, "disk_over_commit": False}, "2.1"),
        ({"host": None, "block_migration": True}, "2.25"),
        ({"host": None, "block_migration": "auto", "force": False}, "2.30"),
    ],
)
def test_each_microversion_has_its_form(
    machines: World, member: Person, admin: Person, details: Any, version: str
) -> None:
    server_id = booted(machines, member)
    done(asked(admin, server_id, details, version), 202)
    assert message(asked(admin, server_id, details, version), 409, "conflictingRequest")


def test_a_server_of_another_driver_and_one_that_is_shut_off_are_refused(
    machines: World, member: Person, admin: Person
) -> None:
    server_id = booted(machines, member)
    assert message(asked(member, server_id, ANY), 403, "forbidden")
    with machines.climate.engine.begin() as conn:
        conn.execute(text("UPDATE compute_nodes SET driver = 'container'"))
    assert "driver container" in message(asked(admin, server_id, ANY), 400, "badRequest")
    done(member.act(server_id, "os-stop"), 202)
    machines.settle()
    assert "stopped" in message(asked(admin, server_id, ANY), 409, "conflictingRequest")
