"""A shelved server is an image and its addresses; it comes back where there is room, as it was."""

import pytest
from sqlalchemy import text

from climate.compute.errors import BadRequest, Busy, Conflict, NoValidHost, VirtError
from climate.compute.models.server import ACTIVE, DELETE, SHELVE, SHELVED_OFFLOADED, SHUTOFF, STOP, Server
from climate.compute.servers import actions, unshelve
from climate.compute.servers.tasks import task_worker
from climate.compute.virt import Guest
from tests.compute.cloud_factory import HALF, Place


def shelved(here: Place, server: Server) -> Server:
    actions.shelve(here.compute, server.id)
    here.settle()
    return here.look(server.id)


def free_claims(here: Place) -> None:
    """What a dead worker has claimed is free, as it is some seconds later."""
    with here.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_servers SET worker_until = clock_timestamp() - interval '1 second'"))


def test_a_shelved_server_is_on_no_node_and_keeps_its_addresses(here: Place) -> None:
    before = here.boot_one()
    after = shelved(here, before)
    assert (after.status, after.task, after.node_id, after.addresses) == (
        SHELVED_OFFLOADED,
        None,
        None,
        before.addresses,
    )
    assert here.driver.guests == {}
    assert here.count("compute_nodes", "used_vcpus + used_ram_mb + used_disk_mb + used_servers > 0") == 0
    image = f"id = '{after.shelved_image}' AND name = 's-shelved' AND status = 'active' AND size > 0"
    assert here.count("compute_images", image) == 1


def test_unshelving_makes_it_from_its_image_which_is_gone_then(here: Place) -> None:
    before = here.boot_one()
    image = here.compute.images / str(shelved(here, before).shelved_image)
    assert image.read_text(encoding="utf-8") == "s\n"
    made: list[Guest] = []
    run, here.driver.run = here.driver.run, lambda guest: (made.append(guest), run(guest))
    unshelve.unshelve(here.compute, before.id)
    assert here.look(before.id).task == "unshelving"
    here.settle()
    after = here.look(before.id)
    assert [guest.image for guest in made] == [image]
    assert (after.status, after.shelved_image, after.addresses) == (ACTIVE, None, before.addresses)
    assert here.count("compute_images") == 0
    assert not image.exists()
    assert here.drift() == []
    assert here.count("compute_nodes", "used_servers = 1") == 1


def test_it_comes_back_in_no_zone_that_is_not_there(here: Place) -> None:
    server = shelved(here, here.boot_one())
    with pytest.raises(BadRequest, match="availability zone is not available"):
        unshelve.unshelve(here.compute, server.id, "nowhere")
    assert here.look(server.id) == server


def test_without_room_it_stays_shelved(here: Place) -> None:
    server = shelved(here, here.boot_one(HALF))
    here.boot(HALF, count=12, least=12)
    with pytest.raises(NoValidHost):
        unshelve.unshelve(here.compute, server.id)
    assert here.look(server.id) == server


def test_a_server_whose_image_is_gone_is_not_created_without_an_image(here: Place) -> None:
    server = shelved(here, here.boot_one())
    image = here.compute.images / str(server.shelved_image)
    image.rename(image.with_name("elsewhere"))
    with pytest.raises(Conflict, match="shelved in is gone"):
        unshelve.unshelve(here.compute, server.id)
    assert here.look(server.id) == server
    image.with_name("elsewhere").rename(image)
    unshelve.unshelve(here.compute, server.id)
    here.settle()
    assert here.look(server.id).status == ACTIVE


def test_the_image_outlives_a_worker_that_dies_with_the_guest_gone(here: Place) -> None:
    server = here.boot_one()
    delete = here.driver.delete

    def dies(server_id: str) -> None:
        delete(server_id)
        raise KeyboardInterrupt

    here.driver.delete = dies
    actions.shelve(here.compute, server.id)
    with pytest.raises(KeyboardInterrupt):
        here.settle()
    here.driver.delete = delete
    image = here.compute.images / str(here.look(server.id).task_image)
    image.write_text("as it was\n", encoding="utf-8")
    free_claims(here)
    task_worker.run_task(here.compute, server.id)
    assert here.look(server.id).status == SHELVED_OFFLOADED
    assert image.read_text(encoding="utf-8") == "as it was\n"


