"""Real servers from the row to the machine and back: asked for, slept, woken, copied, killed, adopted, deleted."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from climate.compute.images import image_data
from climate.compute.models.flavor import Flavor
from climate.compute.models.server import (
    ACTIVE,
    DELETE,
    RESERVED,
    RESUME,
    SHUTOFF,
    START,
    STOP,
    SUSPEND,
    SUSPENDED,
    WAKE,
)
from climate.compute.servers import actions, create, sync_states
from climate.compute.virt import State
from climate.compute.virt.multi_node import MultiNodeDriver
from climate.compute.virt.process import ProcessDriver
from climate.compute.virt.qemu.driver import QemuDriver
from tests.compute.cloud_factory import Place, node, place, request
from tests.compute.virt.driver_cases import Subject

pytestmark = pytest.mark.slow

SMALL = Flavor("s", "small", 1, 16, 1)


@pytest.fixture(params=["qemu", "container"])
def subject(request: pytest.FixtureRequest, make_subject: Callable[[str], Subject]) -> Subject:
    made = make_subject(request.param)
    assert isinstance(made.driver, (QemuDriver, ProcessDriver))
    made.driver = replace(made.driver, stop_seconds=0.3)  # what is made without an image hears no power button
    return made


@pytest.fixture
def cloud(subject: Subject, scratch: str, tmp_path: Path) -> Iterator[Place]:
    """A cloud of one node, whose servers are what the driver makes."""
    cluster = MultiNodeDriver(lambda: [node("n1", driver="it")], {"it": subject.driver})
    with place(scratch, tmp_path / "cloud", [], cluster) as found:
        yield found
        for server_id in subject.driver.states():
            subject.driver.delete(server_id)


def do(cloud: Place, server_id: str, *tasks: str) -> str:
    """Ask for one thing after the other; the status in the end."""
    for task in tasks:
        actions.request_task(cloud.compute, server_id, task)
        cloud.settle()
    return cloud.look(server_id).status


def test_a_server_lives_through_everything(cloud: Place, subject: Subject, tmp_path: Path) -> None:
    server_id = create.reserve(cloud.compute, request(SMALL), str(uuid4())).id
    cloud.settle()
    assert cloud.look(server_id).status == RESERVED
    assert subject.driver.states() == {server_id: State.PREPARED}
    assert subject.processes(subject.guest(id=server_id)) == []
    assert do(cloud, server_id, WAKE) == ACTIVE
    assert do(cloud, server_id, SUSPEND) == SUSPENDED
    assert subject.driver.states()[server_id] in (State.PAUSED, State.SUSPENDED)
    assert do(cloud, server_id, RESUME) == ACTIVE
    image_id = actions.snapshot(cloud.compute, server_id, "copy")
    cloud.settle()
    assert do(cloud, server_id, STOP) == SHUTOFF
    assert do(cloud, server_id, START) == ACTIVE
    copy = cloud.boot_one(SMALL, image_id=image_id)
    assert copy.status == ACTIVE
    assert subject.driver.states() == {server_id: State.RUNNING, copy.id: State.RUNNING}
    for one in (server_id, copy.id):
        actions.request_task(cloud.compute, one, DELETE)
    cloud.settle()
    assert subject.driver.states() == {}
    assert (image_data.content_file(cloud.compute, image_id)).stat().st_size > 0


def test_a_restart_of_the_service_adopts_what_runs_and_notices_what_died(cloud: Place, subject: Subject) -> None:
    lives, dies = cloud.boot_one(SMALL), cloud.boot_one(SMALL)
    sleeper = create.reserve(cloud.compute, request(SMALL), str(uuid4()))
    cloud.settle()
    assert subject.homes is not None
    subject.homes.end(dies.id)
    pid = subject.homes.pid(lives.id)
    sync_states.reconcile(cloud.compute)
    cloud.settle()
    assert [cloud.look(one.id).status for one in (lives, dies, sleeper)] == [ACTIVE, SHUTOFF, RESERVED]
    assert subject.homes.pid(lives.id) == pid
    assert subject.driver.states() == {lives.id: State.RUNNING, dies.id: State.DEAD, sleeper.id: State.PREPARED}
    assert do(cloud, dies.id, START) == ACTIVE
