"""Evacuation: a server of a host that is down is made anew elsewhere; what its host still has of it is cleared away."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text

from climate.cloud import Refused
from climate.cloud.bundled import BundledCloud
from climate.compute import Compute, volumes
from climate.compute.errors import Conflict, NoValidHost, VirtError
from climate.compute.migrations import cold_migration, evacuation
from climate.compute.models.migration import COMPLETED, CONFIRMED, CONFIRMING, DONE, FAILED, REVERTED, Migration
from climate.compute.models.node import NodeSpec
from climate.compute.models.server import ACTIVE, ERROR, EVACUATE, MIGRATE, REVERT, SHUTOFF, STOP, VERIFY_RESIZE, Server
from climate.compute.nodes import services
from climate.compute.servers import actions, properties, resize, sync_states, volume_attachments
from climate.compute.servers.interfaces.interfaces import Requester
from climate.compute.servers.tasks import task_worker
from climate.compute.store.servers import migration_lists
from climate.compute.virt import Guest, State
from climate.compute.virt.in_memory import MemoryDriver
from tests.compute.cloud_factory import SERVICE, Place, node, place

OTHER = "compute-2"
BY = {"project_id": "demo", "user_id": "dora", "request_id": "req-1"}


class Dies(BaseException):
    """The end of a worker, which nothing in it catches."""


class Remembering(MemoryDriver):
    """A driver that knows its guests again, and of which images they were made.

    It refuses the verbs in `refuses`.
    Whoever asks it dies at the calls whose places in `deaths` come up: before or after the call has had its effect.
    """

    def __init__(self, specs: list[NodeSpec], deaths: list[bool | None]) -> None:
        super().__init__(specs)
        self.made_from: dict[str, str | None] = {}
        self.again: dict[str, Path | None] = {}
        self.deaths = deaths
        self.refuses: set[str] = set()

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in ("run", "prepare", "stop", "snapshot", "delete"):
            return found
        if name in self.refuses:
            raise VirtError(f"it cannot {name} the guest")
        return lambda *args, **named: self._mortal(lambda: found(*args, **named))

    def _mortal(self, act: Callable[[], None]) -> None:
        late = self.deaths.pop(0) if self.deaths else None
        if late is not False:
            act()
        if late is not None:
            raise Dies

    def knows_guests(self, node: str) -> bool:
        return True

    def states(self) -> dict[str, State]:  # type: ignore[override]
        return dict(self.guests)

    def _create(self, verb: str, guest: Guest, state: State) -> None:
        if guest.id not in self.guests:
            text = guest.image.read_text(encoding="utf-8") if guest.image is not None else None
            self.made_from[guest.id], self.again[guest.id] = text, guest.again
        super()._create(verb, guest, state)


@dataclass
class Two:
    """A cloud of two compute services, each with a home of its own; the folder of images is shared."""

    here: Place
    services: dict[str, Compute]
    drivers: dict[str, Remembering]

    def settle(self, *alive: str) -> None:
        """Do all work that was rung for, as far as the service that was rung is alive; all are without names."""
        while self.here.rings.rung:
            host, server_id = self.here.rings.rung.pop(0)
            if not alive or host in alive:
                with suppress(Dies):
                    task_worker.run_task(self.services[host], server_id)

    def finish(self) -> None:
        """Do what workers that died have left undone, and then the rounds."""
        with self.here.compute.engine.begin() as conn:
            conn.execute(text("UPDATE compute_servers SET worker_until = NULL"))
        while found := task_worker.unfinished(self.here.compute, wait=0, again=0):
            for host, server_id in found:
                task_worker.run_task(self.services[host], server_id)
        self.look_after()

    def boot_one(self) -> Server:
        made = self.here.boot(image_id=self.here.image(b"of the image"))[0]
        self.settle()
        return self.here.look(made.id)

    def look_after(self) -> None:
        """A round of each service."""
        for service in self.services.values():
            sync_states.reconcile(service)

    def down(self, host: str, down: bool = True) -> None:
        with self.here.compute.engine.begin() as conn:
            query = text("UPDATE compute_services SET forced_down = :down WHERE host = :host")
            conn.execute(query, {"down": down, "host": host})

    def migration(self, server: Server) -> Migration:
        with self.here.compute.engine.connect() as conn:
            return migration_lists.listed(conn, {"server_id": server.id}, 10)[0]

    def guests(self, server: Server) -> dict[str, State]:
        """What the services have of a server."""
        return {host: driver.guests[server.id] for host, driver in self.drivers.items() if server.id in driver.guests}


@pytest.fixture
def two(scratch: str, tmp_path: Path) -> Iterator[Two]:
    homes = {SERVICE: tmp_path / "one", OTHER: tmp_path / "two"}
    for home in homes.values():
        home.mkdir()
    (homes[SERVICE] / "images").mkdir()
    (homes[OTHER] / "images").symlink_to(homes[SERVICE] / "images")
    deaths: list[bool | None] = []
    drivers = {SERVICE: Remembering([node("n1")], deaths), OTHER: Remembering([node("m1"), node("m2")], deaths)}
    with place(scratch, homes[SERVICE], [], drivers[SERVICE]) as here:
        second = replace(here.compute, home=homes[OTHER], service_host=OTHER, driver=drivers[OTHER])
        services.refresh(second)
        yield Two(here, {SERVICE: here.compute, OTHER: second}, drivers)


def other(server: Server) -> str:
    return OTHER if server.service_host == SERVICE else SERVICE


def evacuated(two: Two, server: Server) -> Server:
    two.down(server.service_host or "")
    evacuation.evacuate(two.here.compute, server.id)
    two.settle(other(server))
    return two.here.look(server.id)


def test_a_server_of_a_service_that_is_up_is_not_evacuated(two: Two) -> None:
    server = two.boot_one()
    with pytest.raises(Conflict, match="still in use"):
        evacuation.evacuate(two.here.compute, server.id)
    assert two.here.look(server.id) == server


def test_a_server_of_a_dead_host_is_recreated_from_its_image(two: Two) -> None:
    server = two.boot_one()
    after = evacuated(two, server)
    assert (after.status, after.service_host, after.addresses) == (ACTIVE, other(server), server.addresses)
    assert two.drivers[other(server)].made_from[server.id] == "of the image"
    assert two.migration(server).status == DONE
    assert two.here.drift() == []


def test_the_host_that_comes_back_clears_away_what_it_has(two: Two) -> None:
    server = two.boot_one()
    evacuated(two, server)
    assert len(two.guests(server)) == 2
    two.down(server.service_host or "", False)
    sync_states.reconcile(two.services[server.service_host or ""])
    assert two.guests(server) == {other(server): State.RUNNING}
    assert two.migration(server).status == COMPLETED
    assert two.here.used(server.node or "") == (0, 0, 0)
    assert two.here.drift() == []


def test_the_host_that_comes_back_too_early_stops_the_server_and_keeps_its_disk(two: Two) -> None:
    server = two.boot_one()
    two.down(server.service_host or "")
    evacuation.evacuate(two.here.compute, server.id)
    sync_states.reconcile(two.services[server.service_host or ""])
    assert two.guests(server) == {server.service_host: State.DEAD}


def test_the_port_has_a_server_of_a_silent_host_recreated_once(two: Two) -> None:
    server, port = two.boot_one(), BundledCloud(two.here.compute)
    source = str(server.node)
    assert port.silent_hosts() == frozenset()
    with pytest.raises(Refused, match="still in use"):
        port.evacuate_server(server.id, source, 1)
    two.down(server.service_host or "")
    assert source in port.silent_hosts()
    for _ in range(2):
        port.evacuate_server(server.id, source, 1)
    two.settle(other(server))
    after = two.here.look(server.id)
    assert (after.service_host, after.status) == (other(server), ACTIVE)
    port.evacuate_server(server.id, source, 1)
    port.evacuate_server(str(uuid4()), source, 1)


def test_a_server_that_cannot_be_recreated_is_where_it_was(two: Two) -> None:
    server = two.boot_one()
    two.drivers[other(server)].broken |= {"n1", "m1", "m2"}
    after = evacuated(two, server)
    assert (after.status, after.node, after.migration_id) == (ERROR, server.node, None)
    assert "cannot make a server" in str(after.fault)
    assert two.migration(server).status == FAILED
    assert two.here.drift() == []
    assert two.here.count("compute_nodes", "used_servers > 0") == 1


def test_there_must_be_room_elsewhere(two: Two) -> None:
    server = two.boot_one()
    two.down(SERVICE)
    two.down(OTHER)
    with pytest.raises(NoValidHost):
        evacuation.evacuate(two.here.compute, server.id)
    assert two.here.look(server.id) == server


def test_the_disk_comes_along_between_services(two: Two) -> None:
    server = two.boot_one()
    cold_migration.migrate(two.here.compute, server.id, other(server))
    two.settle()
    after = two.here.look(server.id)
    assert (after.status, after.service_host) == (VERIFY_RESIZE, other(server))
    assert two.drivers[other(server)].made_from[server.id] == f"{server.name}\n"  # what a snapshot holds
    assert two.drivers[other(server)].again[server.id] == two.services[other(server)].images / str(server.image_id)
    assert two.guests(server) == {server.service_host: State.DEAD, other(server): State.RUNNING}
    assert [path.name for path in two.here.compute.images.iterdir()] == [server.image_id]
    resize.confirm(two.here.compute, server.id)
    assert two.migration(server).status == CONFIRMING
    two.settle()
    assert two.migration(server).status == CONFIRMED
    assert two.guests(server) == {other(server): State.RUNNING}
    assert two.here.drift() == []
    assert two.here.used(server.node or "") == (0, 0, 0)


def test_a_confirmation_that_was_not_heard_is_done_by_the_next_round(two: Two) -> None:
    server = two.boot_one()
    cold_migration.migrate(two.here.compute, server.id, other(server))
    two.settle()
    resize.confirm(two.here.compute, server.id)
    two.here.rings.rung.clear()
    sync_states.reconcile(two.services[server.service_host or ""])
    assert two.migration(server).status == CONFIRMED
    assert two.guests(server) == {other(server): State.RUNNING}


def test_a_server_goes_back_to_the_disk_that_was_kept(two: Two) -> None:
    server = two.boot_one()
    cold_migration.migrate(two.here.compute, server.id, other(server))
    two.settle()
    actions.request_task(two.here.compute, server.id, REVERT)
    two.settle()
    assert two.here.look(server.id).status == ACTIVE
    assert two.guests(server) == {server.service_host: State.RUNNING}
    assert two.drivers[server.service_host or ""].made_from[server.id] == "of the image"
    assert two.migration(server).status == REVERTED
    assert two.here.drift() == []


def test_a_server_that_is_shut_off_comes_with_its_disk_and_without_a_process(two: Two) -> None:
    server = two.boot_one()
    actions.request_task(two.here.compute, server.id, STOP)
    two.settle()
    cold_migration.migrate(two.here.compute, server.id, other(server))
    two.settle()
    resize.confirm(two.here.compute, server.id)
    two.settle()
    assert two.here.look(server.id).status == SHUTOFF
    assert two.guests(server) == {other(server): State.PREPARED}
    sync_states.reconcile(two.services[other(server)])
    assert two.here.look(server.id).status == SHUTOFF


def test_a_server_goes_on_at_home_when_its_destination_goes_down(two: Two) -> None:
    server = two.boot_one()
    cold_migration.migrate(two.here.compute, server.id, other(server))
    two.settle(server.service_host or "")
    assert two.here.look(server.id).service_host == other(server)
    two.down(other(server))
    sync_states.reconcile(two.services[server.service_host or ""])
    two.settle(server.service_host or "")
    after = two.here.look(server.id)
    assert (after.status, after.node, after.migration_id) == (ACTIVE, server.node, None)
    assert two.here.drift() == []


def test_an_old_disk_of_an_earlier_stay_is_never_run(two: Two) -> None:
    server = two.boot_one()
    cold_migration.migrate(two.here.compute, server.id, other(server))
    two.settle()
    resize.confirm(two.here.compute, server.id)
    two.here.rings.rung.clear()
    cold_migration.migrate(two.here.compute, server.id, server.node)
    two.settle()
    assert two.here.look(server.id).node == server.node
    assert two.drivers[server.service_host or ""].made_from[server.id] == f"{server.name}\n"
    sync_states.reconcile(two.services[server.service_host or ""])
    assert two.here.look(server.id).status == VERIFY_RESIZE
    assert two.guests(server)[server.service_host or ""] is State.RUNNING
    assert two.here.drift() == []


def test_a_disk_that_cannot_be_copied_leaves_the_server_where_it_was(two: Two) -> None:
    server = two.boot_one()

    def fails(guest: Guest, target: Path) -> None:
        raise VirtError("no room")

    two.drivers[server.service_host or ""].snapshot = fails  # type: ignore[method-assign]
    cold_migration.migrate(two.here.compute, server.id, other(server))
    two.settle()
    after = two.here.look(server.id)
    assert (after.status, after.node) == (ACTIVE, server.node)
    assert two.here.drift() == []


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", range(5))
def test_a_worker_that_dies_at_any_step_of_a_migration_loses_nothing(two: Two, step: int, late: bool) -> None:
    server = two.boot_one()
    cold_migration.migrate(two.here.compute, server.id, other(server))
    two.drivers[SERVICE].deaths[:] = [*[None] * step, late]
    two.settle()
    two.drivers[SERVICE].deaths.clear()
    two.finish()
    after = two.here.look(server.id)
    assert (after.status, after.service_host) == (VERIFY_RESIZE, other(server))
    assert two.guests(server) == {server.service_host: State.DEAD, other(server): State.RUNNING}
    assert two.here.drift() == []


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", range(4))
def test_a_worker_that_dies_at_any_step_of_going_back_loses_nothing(two: Two, step: int, late: bool) -> None:
    server = two.boot_one()
    cold_migration.migrate(two.here.compute, server.id, other(server))
    two.settle()
    actions.request_task(two.here.compute, server.id, REVERT)
    two.drivers[SERVICE].deaths[:] = [*[None] * step, late]
    two.settle()
    two.drivers[SERVICE].deaths.clear()
    two.finish()
    after = two.here.look(server.id)
    assert (after.status, after.node, after.migration_id) == (ACTIVE, server.node, None)
    assert two.guests(server) == {server.service_host: State.RUNNING}
    assert two.here.drift() == []


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", range(2))
def test_a_worker_that_dies_at_any_step_of_an_evacuation_loses_nothing(two: Two, step: int, late: bool) -> None:
    server = two.boot_one()
    two.down(server.service_host or "")
    evacuation.evacuate(two.here.compute, server.id)
    two.drivers[SERVICE].deaths[:] = [*[None] * step, late]
    two.settle(other(server))
    two.drivers[SERVICE].deaths.clear()
    two.down(server.service_host or "", False)
    two.finish()
    after = two.here.look(server.id)
    assert (after.status, after.service_host, after.migration_id) == (ACTIVE, other(server), None)
    assert two.guests(server) == {other(server): State.RUNNING}
    assert two.here.drift() == []


def share(two: Two) -> None:
    """Let the services have one home."""
    for service in two.services.values():
        for host in two.services:
            (service.home / "services" / host).touch()


def test_with_a_shared_home_the_disk_stays_where_it_is(two: Two) -> None:
    share(two)
    server = two.boot_one()
    two.drivers[other(server)].guests[server.id] = State.DEAD  # as it is seen in the same folder
    cold_migration.migrate(two.here.compute, server.id, other(server))
    two.settle()
    assert two.here.look(server.id).status == VERIFY_RESIZE
    assert "snapshot" not in {verb for driver in two.drivers.values() for verb, _ in driver.calls}
    assert "delete" not in {verb for driver in two.drivers.values() for verb, _ in driver.calls}
    resize.confirm(two.here.compute, server.id)
    two.settle()
    assert two.guests(server)[other(server)] is State.RUNNING
    assert two.migration(server).status == CONFIRMED
    assert "delete" not in {verb for driver in two.drivers.values() for verb, _ in driver.calls}


def test_with_a_shared_home_a_server_is_started_from_its_disk_after_its_host_is_gone(two: Two) -> None:
    share(two)
    server = two.boot_one()
    two.drivers[other(server)].guests[server.id] = State.DEAD
    after = evacuated(two, server)
    assert after.status == ACTIVE
    assert server.id not in two.drivers[other(server)].made_from


def test_a_home_that_only_looks_shared_loses_no_disk(two: Two) -> None:
    share(two)
    server = two.boot_one()
    cold_migration.migrate(two.here.compute, server.id, other(server))
    two.settle()
    after = two.here.look(server.id)
    assert (after.status, after.node) == (ACTIVE, server.node)
    assert "is not in the home" in str(two.migration(server).error)
    assert two.guests(server)[server.service_host or ""] is State.RUNNING
    assert server.id not in two.drivers[other(server)].made_from


@pytest.mark.parametrize("task", [MIGRATE, REVERT, EVACUATE])
def test_a_state_by_decree_on_the_way_leaves_the_server_at_its_source_with_its_disk(two: Two, task: str) -> None:
    server = two.boot_one()
    source = server.service_host or ""
    if task == EVACUATE:
        two.down(source)
        evacuation.evacuate(two.here.compute, server.id)
    else:
        cold_migration.migrate(two.here.compute, server.id, other(server))
        two.settle(*([source] if task == MIGRATE else []))
    if task == REVERT:
        actions.request_task(two.here.compute, server.id, REVERT)
    under_way = two.here.look(server.id)
    assert (under_way.task, under_way.service_host) == (task, other(server))
    properties.reset(two.here.compute, server.id, ERROR, by=BY)
    two.down(source, False)
    two.look_after()
    after = two.here.look(server.id)
    assert (after.status, after.node, after.migration_id) == (ERROR, server.node, None)
    assert two.guests(server) == {source: State.RUNNING if task == EVACUATE else State.DEAD}
    assert two.here.drift() == []


def test_a_server_that_cannot_leave_its_destination_again_keeps_the_disk_at_its_source(two: Two) -> None:
    server = two.boot_one()
    cold_migration.migrate(two.here.compute, server.id, other(server))
    two.settle()
    two.drivers[other(server)].refuses.add("stop")
    actions.request_task(two.here.compute, server.id, REVERT)
    two.settle()
    two.look_after()
    after = two.here.look(server.id)
    assert (after.status, after.node, after.migration_id) == (ERROR, server.node, None)
    assert two.guests(server) == {server.service_host: State.DEAD}
    assert two.here.drift() == []


def test_a_server_goes_back_from_where_its_volume_has_no_backend(two: Two) -> None:
    server = two.boot_one()
    backend = two.services[server.service_host or ""].home / "volumes" / "fast"
    backend.mkdir(parents=True)
    pool = str(uuid4())
    if server.service_host == OTHER:
        (two.here.compute.home / "volumes" / "fast").mkdir(parents=True)
    volumes.ensure(two.here.compute, volumes.ReservedVolume(pool, 1, "demo", "fast", "ssd", 1), 1)
    volume = volumes.of_pools(two.here.compute, [pool])[0]
    volume_attachments.attach(two.here.compute, Requester(server.id, "demo", BY), volume.id)
    two.settle()
    if server.service_host == OTHER:
        (two.here.compute.home / "volumes" / "fast").rename(two.here.compute.home / "gone")
        (backend / volume.id).mkdir(exist_ok=True)
    cold_migration.migrate(two.here.compute, server.id, other(server))
    two.settle()
    after = two.here.look(server.id)
    assert (after.status, after.node, after.migration_id) == (ACTIVE, server.node, None)
    assert "no storage backend 'fast'" in str(two.migration(server).error)
    assert two.guests(server) == {server.service_host: State.RUNNING}


@pytest.fixture
def mounts(tmp_path: Path) -> Iterator[Callable[[Path], None]]:
    """What mounts a file system on a folder; the test is skipped where this process may not."""
    made: list[Path] = []

    def mount(folder: Path) -> None:
        folder.mkdir(parents=True)
        words = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)]
        if subprocess.run(words, capture_output=True, check=False).returncode != 0:
            pytest.skip("this process may mount nothing")
        made.append(folder)

    yield mount
    for folder in made:
        subprocess.run(["umount", str(folder)], capture_output=True, check=False)


@pytest.mark.parametrize("known", [True, False], ids=["its room is held", "it is a stray"])
def test_a_host_that_returns_lets_go_of_the_volumes_of_a_server_that_is_elsewhere(
    two: Two, mounts: Callable[[Path], None], known: bool
) -> None:
    server = two.boot_one()
    pool = str(uuid4())
    volumes.ensure(two.here.compute, volumes.ReservedVolume(pool, 1, "demo", "local", "ssd", 1), 1)
    volume = volumes.of_pools(two.here.compute, [pool])[0]
    for service in two.services.values():
        (service.home / "volumes" / "local" / volume.id).mkdir(parents=True, exist_ok=True)
    volume_attachments.attach(two.here.compute, Requester(server.id, "demo", BY), volume.id)
    two.settle()
    old = server.service_host or ""
    data = two.services[old].home / "volumes" / "local" / volume.id / "data"
    mounts(data)
    after = evacuated(two, server)
    assert after.service_host == other(server)
    assert os.path.ismount(data)
    if not known:
        with two.here.compute.engine.begin() as conn:
            conn.execute(text("UPDATE compute_migrations SET held_node_id = NULL"))
    two.down(old, down=False)
    two.look_after()
    assert not os.path.ismount(data)
    assert two.guests(server) == {other(server): State.RUNNING}