def test_what_cannot_be_imaged_is_shut_off_and_says_why(here: Place) -> None:
    server = here.boot_one()

    def fails(guest: Guest, target: object) -> None:
        raise VirtError("no space left")

    here.driver.snapshot = fails
    after = shelved(here, server)
    assert (after.status, after.fault and after.fault["message"]) == (SHUTOFF, "no space left")
    assert here.driver.guests.keys() == {server.id}
    assert here.count("compute_images", "status = 'killed'") == 1
    assert here.drift() == []


def test_what_cannot_be_recreated_stays_shelved_and_holds_no_room(here: Place) -> None:
    server = shelved(here, here.boot_one())
    here.driver.broken.update({"n1", "n2", "n3", "n4"})
    unshelve.unshelve(here.compute, server.id)
    here.settle()
    after = here.look(server.id)
    assert (after.status, after.node_id, after.shelved_image) == (SHELVED_OFFLOADED, None, server.shelved_image)
    assert after.fault is not None
    assert here.count("compute_nodes", "used_servers > 0") == 0
    here.driver.broken.clear()
    unshelve.unshelve(here.compute, server.id)
    here.settle()
    assert (here.look(server.id).status, here.look(server.id).fault) == (ACTIVE, None)


def test_deleting_a_shelved_server_leaves_nothing(here: Place) -> None:
    server = shelved(here, here.boot_one())
    actions.request_task(here.compute, server.id, DELETE)
    assert (here.count("compute_servers"), here.count("compute_images")) == (0, 0)
    assert list(here.compute.images.iterdir()) == []
    assert here.count("compute_addresses", "server_id IS NOT NULL") == 0


def test_deleting_overtakes_shelving(here: Place) -> None:
    server = here.boot_one()
    actions.shelve(here.compute, server.id)
    snapshot = here.driver.snapshot

    def overtaken(guest: Guest, target: object) -> None:
        snapshot(guest, target)
        actions.request_task(here.compute, server.id, DELETE)

    here.driver.snapshot = overtaken
    here.settle()
    assert (here.count("compute_servers"), here.count("compute_images")) == (0, 0)
    assert list(here.compute.images.iterdir()) == []
    assert here.drift() == []


def test_only_a_shelved_server_is_unshelved_and_only_once(here: Place) -> None:
    server = here.boot_one()
    with pytest.raises(Conflict, match="active"):
        unshelve.unshelve(here.compute, server.id)
    actions.shelve(here.compute, server.id)
    with pytest.raises(Busy):
        actions.shelve(here.compute, server.id)
    assert here.look(server.id).task == SHELVE
    here.settle()
    unshelve.unshelve(here.compute, server.id)
    with pytest.raises(Busy):
        unshelve.unshelve(here.compute, server.id)
    with pytest.raises(Conflict):
        actions.request_task(here.compute, server.id, STOP)
    here.settle()
    assert here.drift() == []


def test_it_comes_back_elsewhere_when_the_node_that_was_forced_is_full(here: Place) -> None:
    server = here.boot_one(zone="nova::n2", admin=True)
    assert server.node == "n2"
    shelved(here, server)
    for _ in range(2):
        here.boot_one(HALF, zone="nova::n2", admin=True)
    unshelve.unshelve(here.compute, server.id)
    here.settle()
    after = here.look(server.id)
    assert after.status == ACTIVE
    assert after.node in ("n1", "n3", "n4")


def test_it_comes_back_elsewhere_when_the_node_that_was_forced_is_in_maintenance(here: Place) -> None:
    """A request of the owner does not inherit what an administrator was allowed at the boot."""
    server = here.boot_one(zone="nova::n2", admin=True)
    assert server.node == "n2"
    shelved(here, server)
    with here.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_nodes SET maintenance = 'new fan' WHERE name = 'n2'"))
    unshelve.unshelve(here.compute, server.id)
    here.settle()
    after = here.look(server.id)
    assert after.status == ACTIVE
    assert after.node in ("n1", "n3", "n4")
