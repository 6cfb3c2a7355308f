"""A server of another size: room for both sizes is held until it is decided which one stays."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

from climate.compute.errors import BadRequest, Busy, Conflict, NoValidHost, QuotaExceeded, VirtError
from climate.compute.models.image import Image
from climate.compute.models.server import ACTIVE, DELETE, ERROR, REVERT, SHUTOFF, STOP, VERIFY_RESIZE, Room, Server
from climate.compute.nodes.services import IMAGE_ID
from climate.compute.servers import actions, resize
from climate.compute.servers.interfaces import interfaces
from climate.compute.servers.interfaces.interfaces import Requester
from climate.compute.store.projects import images, quotas
from climate.compute.store.servers import servers
from climate.compute.virt import Guest
from tests.compute.cloud_factory import HALF, TINY, Place
from tests.system.stack import await_so

FEW_BUT_LARGE = replace(TINY, id="l", name="large", vcpus=1, ram_mb=256, disk_gb=40)
HUGE = replace(TINY, id="x", name="huge", vcpus=8, ram_mb=64000)
BY = {"project_id": "demo", "user_id": "dora", "request_id": "req-1"}
WAITS = "datname = current_database() AND wait_event_type = 'Lock'"


def resized(here: Place, server: Server, to: object = HALF) -> Server:
    resize.resize(here.compute, server.id, to)  # type: ignore[arg-type]
    here.settle()
    return here.look(server.id)


def revert(here: Place, server: Server) -> Server:
    actions.request_task(here.compute, server.id, REVERT)
    here.settle()
    return here.look(server.id)


def test_a_resized_server_runs_with_its_new_size_on_its_node(here: Place) -> None:
    before = here.boot_one()
    seen: list[Guest] = []
    run = here.driver.run

    def watch(guest: Guest) -> None:
        seen.append(guest)
        run(guest)

    here.driver.run = watch
    after = resized(here, before)
    assert (after.status, after.node_id, after.flavor, after.old_flavor) == (VERIFY_RESIZE, before.node_id, HALF, TINY)
    assert [(guest.vcpus, guest.ram_mb, guest.disk_gb) for guest in seen] == [(4, 4096, 10)]
    resize.confirm(here.compute, before.id)
    after = here.look(before.id)
    assert (after.status, after.flavor, after.old_flavor) == (ACTIVE, HALF, None)
    assert here.used(after.node or "") == (4, 4096, 10 * 1024)
    assert here.drift() == []
    assert here.count("compute_nodes", "used_servers = 1") == 1


def test_room_for_the_larger_of_both_is_held_until_it_is_decided(here: Place) -> None:
    server = here.boot_one(HALF)
    after = resized(here, server, FEW_BUT_LARGE)
    assert after.held == Room(4, 4096, 40 * 1024)
    assert here.used(after.node or "") == (4, 4096, 40 * 1024)
    back = revert(here, server)
    assert (back.status, back.flavor, back.old_flavor, back.held) == (ACTIVE, HALF, None, Room(4, 4096, 10 * 1024))
    assert here.drift() == []


def test_what_does_not_fit_is_refused_and_changes_nothing(here: Place) -> None:
    server = here.boot_one()
    for _ in range(12):
        here.boot_one(HALF)
    room = here.used(server.node or "")
    with pytest.raises(NoValidHost):
        resize.resize(here.compute, server.id, HUGE)
    assert (here.look(server.id), here.used(server.node or "")) == (server, room)
    with pytest.raises(BadRequest, match="already"):
        resize.resize(here.compute, server.id, TINY)


def test_the_quota_counts_what_is_lacking(here: Place) -> None:
    server = here.boot_one()
    with here.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_quotas SET cores = 3"))
    with pytest.raises(QuotaExceeded, match="cores: Requested 3, but already used 1 of 3"):
        resize.resize(here.compute, server.id, HALF)


def test_a_server_that_is_shut_off_stays_so(here: Place) -> None:
    server = here.boot_one()
    actions.request_task(here.compute, server.id, STOP)
    here.settle()
    here.driver.calls.clear()
    assert resized(here, server).before == SHUTOFF
    assert revert(here, server).status == SHUTOFF
    assert here.driver.calls == []


def test_a_resize_that_fails_gives_its_room_back(here: Place) -> None:
    server = here.boot_one()

    def fails(guest: Guest, *, kindly: bool = True) -> None:
        raise VirtError("stuck")

    here.driver.stop = fails
    after = resized(here, server)
    assert (after.status, after.flavor, after.held) == (ERROR, TINY, Room(1, 512, 1024))
    assert here.drift() == []


def test_deleting_gives_the_larger_room_back(here: Place) -> None:
    server = here.boot_one()
    resized(here, server)
    actions.request_task(here.compute, server.id, DELETE)
    here.settle()
    assert here.count("compute_nodes", "used_vcpus + used_ram_mb + used_disk_mb + used_servers > 0") == 0


def test_only_what_was_resized_is_confirmed(here: Place) -> None:
    server = here.boot_one()
    with pytest.raises(Conflict, match="confirmResize"):
        resize.confirm(here.compute, server.id)
    resize.resize(here.compute, server.id, HALF)
    with pytest.raises(Busy):
        resize.resize(here.compute, server.id, HALF)
    with pytest.raises(Conflict, match="resize_migrating"):
        resize.confirm(here.compute, server.id)


def test_a_flavor_that_is_too_small_for_the_image_is_refused(here: Place) -> None:
    with here.compute.engine.begin() as conn:
        images.insert(conn, Image(IMAGE_ID, "big", None, "active", "public", "raw", "bare", 1, None, min_disk_gb=5))
    server = here.boot_one(HALF, image_id=IMAGE_ID)
    with pytest.raises(BadRequest, match="too small"):
        resize.resize(here.compute, server.id, TINY)
    assert here.look(server.id) == server


def test_an_address_that_is_added_meanwhile_does_not_get_in_the_way(here: Place) -> None:
    server = here.boot_one()
    added = (here.compute, Requester(server.id, "demo", BY), server.addresses[0].network_id)
    with ThreadPoolExecutor(1) as threads:
        with here.compute.engine.begin() as conn:
            quotas.lock_limits(conn, server.project_id)
            adds = threads.submit(interfaces.add, *added)
            await_so(lambda: here.count("pg_stat_activity", WAITS) > 0, 30, "the other's waiting")
            assert servers.get(conn, server.id, lock=True) is not None
        assert len(adds.result(30).addresses) == 2


def test_a_server_that_cannot_be_read_keeps_no_other_from_its_confirmation(here: Place) -> None:
    broken, whole = sorted((resized(here, here.boot_one()) for _ in range(2)), key=lambda server: server.id)
    with here.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_servers SET updated_at = updated_at - interval '1 hour'"))
        conn.execute(text("UPDATE compute_servers SET flavor = '{}' WHERE id = :id"), {"id": broken.id})
    with capture_logs() as seen:
        resize.confirm_waiting(replace(here.compute, confirm_seconds=60))
    assert here.look(whole.id).status == ACTIVE
    assert [one["item"] for one in seen if one["log_level"] == "error"] == [broken.id]
