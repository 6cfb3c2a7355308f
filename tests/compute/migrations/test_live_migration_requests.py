"""Live migration: a running server comes to another node, whatever service dies on the way it is on exactly one."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text

from climate.compute import volumes
from climate.compute.errors import BadRequest, Busy, Conflict, NotFound, VirtError
from climate.compute.migrations import live_migration, live_migration_requests
from climate.compute.models.migration import CANCELLED, COMPLETED, ERROR, Migration
from climate.compute.models.server import ACTIVE, DELETE, LIVE_MIGRATE, PAUSE, PAUSED, SHUTOFF, STOP, Server
from climate.compute.models.server import ERROR as IN_ERROR
from climate.compute.nodes import services
from climate.compute.servers import actions, properties, sync_states, volume_attachments
from climate.compute.servers.interfaces.interfaces import Requester
from climate.compute.servers.tasks import task_worker
from climate.compute.store.servers import live_migration_steps, migration_lists
from climate.compute.virt import Guest
from climate.compute.virt.in_memory import MemoryDriver
from climate.compute.virt.live_migrator import SECRETS, Limits, LiveMigrator, MigrationCommand, Progress, Watch
from climate.sealed_secrets import Vault
from tests.compute.cloud_factory import HALF, Place, node, place

BY = {"project_id": "demo", "user_id": "dora", "request_id": "req-1"}
OTHER = "compute-2"
KEY, CONSOLE = "the key of one migration", "what the guest has printed"
VERBS = ("offer", "receive", "send", "keep", "clear")


class Died(Exception):
    """The worker is no more."""


@dataclass
class Machines:
    """Where guests are, as the world has it: node -> those that run there; those that wait there."""

    running: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, set[str]] = field(default_factory=dict)
    faults: dict[str, Exception] = field(default_factory=dict)
    """Verb -> what it raises once, after it has done its work when that is Died."""
    watched: list[MigrationCommand] = field(default_factory=list)
    during: Callable[[], None] = lambda: None
    """Done while a guest is sent."""
    afterwards: Callable[[], None] = lambda: None
    """Done when it has been sent, before anybody is told."""
    called: list[str] = field(default_factory=list)
    """The verbs, in order."""
    spared: list[bool] = field(default_factory=list)
    """For each `drop`, whether the disk was to stay."""
    heard: list[Any] = field(default_factory=list)
    """The secrets that `send` and `keep` were told, opened."""


@dataclass
class Migrator:
    """A LiveMigrator that only pretends."""

    world: Machines
    node: str
    home: str

    def offer(self, guest: Guest) -> Mapping[str, Any]:
        return self._do("offer", lambda: {"from": self.node})

    def receive(self, guest: Guest, offer: Mapping[str, Any]) -> Mapping[str, Any]:
        self._do("receive", lambda: self.world.waiting.setdefault(self.home, set()).add(guest.id))
        return {**offer, "to": self.node, "shared": offer.get("home") == self.home, SECRETS: {"key": KEY}}

    def send(self, guest: Guest, arrangement: Mapping[str, Any], limits: Limits, watch: Watch) -> Mapping[str, Any]:
        def work() -> None:
            if self.world.running[guest.id] == arrangement["to"]:
                return
            self.world.during()
            self.world.watched.append(watch(Progress(memory_total=8)))
            if self.world.watched[-1] is MigrationCommand.ABORT:
                raise VirtError("it was aborted")
            self.world.running[guest.id] = arrangement["to"]
            self.world.afterwards()

        self.world.heard.append(arrangement[SECRETS])
        self._do("send", work)
        return {SECRETS: {"console": CONSOLE}}

    def keep(self, guest: Guest, sent: Mapping[str, Any]) -> None:
        self.world.heard.append(sent.get(SECRETS))
        self._do("keep", lambda: self.world.waiting.get(self.home, set()).discard(guest.id))

    def drop(self, server_id: str, *, spare_disk: bool = False) -> None:
        self.world.spared.append(spare_disk)
        self._do("drop", lambda: self.world.waiting.get(self.home, set()).discard(server_id))

    def clear(self, guest: Guest, arrangement: Mapping[str, Any]) -> None:
        self._do("clear", lambda: None)

    def waiting(self) -> Collection[str]:
        return self.world.waiting.get(self.home, set())

    def _do(self, verb: str, work: Callable[[], Any]) -> Any:
        self.world.called.append(verb)
        fault = self.world.faults.pop(verb, None)
        if isinstance(fault, VirtError):
            raise fault
        answer = work()
        if fault is not None:
            raise fault
        return answer


@dataclass
class Driver(MemoryDriver):
    world: Machines = field(default_factory=Machines)
    home: str = "home"

    def run(self, guest: Guest) -> None:
        super().run(guest)
        self.world.running[guest.id] = guest.node

    def live(self, node: str) -> LiveMigrator | None:
        return Migrator(self.world, node, self.home)


@dataclass
class Cloud:
    """A cloud with two nodes, of one service or of two."""

    place: Place
    second: Any
    world: Machines

    def services(self) -> list[Any]:
        return [self.place.compute] if self.second is None else [self.place.compute, self.second]

    def lose_keys(self) -> None:
        """Have both services open nothing that was sealed before."""
        keys = Vault.of_this_process()
        self.place.compute, self.second = replace(self.place.compute, vault=keys), replace(self.second, vault=keys)

    def settle(self) -> None:
        """Do what was rung for, by whoever was rung; the claims of those that died have run out."""
        rings = self.place.rings.rung
        while rings:
            host, server_id = rings.pop(0)
            for compute in (one for one in self.services() if one.service_host == host):
                try:
                    task_worker.run_task(compute, server_id)
                except Died:
                    with compute.engine.begin() as conn:
                        conn.execute(text("UPDATE compute_servers SET worker_until = now() - interval '1 s'"))
                    node_host = self.place.look(server_id).service_host
                    rings.append((node_host or "", server_id))

    def look(self, server: Server) -> Server:
        return self.place.look(server.id)

    def migration(self, server: Server) -> Migration:
        with self.place.compute.engine.connect() as conn:
            return migration_lists.listed(conn, {"server_id": server.id}, 10)[0]

    def ask(self, server: Server, host: str | None = None, **wanted: Any) -> Migration:
        live_migration_requests.live_migrate(self.place.compute, server.id, host, by=BY, **wanted)
        return self.migration(server)

    def is_whole(self, server: Server) -> bool:
        """Whether the row of the server is where its guest is, and nothing is taken or waits elsewhere."""
        assert self.look(server).node == self.world.running[server.id]
        assert self.place.drift() == []
        assert self.place.count("compute_migrations", "held_node_id IS NOT NULL") == 0
        assert self.place.count("compute_servers", "migration_id IS NOT NULL") == 0
        assert not any(self.world.waiting.values())
        return True


@pytest.fixture(params=["one service", "two services"])
def cloud(request: pytest.FixtureRequest, scratch: str, tmp_path: Path) -> Iterator[Cloud]:
    world, together = Machines(), request.param == "one service"
    names = ["n1", "n2"] if together else ["n1"]
    specs = [node(name, driver="qemu") for name in names]
    with place(scratch, tmp_path / "one", specs, Driver(specs, world=world)) as here:
        second = None
        if not together:
            others = [node("n2", driver="qemu")]
            driver = Driver(others, world=world, home="other")
            second = replace(here.compute, home=tmp_path / "two", service_host=OTHER, driver=driver)
            (tmp_path / "two").mkdir()
            services.refresh(second)
        yield Cloud(here, second, world)


def booted(cloud: Cloud) -> Server:
    made = cloud.place.boot(HALF)[0]
    cloud.settle()
    return cloud.look(made)


def test_a_server_goes_on_at_another_node(cloud: Cloud) -> None:
    before = booted(cloud)
    asked = cloud.ask(before)
    shown = cloud.look(before)
    assert (asked.type, asked.status, shown.status, shown.task) == ("live-migration", "queued", ACTIVE, LIVE_MIGRATE)
    assert cloud.place.count("compute_nodes", "used_ram_mb = 4096 AND used_servers = 1") == 2
    cloud.settle()
    after = cloud.look(before)
    assert (after.status, after.task, after.fault) == (ACTIVE, None, None)
    assert after.node != before.node
    assert after.addresses == before.addresses
    assert after.launched_at == before.launched_at
    found = cloud.migration(before)
    assert (found.status, found.source_node, found.dest_node) == (COMPLETED, before.node, after.node)
    assert found.progress["memory_total_bytes"] == 8
    assert cloud.is_whole(before)


def test_a_paused_server_stays_paused(cloud: Cloud) -> None:
    server = booted(cloud)
    actions.request_task(cloud.place.compute, server.id, PAUSE)
    cloud.settle()
    cloud.ask(server)
    cloud.settle()
    assert cloud.look(server).status == PAUSED
    assert cloud.is_whole(server)


def test_secrets_are_sealed_on_their_way_through_the_database(cloud: Cloud) -> None:
    server = booted(cloud)
    cloud.ask(server)
    for _ in VERBS[:4]:
        step(cloud, server, 1)
        with cloud.place.compute.engine.connect() as conn:
            row = str(conn.execute(text("SELECT * FROM compute_servers")).one())
        assert KEY not in row
        assert CONSOLE not in row
    assert cloud.world.heard == [{"key": KEY}, {"console": CONSOLE}]
    assert cloud.migration(server).status == COMPLETED
    assert "secrets" not in row, "nothing is kept when it is over"


@pytest.mark.parametrize("cloud", ["two services"], indirect=True)
def test_services_with_different_keys_leave_the_server_where_it_was(cloud: Cloud) -> None:
    cloud.second = replace(cloud.second, vault=Vault.of_this_process())
    server = booted(cloud)
    cloud.ask(server)
    cloud.settle()
    found = cloud.migration(server)
    assert (found.status, "CLIMATE_HOME/keys" in (found.error or "")) == (ERROR, True)
    assert cloud.look(server).node == server.node
    assert cloud.is_whole(server)


def test_one_that_was_sent_while_its_state_was_decreed_loses_nothing_at_the_source(cloud: Cloud) -> None:
    """The row says that the server is at the source: its disk there is the one that counts."""
    server = booted(cloud)
    cloud.ask(server)
    cloud.world.afterwards = lambda: properties.reset(cloud.place.compute, server.id, IN_ERROR, by=BY)
    cloud.settle()
    after = cloud.look(server)
    assert (after.status, after.task, after.node) == (IN_ERROR, None, server.node)
    assert "clear" not in cloud.world.called


def test_one_whose_state_is_decreed_while_it_is_sent_goes_on_at_the_source(cloud: Cloud) -> None:
    """The sender takes the transfer back: a source that is left as it is waits for a destination that is dropped."""
    server = booted(cloud)
    cloud.ask(server)
    cloud.world.during = lambda: properties.reset(cloud.place.compute, server.id, ACTIVE, by=BY)
    cloud.settle()
    for compute in cloud.services():
        sync_states.reconcile(compute)
    assert cloud.world.watched == [MigrationCommand.ABORT]
    after = cloud.look(server)
    assert (after.status, after.task, after.node, after.fault) == (ACTIVE, None, server.node, None)
    assert cloud.is_whole(server)
    cloud.world.during = lambda: None
    cloud.ask(server)
    cloud.settle()
    assert cloud.look(server).node != server.node


@pytest.mark.parametrize("verb", VERBS)
def test_a_worker_that_died_is_succeeded_by_another(cloud: Cloud, verb: str) -> None:
    server = booted(cloud)
    cloud.ask(server)
    cloud.world.faults[verb] = Died()
    cloud.settle()
    assert cloud.world.faults == {}
    after = cloud.look(server)
    assert (after.status, after.task) == (ACTIVE, None)
    assert after.node != server.node
    assert cloud.migration(server).status == COMPLETED
    assert cloud.is_whole(server)


@pytest.mark.parametrize("verb", ["offer", "receive", "send"])
def test_what_fails_leaves_the_server_where_it_was(cloud: Cloud, verb: str) -> None:
    server = booted(cloud)
    cloud.ask(server)
    cloud.world.faults[verb] = VirtError("no way")
    cloud.settle()
    after = cloud.look(server)
    assert (after.status, after.task, after.node, after.fault) == (ACTIVE, None, server.node, None)
    found = cloud.migration(server)
    assert (found.status, found.error) == (ERROR, "no way")
    assert cloud.is_whole(server)
    cloud.ask(server)
    cloud.settle()
    assert cloud.look(server).node != server.node


def test_what_waits_is_dropped_however_often_that_fails(cloud: Cloud) -> None:
    server = booted(cloud)
    cloud.ask(server)
    cloud.world.faults.update(send=VirtError("no way"), drop=Died())
    cloud.settle()
    assert cloud.look(server).node == server.node
    assert cloud.is_whole(server)


def test_a_guest_that_ended_at_its_arrival_is_shut_off_there(cloud: Cloud) -> None:
    server = booted(cloud)
    cloud.ask(server)
    cloud.world.faults["keep"] = VirtError("it has ended")
    cloud.settle()
    after = cloud.look(server)
    assert (after.status, after.task) == (SHUTOFF, None)
    assert after.node != server.node
    assert cloud.migration(server).status == ERROR
    assert cloud.place.drift() == []


def test_what_cannot_be_cleared_at_the_source_takes_nothing_back(cloud: Cloud) -> None:
    server = booted(cloud)
    cloud.ask(server)
    cloud.world.faults["clear"] = VirtError("busy")
    cloud.settle()
    assert cloud.look(server).node != server.node
    assert cloud.is_whole(server)


def test_what_cannot_be_plugged_in_at_the_destination_takes_nothing_back(cloud: Cloud) -> None:
    compute, server = cloud.place.compute, booted(cloud)
    for other in cloud.services()[1:]:
        (other.home / "volumes").symlink_to(compute.home / "volumes")
    backend, pool = compute.home / "volumes" / "fast", str(uuid4())
    backend.mkdir(parents=True)
    volumes.ensure(compute, volumes.ReservedVolume(pool, 1, "demo", "fast", "ssd", 1), 1)
    volume_attachments.attach(compute, Requester(server.id, "demo", BY), volumes.of_pools(compute, [pool])[0].id)
    cloud.settle()
    cloud.world.during = lambda: backend.rename(compute.home / "gone") and None
    cloud.ask(server)
    cloud.settle()
    after = cloud.look(server)
    assert (after.status, after.task, after.fault) == (ACTIVE, None, None)
    assert after.node != server.node
    assert cloud.migration(server).status == COMPLETED
    assert cloud.is_whole(server)


def step(cloud: Cloud, server: Server, times: int) -> None:
    """Offer, receive, send and keep a server, the first so many of these."""
    for _ in range(times):
        host = cloud.look(server).service_host
        task_worker.run_task(next(one for one in cloud.services() if one.service_host == host), server.id)


def test_a_state_by_decree_waits_until_a_guest_that_has_arrived_is_taken_over(cloud: Cloud) -> None:
    server = booted(cloud)
    cloud.ask(server)
    step(cloud, server, 3)
    with pytest.raises(Conflict, match="has arrived at host"):
        properties.reset(cloud.place.compute, server.id, IN_ERROR, by=BY)
    cloud.settle()
    assert (cloud.look(server).status, cloud.look(server).node != server.node) == (ACTIVE, True)
    assert cloud.is_whole(server)


@pytest.mark.parametrize("steps", [1, 2])
def test_a_state_by_decree_on_the_way_leaves_the_server_where_its_guest_is(cloud: Cloud, steps: int) -> None:
    server = booted(cloud)
    cloud.ask(server)
    step(cloud, server, steps)
    properties.reset(cloud.place.compute, server.id, IN_ERROR, by=BY)
    for compute in cloud.services():
        sync_states.reconcile(compute)
    after = cloud.look(server)
    assert (after.status, after.task, after.node != server.node) == (IN_ERROR, None, False)
    assert cloud.is_whole(server)


def test_one_that_is_aborted_before_it_begins_stays(cloud: Cloud) -> None:
    server = booted(cloud)
    found = cloud.ask(server)
    with pytest.raises(Conflict, match="queued"):
        live_migration_requests.abort(cloud.place.compute, server.id, found.id, early=False)
    live_migration_requests.abort(cloud.place.compute, server.id, found.id)
    cloud.settle()
    assert cloud.migration(server).status == CANCELLED
    assert cloud.look(server).node == server.node
    assert cloud.is_whole(server)


def test_one_that_is_aborted_on_the_way_stays(cloud: Cloud) -> None:
    server = booted(cloud)
    found = cloud.ask(server)
    cloud.world.during = lambda: live_migration_requests.abort(cloud.place.compute, server.id, found.id, early=False)
    cloud.settle()
    assert cloud.migration(server).status == CANCELLED
    assert (cloud.look(server).node, cloud.look(server).status) == (server.node, ACTIVE)
    assert cloud.is_whole(server)


def test_one_can_be_hurried_while_it_runs(cloud: Cloud) -> None:
    server = booted(cloud)
    found = cloud.ask(server)
    with pytest.raises(Conflict, match="queued"):
        live_migration_requests.force_complete(cloud.place.compute, server.id, found.id)
    cloud.world.during = lambda: live_migration_requests.force_complete(cloud.place.compute, server.id, found.id)
    cloud.settle()
    assert cloud.world.watched == [MigrationCommand.COMPLETE]
    assert cloud.migration(server).status == COMPLETED
    for verb in (live_migration_requests.force_complete, live_migration_requests.abort):
        with pytest.raises(Conflict, match="completed"):
            verb(cloud.place.compute, server.id, found.id)
        with pytest.raises(NotFound):
            verb(cloud.place.compute, server.id, found.id + 1)


def test_a_server_that_is_deleted_on_the_way_leaves_nothing(cloud: Cloud) -> None:
    server = booted(cloud)
    cloud.ask(server)
    cloud.world.during = lambda: actions.request_task(cloud.place.compute, server.id, DELETE)
    cloud.settle()
    assert cloud.world.watched == [MigrationCommand.ABORT]
    with pytest.raises(NotFound):
        cloud.look(server)
    for compute in cloud.services():
        live_migration.drop_strays(compute)
    assert not any(cloud.world.waiting.values())
    assert cloud.place.drift() == []


@pytest.mark.parametrize("cloud", ["two services"], indirect=True)
def test_a_destination_that_went_down_before_it_was_ready_gives_the_server_back(cloud: Cloud) -> None:
    first, second = booted(cloud), cloud.second
    there = OTHER if first.service_host != OTHER else cloud.place.compute.service_host
    source = cloud.place.compute if there == OTHER else second
    cloud.ask(first)
    task_worker.run_task(source, first.id)  # it has offered
    assert cloud.look(first).service_host == there
    with source.engine.begin() as conn:
        conn.execute(text("UPDATE compute_services SET forced_down = true WHERE host = :host"), {"host": there})
    sync_states.reconcile(source)
    cloud.settle()
    assert (cloud.look(first).node, cloud.look(first).task) == (first.node, None)
    assert cloud.migration(first).status == ERROR
    assert cloud.is_whole(first)


@pytest.mark.parametrize("cloud", ["two services"], indirect=True)
def test_a_guest_that_waits_for_nobody_is_dropped_by_the_round(cloud: Cloud) -> None:
    """Its disk stays where the server is: there is no other."""
    server = booted(cloud)
    cloud.world.waiting = {"home": {server.id}, "other": {server.id}}
    for compute in cloud.services():
        sync_states.reconcile(compute)
        assert cloud.world.spared.pop() is (compute.service_host == server.service_host)
    assert not any(cloud.world.waiting.values())


@pytest.mark.parametrize("cloud", ["two services"], indirect=True)
def test_a_guest_that_has_arrived_goes_on_though_the_key_was_lost_on_the_way(cloud: Cloud) -> None:
    server = booted(cloud)
    cloud.ask(server)
    step(cloud, server, 3)
    cloud.lose_keys()
    cloud.settle()
    assert cloud.look(server).node != server.node
    assert cloud.migration(server).status == COMPLETED
    assert cloud.is_whole(server)


@pytest.mark.parametrize("cloud", ["two services"], indirect=True)
def test_a_worker_that_died_over_a_guest_that_ended_at_its_arrival_spares_the_disk(cloud: Cloud) -> None:
    server = booted(cloud)
    cloud.ask(server)
    step(cloud, server, 3)
    with cloud.place.compute.engine.begin() as conn:
        live_migration_steps.note(conn, server.id, {live_migration.FAILED: "it has ended"})
    cloud.settle()
    after = cloud.look(server)
    assert (after.status, after.node != server.node) == (SHUTOFF, True)
    assert cloud.world.spared == [True]


@pytest.mark.parametrize("block", [True, False])
def test_a_disk_is_copied_as_it_is_asked_for(cloud: Cloud, block: bool) -> None:
    """The driver says here that the disk is not shared."""
    server = booted(cloud)
    cloud.ask(server, block=block)
    cloud.settle()
    assert (cloud.migration(server).status, cloud.look(server).node != server.node) == (
        (COMPLETED, True) if block else (ERROR, False)
    )
    assert cloud.is_whole(server)


def test_what_cannot_be_migrated_is_refused_and_changes_nothing(cloud: Cloud) -> None:
    compute, server = cloud.place.compute, booted(cloud)
    with pytest.raises(BadRequest, match="nowhere"):
        live_migration_requests.live_migrate(compute, server.id, "nowhere")
    with pytest.raises(BadRequest, match="already"):
        live_migration_requests.live_migrate(compute, server.id, server.node)
    with pytest.raises(NotFound):
        live_migration_requests.live_migrate(compute, "11111111-1111-4111-8111-111111111111")
    cloud.ask(server)
    with pytest.raises(Busy):
        live_migration_requests.live_migrate(compute, server.id)
    cloud.settle()
    actions.request_task(compute, server.id, STOP)
    cloud.settle()
    with pytest.raises(Conflict, match="stopped"):
        live_migration_requests.live_migrate(compute, server.id)


def test_drivers_that_cannot_are_reported(here: Place) -> None:
    with here.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_nodes SET driver = 'process'"))
    server = here.boot_one()
    with pytest.raises(BadRequest, match="driver process"):
        live_migration_requests.live_migrate(here.compute, server.id)
    assert here.look(server.id).task is None
