"""Servers as real processes, from the row to the process and back."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from climate.compute import drivers
from climate.compute.errors import VirtError
from climate.compute.models.server import ACTIVE, DELETE, ERROR, RESERVED, SHUTOFF, STOP, SUSPEND, SUSPENDED, WAKE
from climate.compute.nodes import nodes_file
from climate.compute.servers import actions, create, sync_states
from climate.compute.virt import Guest, State
from climate.compute.virt.multi_node import MultiNodeDriver
from climate.compute.virt.process import ProcessDriver
from climate.compute.virt.qemu.driver import QemuDriver
from climate.embedded import reaper
from tests.compute.cloud_factory import Place, node, place, request


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[ProcessDriver]:
    made = ProcessDriver(tmp_path / "servers")
    yield made
    for server_id in made.states():
        made.delete(server_id)


def end_all(driver: ProcessDriver) -> int:
    """As whoever has started everything does it, by what the driver has left on disk; how many processes that were."""
    numbers = reaper.end_servers(driver.folder.parent)
    for number in numbers:
        psutil.Process(number).wait(60)
    return len(numbers)


def test_all_guests_can_be_ended_without_the_database(driver: ProcessDriver) -> None:
    guests = [Guest(str(uuid4()), "web", "n1") for _ in range(3)]
    for one in guests:
        driver.run(one)
    assert end_all(driver) == 3
    assert set(driver.states().values()) == {State.DEAD}
    assert end_all(driver) == 0


def test_whoever_has_started_everything_knows_where_all_drivers_keep_their_guests(tmp_path: Path) -> None:
    members = drivers(tmp_path).members
    folders = {one.folder for one in members.values() if isinstance(one, (ProcessDriver, QemuDriver))}
    assert folders == {tmp_path / name for name in reaper.SERVERS}
    # The servers of a cluster are those of its members' drivers.
    assert set(members) == {"memory", "process", "container", "qemu", "cluster"}


@pytest.mark.parametrize("content", ["- {vcpus: 1}", "just text", "[", "- {name: a, vcpus: x}", "- {name: a}"])
def test_a_damaged_file_of_nodes_is_reported(tmp_path: Path, content: str) -> None:
    (tmp_path / nodes_file.FILE).write_text(content)
    with pytest.raises(VirtError):
        nodes_file.read(tmp_path)


@pytest.fixture
def real(scratch: str, tmp_path: Path, driver: ProcessDriver) -> Iterator[Place]:
    """A cloud of one node whose servers are processes."""
    nodes_file.write(tmp_path, [node("n1", driver="process")])
    cluster = MultiNodeDriver(lambda: nodes_file.read(tmp_path), {"process": driver})
    with place(scratch, tmp_path, [], cluster) as found:
        yield found


def test_from_reserved_to_gone(real: Place, driver: ProcessDriver) -> None:
    server_id = create.reserve(real.compute, request(), str(uuid4())).id
    real.settle()
    assert driver.states() == {server_id: State.PREPARED}
    actions.request_task(real.compute, server_id, WAKE)
    real.settle()
    assert (real.look(server_id).status, driver.states()) == (ACTIVE, {server_id: State.RUNNING})
    actions.request_task(real.compute, server_id, SUSPEND)
    real.settle()
    assert (real.look(server_id).status, driver.states()) == (SUSPENDED, {server_id: State.PAUSED})
    actions.request_task(real.compute, server_id, DELETE)
    real.settle()
    assert driver.states() == {}


def test_what_died_by_itself_is_noticed(real: Place, driver: ProcessDriver) -> None:
    running = real.boot_one()
    sleeping = create.reserve(real.compute, request(), str(uuid4()))
    stopped = real.boot_one()
    actions.request_task(real.compute, stopped.id, STOP)
    real.settle()
    sync_states.reconcile(real.compute)
    assert real.rings.rung == []
    assert real.look(running.id).status == ACTIVE
    end_all(driver)
    sync_states.reconcile(real.compute)
    assert real.look(running.id).status == SHUTOFF
    assert (real.look(sleeping.id).status, real.look(sleeping.id).task) == (RESERVED, None)
    assert driver.states()[sleeping.id] is State.PREPARED
    assert real.look(stopped.id).status == SHUTOFF


def test_a_reserved_server_that_lost_its_disk_is_woken_all_the_same(real: Place, driver: ProcessDriver) -> None:
    server = create.reserve(real.compute, request(), str(uuid4()))
    real.settle()
    driver.delete(server.id)
    actions.request_task(real.compute, server.id, WAKE)
    real.settle()
    assert real.look(server.id).status == ACTIVE
    assert driver.states() == {server.id: State.RUNNING}


def test_a_server_whose_image_was_deleted_before_it_was_created_is_an_error(real: Place, driver: ProcessDriver) -> None:
    made = real.image()
    server = real.boot(image_id=made)[0]
    real.drop_image(made)
    real.settle()
    found = real.look(server.id)
    assert (found.status, driver.states()) == (ERROR, {})
    assert "the image" in str(found.fault)


def test_what_belongs_to_no_server_is_cleared_away(real: Place, driver: ProcessDriver) -> None:
    stray = Guest(str(uuid4()), "stray", "n1")
    driver.prepare(stray)
    (driver.folder / "not-a-server").mkdir()
    kept = real.boot_one()
    sync_states.reconcile(real.compute)
    assert driver.states().keys() == {kept.id}
    assert (driver.folder / "not-a-server").is_dir()
