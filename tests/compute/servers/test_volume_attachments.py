"""Volumes given to servers and taken from them, with a driver that only pretends."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import insert, text

from climate.compute import volume_directory, volumes
from climate.compute.errors import Busy, Conflict, NotFound, VirtError
from climate.compute.models.server import DELETE, SHELVED_OFFLOADED, SHUTOFF, START, STOP, Server
from climate.compute.servers import actions, sync_states, volume_attachments
from climate.compute.servers.interfaces.interfaces import Requester
from climate.compute.servers.tasks import task_results
from climate.compute.store.nodes import services as service_rows
from climate.compute.store.projects.volumes import Volume
from climate.compute.store.servers import servers as server_rows
from climate.compute.store.tables.cluster_members import members
from climate.compute.virt import Guest
from climate.compute.virt.in_memory import MemoryDriver
from climate.compute.volume_directory import Directory
from tests.compute.cloud_factory import Place, node, place
from tests.compute.virt.driver_cases import cannot
from tests.lock_waits import await_blocked

POOL = str(uuid4())


class Noting(MemoryDriver):
    """Notes which volumes its guests have."""

    def __init__(self) -> None:
        super().__init__([node("n1")])
        self.seen: dict[str, list[str]] = {}
        self.refuses = False

    def run(self, guest: Guest) -> None:
        super().run(guest)
        self.seen[guest.id] = [one.id for one in guest.volumes]

    def rewire(self, guest: Guest) -> None:
        if self.refuses:
            raise VirtError("the guest does not let go")
        super().rewire(guest)
        self.seen[guest.id] = [one.id for one in guest.volumes]


@pytest.fixture
def here(scratch: str, tmp_path: Path) -> Iterator[Place]:
    with place(scratch, tmp_path, [node("n1")], Noting()) as found:
        yield found
    for home in volumes.directory(found.compute).mounted().values():
        volume_directory.release(home)


def made(here: Place, number: int = 1, project_id: str = "demo", pool: str = POOL) -> Volume:
    volumes.ensure(here.compute, volumes.ReservedVolume(pool, number, project_id, "local", "ssd", 1), 1)
    return next(one for one in volumes.of_pools(here.compute, [pool]) if one.number == number)


def look(here: Place, volume: Volume) -> Volume:
    return volumes.get(here.compute, volume.id, None)


def who(server_id: str, project_id: str | None = "demo") -> Requester:
    return Requester(server_id, project_id, {"project_id": "demo", "user_id": "dora", "request_id": "req-1"})


def test_attached_and_detached(here: Place) -> None:
    server, one, other = here.boot_one(), made(here, 1), made(here, 2)
    given = volume_attachments.attach(here.compute, who(server.id), one.id)
    assert (given.server_id, given.device, given.path, given.state) == (server.id, 1, "/dev/vdb", "attaching")
    with pytest.raises(Busy):
        volume_attachments.attach(here.compute, who(server.id), other.id)
    here.settle()
    assert look(here, one).state == "in-use"
    volume_attachments.attach(here.compute, who(server.id), other.id)
    here.settle()
    assert here.driver.seen[server.id] == [one.id, other.id]
    volume_attachments.detach(here.compute, who(server.id), one.id)
    assert look(here, one).state == "detaching"
    folder = volume_directory.data(volumes.directory(here.compute).home("local", one.id))
    here.settle()
    assert (look(here, one).state, look(here, one).server_id) == ("available", None)
    assert not os.path.ismount(folder), "nothing is left mounted of what no server has"
    assert here.driver.seen[server.id] == [other.id]
    again = volume_attachments.attach(here.compute, who(server.id), one.id)
    assert (again.device, look(here, other).device) == (1, 2), "the free place is taken again"
    here.settle()


def test_a_server_that_is_started_has_its_volumes(here: Place) -> None:
    server, one = here.boot_one(), made(here)
    actions.request_task(here.compute, server.id, STOP)
    here.settle()
    volume_attachments.attach(here.compute, who(server.id), one.id)
    here.settle()
    assert (here.look(server.id).status, look(here, one).state) == (SHUTOFF, "in-use")
    actions.request_task(here.compute, server.id, START)
    here.settle()
    assert here.driver.seen[server.id] == [one.id]


def test_a_server_that_is_deleted_leaves_its_volumes(here: Place) -> None:
    server, one = here.boot_one(), made(here)
    volume_attachments.attach(here.compute, who(server.id), one.id)
    here.settle()
    actions.request_task(here.compute, server.id, DELETE)
    here.settle()
    assert (look(here, one).state, look(here, one).server_id) == ("available", None)
    other = here.boot_one()
    volume_attachments.attach(here.compute, who(other.id), one.id)
    here.settle()
    assert here.driver.seen[other.id] == [one.id]


def test_a_server_that_is_deleted_leaves_no_volume_mounted(here: Place) -> None:
    server, folder = with_mount(here)
    actions.request_task(here.compute, server.id, DELETE)
    here.settle()
    assert not os.path.ismount(folder)


def test_a_server_that_is_shelved_leaves_no_volume_mounted(here: Place) -> None:
    server, folder = with_mount(here)
    actions.shelve(here.compute, server.id)
    here.settle()
    assert here.look(server.id).status == SHELVED_OFFLOADED
    assert not os.path.ismount(folder)


def with_mount(here: Place) -> tuple[Server, Path]:
    """A server with a volume, and the folder at which it is mounted."""
    server, one = here.boot_one(), made(here)
    volume_attachments.attach(here.compute, who(server.id), one.id)
    here.settle()
    folder = volume_directory.data(volumes.directory(here.compute).home("local", one.id))
    if not os.path.ismount(folder):
        cannot("this process may not mount")
    return server, folder


def moved_to(here: Place, server: Server, host: str) -> None:
    """The server is on the node of another service, whatever it has left here."""
    with here.compute.engine.begin() as conn:
        service_rows.beat(conn, host, here.compute.now(conn))
        query = text("UPDATE compute_nodes SET service_host = :host WHERE id = :node")
        conn.execute(query, {"host": host, "node": server.node_id})


def test_a_volume_of_a_server_here_stays_mounted(here: Place) -> None:
    _, folder = with_mount(here)
    sync_states.reconcile(here.compute)
    assert os.path.ismount(folder)


def test_a_volume_is_unmounted_whose_server_was_deleted_while_its_host_was_away(here: Place) -> None:
    server, folder = with_mount(here)
    actions.request_task(here.compute, server.id, DELETE)
    task_results.gone(here.compute, here.look(server.id))
    sync_states.reconcile(here.compute)
    assert not os.path.ismount(folder)


def test_a_volume_is_unmounted_whose_server_is_on_another_machine(here: Place) -> None:
    server, folder = with_mount(here)
    moved_to(here, server, "compute-2")
    volume_directory.mark(folder.parent, "compute-2", "another machine")
    volume_attachments.sweep(here.compute, {server.id})
    assert os.path.ismount(folder), "its guest is still here"
    sync_states.reconcile(here.compute)
    assert not os.path.ismount(folder)


def test_a_server_that_comes_back_during_the_sweep_keeps_its_mount(here: Place) -> None:
    server, folder = with_mount(here)
    moved_to(here, server, "compute-2")
    volume_directory.mark(folder.parent, "compute-2", "another machine")
    with ThreadPoolExecutor(1) as pool, here.compute.engine.begin() as conn:
        server_rows.get(conn, server.id, lock=True)
        swept = pool.submit(volume_attachments.sweep, here.compute, set())
        await_blocked(here.compute.engine, swept.done)
        back = text("UPDATE compute_nodes SET service_host = :host WHERE id = :node")
        conn.execute(back, {"host": here.compute.service_host, "node": server.node_id})
        conn.commit()
        swept.result()
    assert os.path.ismount(folder)


@pytest.mark.parametrize("machine", [None, volumes.machine()], ids=["unknown", "this machine"])
def test_a_volume_of_a_service_that_may_be_beside_stays_mounted(here: Place, machine: str | None) -> None:
    server, folder = with_mount(here)
    moved_to(here, server, "compute-2")
    if machine is not None:
        volume_directory.mark(folder.parent, "compute-2", machine)
    sync_states.reconcile(here.compute)
    assert os.path.ismount(folder)


def test_a_volume_of_a_cluster_with_a_member_here_stays_mounted(here: Place) -> None:
    server, folder = with_mount(here)
    moved_to(here, server, "compute-2")
    volume_directory.mark(folder.parent, "compute-2", "another machine")
    with here.compute.engine.begin() as conn:
        conn.execute(
            insert(members).values(
                cluster=server.node,
                service_host=here.compute.service_host,
                name="m1",
                driver="memory",
                vcpus=1,
                memory_mb=1,
                local_gb=1,
                machine="",
            )
        )
    sync_states.reconcile(here.compute)
    assert os.path.ismount(folder)


def test_a_shelved_server_takes_and_gives_volumes_at_once(here: Place) -> None:
    server, one, other = here.boot_one(), made(here, 1), made(here, 2)
    volume_attachments.attach(here.compute, who(server.id), one.id)
    here.settle()
    actions.shelve(here.compute, server.id, project_id="demo", by=who(server.id).by)
    here.settle()
    assert (here.look(server.id).status, look(here, one).state) == (SHELVED_OFFLOADED, "in-use")
    volume_attachments.attach(here.compute, who(server.id), other.id)
    volume_attachments.detach(here.compute, who(server.id), one.id)
    assert (look(here, one).state, look(here, other).state) == ("available", "in-use")
    with pytest.raises(Busy):
        volume_attachments.drop(here.compute, POOL, 2, keep=False)
    volume_attachments.drop(here.compute, POOL, 2, keep=False)
    assert volumes.of_pools(here.compute, [POOL]) == [], "an end does not wait for it"


def test_what_the_driver_cannot_do_is_as_it_was(here: Place) -> None:
    server, one, other = here.boot_one(), made(here, 1), made(here, 2)
    volume_attachments.attach(here.compute, who(server.id), one.id)
    here.settle()
    here.driver.refuses = True
    volume_attachments.detach(here.compute, who(server.id), one.id)
    here.settle()
    assert look(here, one).state == "in-use", "the guest has it still"
    volume_attachments.attach(here.compute, who(server.id), other.id)
    here.settle()
    assert (look(here, other).state, look(here, other).server_id) == ("available", None)
    assert here.look(server.id).status == "ACTIVE"


def test_what_is_refused(here: Place) -> None:
    server, one, foreign = here.boot_one(), made(here), made(here, 1, "other", str(uuid4()))
    for wrong in (foreign.id, str(uuid4()), "no-id"):
        with pytest.raises(NotFound, match="could not be found"):
            volume_attachments.attach(here.compute, who(server.id), wrong)
    with pytest.raises(NotFound):
        volume_attachments.attach(here.compute, who(server.id, "other"), foreign.id)
    with pytest.raises(NotFound, match="could not be found"):
        volume_attachments.attach(here.compute, who(server.id, None), foreign.id)
    with pytest.raises(NotFound, match="has no volume"):
        volume_attachments.detach(here.compute, who(server.id), one.id)
    volume_attachments.attach(here.compute, who(server.id), one.id)
    here.settle()
    with pytest.raises(Conflict, match=f"is attached to server {server.id} already"):
        volume_attachments.attach(here.compute, who(here.boot_one().id), one.id)
    for number in range(2, volume_attachments.MOST + 2):
        another = made(here, number)
        if number <= volume_attachments.MOST:
            volume_attachments.attach(here.compute, who(server.id), another.id)
            here.settle()
    with pytest.raises(Conflict, match="the maximum"):
        volume_attachments.attach(here.compute, who(server.id), another.id)


def test_the_end_takes_volumes_from_their_servers(here: Place) -> None:
    server, one, free = here.boot_one(), made(here, 1), made(here, 2)
    volume_attachments.attach(here.compute, who(server.id), one.id)
    here.settle()
    driver = Directory(here.compute.home / "volumes")
    with pytest.raises(Busy, match=f"are still attached to {server.id}"):
        volume_attachments.drop(here.compute, POOL, 2, keep=False)
    assert not driver.home("local", free.id).exists()
    with pytest.raises(Busy):
        volume_attachments.drop(here.compute, POOL, 2, keep=False)
    here.settle()
    volume_attachments.drop(here.compute, POOL, 2, keep=False)
    assert volumes.of_pools(here.compute, [POOL]) == []
    assert not driver.home("local", one.id).exists()
    assert here.driver.seen[server.id] == []


def test_kept_volumes_stay_with_their_servers_and_are_deleted_by_their_owners(here: Place) -> None:
    server, one = here.boot_one(), made(here)
    with pytest.raises(Conflict, match="which is not over"):
        volumes.delete(here.compute, one.id, "demo")
    volume_attachments.attach(here.compute, who(server.id), one.id)
    here.settle()
    volume_attachments.drop(here.compute, POOL, 2, keep=True)
    assert look(here, one) == replace(look(here, one), kept=True, server_id=server.id)
    with pytest.raises(Conflict, match="detach it first"):
        volumes.delete(here.compute, one.id, "demo")
    volume_attachments.detach(here.compute, who(server.id), one.id)
    here.settle()
    with pytest.raises(NotFound):
        volumes.delete(here.compute, one.id, "other")
    volumes.delete(here.compute, one.id, "demo")
    assert volumes.listed(here.compute, None) == []
