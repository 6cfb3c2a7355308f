"""Cold migration: a server comes to another node, and is confirmed there or taken back."""

import pytest

from climate.compute.errors import BadRequest, Busy, Conflict, NoValidHost, VirtError
from climate.compute.migrations import cold_migration
from climate.compute.models.migration import CONFIRMED, ERROR, FINISHED, PRE_MIGRATING, REVERTED, Migration
from climate.compute.models.server import ACTIVE, DELETE, REVERT, SHUTOFF, STOP, VERIFY_RESIZE, Server
from climate.compute.models.server import ERROR as IN_ERROR
from climate.compute.servers import actions, properties, resize, sync_states
from climate.compute.store.servers import migration_lists
from climate.compute.virt import Guest
from tests.compute.cloud_factory import HALF, TINY, Place

BY = {"project_id": "demo", "user_id": "dora", "request_id": "req-1"}


def migrated(here: Place, server: Server, host: str | None = None) -> Server:
    cold_migration.migrate(here.compute, server.id, host, by=BY)
    here.settle()
    return here.look(server.id)


def migration_of(here: Place, server: Server) -> Migration:
    with here.compute.engine.connect() as conn:
        return migration_lists.listed(conn, {"server_id": server.id}, 10)[0]


def nothing_is_taken(here: Place) -> bool:
    return here.count("compute_nodes", "used_vcpus + used_ram_mb + used_disk_mb + used_servers > 0") == 0


def test_a_server_comes_to_another_node_with_its_addresses(here: Place) -> None:
    before = here.boot_one()
    after = migrated(here, before)
    assert (after.status, after.task, after.before) == (VERIFY_RESIZE, None, ACTIVE)
    assert after.node_id != before.node_id
    assert after.addresses == before.addresses
    found = migration_of(here, before)
    assert (found.type, found.status, found.source_node, found.dest_node) == (
        "migration",
        FINISHED,
        before.node,
        after.node,
    )
    assert (found.project_id, found.user_id) == ("demo", "dora")


def test_room_is_held_on_both_nodes_until_it_is_confirmed(here: Place) -> None:
    before = here.boot_one(HALF)
    cold_migration.migrate(here.compute, before.id)
    assert migration_of(here, before).status == PRE_MIGRATING
    assert here.count("compute_nodes", "used_ram_mb = 4096 AND used_servers = 1") == 2
    here.settle()
    after = here.look(before.id)
    assert here.count("compute_nodes", "used_ram_mb = 4096 AND used_servers = 1") == 2
    assert here.drift() == []
    resize.confirm(here.compute, before.id)
    assert here.look(before.id).status == ACTIVE
    assert here.used(before.node or "") == (0, 0, 0)
    assert here.used(after.node or "") == (4, 4096, 10 * 1024)
    assert migration_of(here, before).status == CONFIRMED
    assert here.drift() == []


def test_a_server_goes_back_to_where_it_was(here: Place) -> None:
    before = here.boot_one()
    after = migrated(here, before)
    actions.request_task(here.compute, before.id, REVERT)
    here.settle()
    back = here.look(before.id)
    assert (back.status, back.node_id, back.migration_id, back.before) == (ACTIVE, before.node_id, None, None)
    assert here.used(after.node or "") == (0, 0, 0)
    assert migration_of(here, before).status == REVERTED
    assert here.drift() == []


@pytest.mark.parametrize("back", [False, True])
def test_a_server_that_is_shut_off_stays_so(here: Place, back: bool) -> None:
    server = here.boot_one()
    actions.request_task(here.compute, server.id, STOP)
    here.settle()
    here.driver.calls.clear()
    assert migrated(here, server).before == SHUTOFF
    if back:
        actions.request_task(here.compute, server.id, REVERT)
        here.settle()
    else:
        resize.confirm(here.compute, server.id)
    assert here.look(server.id).status == SHUTOFF
    assert "run" not in {verb for verb, _ in here.driver.calls}


