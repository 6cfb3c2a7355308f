"""What a RESERVED server has until it is woken: room, addresses, interfaces and a disk; and what it keeps of them."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import pytest

from climate.compute.errors import BadRequest, NoValidHost
from climate.compute.images import image_data, orphan_files
from climate.compute.models.node import NodeSpec
from climate.compute.models.server import ACTIVE, DELETE, ERROR, RESERVED, WAKE, Server
from climate.compute.nodes import nodes_file, services
from climate.compute.nodes.nodes_file import NodesFile
from climate.compute.servers import actions, create, sync_states
from climate.compute.store.projects import images as store
from climate.compute.virt import State, archive
from climate.compute.virt.multi_node import MultiNodeDriver
from climate.compute.virt.process import ProcessDriver
from tests.compute.cloud_factory import HALF, TINY, Place, node, place, request
from tests.compute.recorded_networks import Died, Wired, wired_place


@pytest.fixture
def real(scratch: str, tmp_path: Path) -> Iterator[Place]:
    """Two nodes whose servers are processes; n1 is the better one."""
    nodes_file.write(tmp_path, both())
    driver = MultiNodeDriver(NodesFile(tmp_path).nodes, {"process": ProcessDriver(tmp_path / "servers")})
    with place(scratch, tmp_path, [], driver) as found:
        yield found
        for server_id in found.driver.states():
            found.driver.delete(server_id)


@pytest.fixture
def wired(scratch: str, tmp_path: Path) -> Iterator[Wired]:
    with wired_place(scratch, tmp_path) as made:
        yield made


def both() -> Sequence[NodeSpec]:
    exact = {"driver": "process", "ram_ratio": 1.0}
    return [node("n1", **exact), node("n2", memory_mb=4096, **exact)]


def image(here: Place) -> str:
    """The id of an image with a note in it."""
    (here.compute.home / "note").write_text("from the image")
    archive.pack([(here.compute.home / "note", "note")], here.compute.home / "packed")
    return here.image((here.compute.home / "packed").read_bytes())


def reserve(here: Place, **wanted: object) -> Server:
    return create.reserve(here.compute, request(**wanted), str(uuid4()))  # type: ignore[arg-type]


def reserved(wired: Wired) -> Server:
    """One that has been prepared."""
    made = reserve(wired.here)
    wired.settle()
    return wired.here.look(made.id)


def wake(here: Place, server: Server) -> Server:
    actions.request_task(here.compute, server.id, WAKE)
    here.settle()
    return here.look(server.id)


def note(here: Place, server: Server) -> str:
    return (here.compute.home / "servers" / server.id / "disk" / "note").read_text()


def is_kept(here: Place, image_id: str) -> bool:
    return image_data.content_file(here.compute, image_id).exists()


def swept_a_day_later(here: Place, image_id: str) -> None:
    os.utime(image_data.content_file(here.compute, image_id), (0, 0))
    orphan_files.sweep(here.compute)


def test_an_image_deleted_before_the_preparation_is_there_for_it(real: Place) -> None:
    made = image(real)
    server = reserve(real, image_id=made)
    real.drop_image(made)
    swept_a_day_later(real, made)
    real.settle()
    assert (real.look(server.id).status, real.driver.states()) == (RESERVED, {server.id: State.PREPARED})
    assert (wake(real, server).status, note(real, server)) == (ACTIVE, "from the image")
    assert is_kept(real, made)
    swept_a_day_later(real, made)
    assert not is_kept(real, made)


def test_a_server_whose_image_was_deleted_is_woken_on_another_node(real: Place) -> None:
    made = image(real)
    server = reserve(real, image_id=made)
    real.settle()
    real.drop_image(made)
    nodes_file.write(real.compute.home, both()[1:])
    services.refresh(real.compute)
    awake = wake(real, server)
    assert (server.node, awake.status, awake.node, note(real, server)) == ("n1", ACTIVE, "n2", "from the image")
    assert real.drift() == []


@pytest.mark.parametrize("wakes", [True, False])
def test_the_content_of_a_deleted_image_goes_with_the_last_that_needs_it(real: Place, wakes: bool) -> None:
    made = image(real)
    first, second = reserve(real, image_id=made), reserve(real, image_id=made)
    real.settle()
    real.drop_image(made)
    for server, kept in ((first, True), (second, False)):
        actions.request_task(real.compute, server.id, WAKE if wakes else DELETE)
        real.settle()
        swept_a_day_later(real, made)
        assert is_kept(real, made) is kept


def test_the_content_of_an_image_that_no_reserved_server_needs_goes_at_once(real: Place) -> None:
    made = image(real)
    wake(real, reserve(real, image_id=made))
    real.drop_image(made)
    assert not is_kept(real, made)


def test_nothing_is_reserved_from_an_image_that_is_gone(real: Place) -> None:
    made = image(real)
    real.drop_image(made)
    with pytest.raises(BadRequest, match=f"Image {made} could not be found"):
        reserve(real, image_id=made)
    assert real.count("compute_servers") == 0
    assert real.used("n1") == (0, 0, 0)


def test_an_image_is_not_deleted_while_a_server_is_reserved_from_it(real: Place) -> None:
    """The deletion waits for the reservation, and sees it."""
    made = image(real)
    with real.compute.engine.begin() as conn, real.compute.engine.connect() as other:
        assert store.pin(conn, made)
        other.exec_driver_sql("SET lock_timeout = '50ms'")
        with pytest.raises(Exception, match="lock timeout"):
            image_data.drop(other, made)


def test_an_image_without_a_disk_in_it_fails_when_it_is_reserved_and_not_when_it_is_woken(real: Place) -> None:
    made = image(real)
    image_data.content_file(real.compute, made).unlink()
    server = reserve(real, image_id=made)
    real.settle()
    found = real.look(server.id)
    assert (found.status, real.driver.states()) == (ERROR, {})
    assert "the image" in str(found.fault)


def test_the_room_of_a_reserved_server_is_taken_though_it_uses_no_memory(real: Place) -> None:
    """Three of it fill both nodes: what is free by the books counts, and not what the machine has free."""
    made = [reserve(real, flavor=HALF, zone="nova") for _ in range(3)]
    real.settle()
    assert sorted(one.node or "" for one in made) == ["n1", "n1", "n2"]
    assert {server.status for server in (real.look(one.id) for one in made)} == {RESERVED}
    for _ in range(2):
        assert (real.used("n1")[1], real.used("n2")[1], real.drift()) == (8192, 4096, [])
        for refused in (HALF, TINY):
            with pytest.raises(NoValidHost):
                reserve(real, flavor=refused, zone="nova")
        services.refresh(real.compute)
        services.audit(real.compute)
        sync_states.reconcile(real.compute)
    gone, awake = (one for one in made if one.node == "n1")
    actions.request_task(real.compute, gone.id, DELETE)
    real.settle()
    assert (real.used("n1")[1], real.driver.states().keys()) == (4096, {one.id for one in made} - {gone.id})
    assert wake(real, awake).status == ACTIVE
    assert real.used("n1")[1] == 4096


def test_a_service_that_is_started_again_finds_reserved_servers_as_they_were(real: Place) -> None:
    server = reserve(real, image_id=image(real))
    real.settle()
    before = real.look(server.id)
    disk = (real.compute.home / "servers" / server.id / "disk").stat()
    services.refresh(real.compute)
    sync_states.reconcile(real.compute)
    assert (real.look(server.id), real.rings.rung) == (before, [])
    assert (real.compute.home / "servers" / server.id / "disk").stat() == disk


def test_a_reserved_server_is_deleted_with_all_that_it_has(real: Place) -> None:
    server = reserve(real)
    real.settle()
    actions.request_task(real.compute, server.id, DELETE)
    real.settle()
    assert (real.count("compute_servers"), real.driver.states(), real.used("n1")) == (0, {}, (0, 0, 0))
    assert real.count("compute_addresses", "server_id IS NOT NULL") == 0
    assert not (real.compute.home / "servers" / server.id).exists()


def test_a_host_that_was_started_again_has_the_interfaces_of_reserved_servers_and_they_are_down(wired: Wired) -> None:
    server = reserved(wired)
    wired.here.driver.told = True
    for host in ("c1", "c2"):
        wired.net(host).plugs.clear()
    sync_states.reconcile(wired.compute)
    wired.settle()
    after = wired.here.look(server.id)
    assert (after.status, after.task, after.addresses) == (RESERVED, None, server.addresses)
    assert not wired.plug().up
    assert wired.here.driver.guests == {server.id: State.PREPARED}


@pytest.mark.parametrize("step", range(3))
def test_a_worker_that_is_killed_while_it_wakes_a_server_is_followed_by_another(wired: Wired, step: int) -> None:
    server = reserved(wired)
    wired.steps.asked.clear()
    actions.request_task(wired.compute, server.id, WAKE)
    wired.steps.dies = step
    try:
        wired.settle()
    except Died:
        wired.restarted(server.id)
    after = wired.here.look(server.id)
    assert (after.status, after.node, after.addresses) == (ACTIVE, server.node, server.addresses)
    assert (wired.plug().up, wired.here.driver.guests) == (True, {server.id: State.RUNNING})


@pytest.mark.parametrize("step", range(4))
def test_a_reserved_server_that_is_deleted_while_it_is_prepared_leaves_nothing(wired: Wired, step: int) -> None:
    server = reserve(wired.here)
    wired.steps.dies = step
    try:
        wired.settle()
    except Died:
        actions.request_task(wired.compute, server.id, DELETE)
        wired.restarted(server.id)
        assert (wired.here.count("compute_servers"), wired.plugs(), wired.here.driver.guests) == (0, [], {})