def test_an_administrator_names_the_node_or_its_service(here: Place) -> None:
    server = here.boot_one()
    other = next(name for name in ("n1", "n2", "n3", "n4") if name != server.node)
    assert migrated(here, server, other).node == other
    resize.confirm(here.compute, server.id)
    assert migrated(here, server, "compute-1").node != other


def test_where_it_cannot_go_is_refused_and_changes_nothing(here: Place) -> None:
    server = here.boot_one()
    with pytest.raises(BadRequest, match="nowhere could not be found"):
        cold_migration.migrate(here.compute, server.id, "nowhere")
    with pytest.raises(BadRequest, match="already"):
        cold_migration.migrate(here.compute, server.id, server.node)
    assert here.look(server.id) == server
    assert here.drift() == []
    cold_migration.migrate(here.compute, server.id)
    with pytest.raises(Busy):
        cold_migration.migrate(here.compute, server.id)


def test_a_disk_of_another_driver_goes_nowhere(here: Place) -> None:
    server = here.boot_one()
    with here.compute.engine.begin() as conn:
        conn.exec_driver_sql("UPDATE compute_nodes SET driver = 'qemu' WHERE name <> %s", (server.node,))
    with pytest.raises(NoValidHost):
        cold_migration.migrate(here.compute, server.id)


def test_a_disk_on_the_members_of_a_cluster_goes_to_no_other_cluster_of_its_service(here: Place) -> None:
    server = here.boot_one()
    with here.compute.engine.begin() as conn:
        conn.exec_driver_sql("UPDATE compute_nodes SET driver = 'cluster'")
    with pytest.raises(NoValidHost):
        cold_migration.migrate(here.compute, server.id)
    assert here.look(server.id).task is None


@pytest.mark.parametrize("verb", ["stop", "run"])
def test_a_migration_that_fails_leaves_the_server_running_where_it_was(here: Place, verb: str) -> None:
    server = here.boot_one()
    works = getattr(here.driver, verb)

    def fails_once(guest: Guest, **named: bool) -> None:
        setattr(here.driver, verb, works)
        raise VirtError("stuck")

    setattr(here.driver, verb, fails_once)
    after = migrated(here, server)
    assert (after.status, after.node_id, after.task) == (ACTIVE, server.node_id, None)
    found = migration_of(here, server)
    assert (found.status, found.error) == (ERROR, "stuck")
    assert here.count("compute_nodes", "used_servers = 1") == 1
    assert here.drift() == []
    assert here.count("compute_actions", "action = 'migrate' AND message = 'Error'") == 1


@pytest.mark.parametrize("settled", [False, True])
def test_deleting_gives_the_room_of_both_nodes_back(here: Place, settled: bool) -> None:
    server = here.boot_one()
    cold_migration.migrate(here.compute, server.id)
    if settled:
        here.settle()
    actions.request_task(here.compute, server.id, DELETE)
    here.settle()
    assert nothing_is_taken(here)
    assert migration_of(here, server).held_node_id is None


def test_a_state_by_decree_ends_the_migration(here: Place) -> None:
    server = here.boot_one()
    cold_migration.migrate(here.compute, server.id)
    properties.reset(here.compute, server.id, IN_ERROR, by=BY)
    here.settle()
    sync_states.reconcile(here.compute)
    after = here.look(server.id)
    assert (after.status, after.node_id, after.migration_id) == (IN_ERROR, server.node_id, None)
    assert here.count("compute_nodes", "used_servers = 1") == 1
    assert here.drift() == []


def test_nothing_else_is_done_with_a_server_that_waits(here: Place) -> None:
    server = here.boot_one(TINY)
    migrated(here, server)
    with pytest.raises(Conflict, match="resized"):
        cold_migration.migrate(here.compute, server.id)
    with pytest.raises(Conflict, match="resized"):
        resize.resize(here.compute, server.id, HALF)
