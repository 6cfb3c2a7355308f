"""What a worker does for its nodes and servers, with real processes: two compute services over one database."""

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

from climate.compute import Compute
from climate.compute.linux import processes
from climate.compute.models.node import NodeSpec
from climate.compute.models.server import ACTIVE, ERROR, SHUTOFF, Server
from climate.compute.nodes import nodes_file, services
from climate.compute.servers import actions, create
from climate.compute.store.projects import flavors
from climate.settings import Settings
from climate.store.engine import connect
from tests.compute import network_factory
from tests.compute.cloud_factory import TINY, empty, request
from tests.databases import unsafe
from workers.tasks import WorkerContext

HOSTS = ("east", "west")


@dataclass
class Two:
    """Two workers of two services; the nodes of `east` are e1 and e2, that of `west` is w1."""

    desks: dict[str, WorkerContext]

    def compute(self, host: str = "east") -> Compute:
        return self.desks[host].deployment.compute

    def look(self, server: Server) -> Server:
        return actions.get(self.compute(), server.id)

    def boot(self, node: str) -> Server:
        """A server on a node; every ring is heard by both services."""
        made = create.boot(self.compute(), request(zone=f"nova::{node}", admin=True))[0]
        for desk in self.desks.values():
            desk.serve(made.id)
        return self.look(made)

    def restart(self, host: str) -> None:
        """A worker process ends, and another one takes its place."""
        self.desks[host].deployment.climate.engine.dispose()
        self.desks[host] = WorkerContext(self.desks[host].settings)

    def process(self, server: Server) -> psutil.Process:
        pid = processes.read(self.compute(server.service_host or "").home / "servers" / server.id / "pid")
        assert pid is not None
        return psutil.Process(pid.number)


def give(settings: Settings, *names: str) -> None:
    specs = [NodeSpec(name, 8, 8192, 100) for name in names]
    nodes_file.write(settings.home, specs, settings.nodes_file)


@pytest.fixture
def two(make_database: Callable[..., str], cloud_template: str, tmp_path: Path) -> Iterator[Two]:
    database = unsafe(make_database(cloud_template))
    engine = connect(database, pool_size=1)
    empty(engine)
    with engine.begin() as conn:
        network_factory.network(conn, "private", "10.10.0.0/26")
        flavors.insert(conn, TINY)
    engine.dispose()
    plain = Settings(database_url=database, redis_url="redis://127.0.0.1:1", nodes_file="mine.yaml")
    made = Two({host: WorkerContext(replace(plain, home=tmp_path / host, compute_host=host)) for host in HOSTS})
    give(made.desks["east"].settings, "e1", "e2")
    give(made.desks["west"].settings, "w1")
    for desk in made.desks.values():
        desk.tend()
    yield made
    for desk in made.desks.values():
        for server_id in desk.deployment.compute.driver.states():
            desk.deployment.compute.driver.delete(server_id)
        desk.deployment.climate.engine.dispose()


def test_each_worker_makes_and_tends_what_is_on_its_own_nodes(two: Two) -> None:
    east, west = two.boot("e1"), two.boot("w1")
    assert (east.status, east.service_host, west.status, west.service_host) == (ACTIVE, "east", ACTIVE, "west")
    assert set(two.compute("east").driver.states()) == {east.id}
    assert set(two.compute("west").driver.states()) == {west.id}
    for server in (east, west):
        victim = two.process(server)
        os.kill(victim.pid, signal.SIGKILL)
        victim.wait(60)
    two.desks["east"].tend()
    assert (two.look(east).status, two.look(west).status) == (SHUTOFF, ACTIVE)
    two.desks["west"].tend()
    assert two.look(west).status == SHUTOFF


def test_a_node_goes_and_comes_without_a_restart_and_a_restart_changes_nothing(two: Two) -> None:
    server = two.boot("e1")
    running = two.process(server)
    two.restart("east")
    two.desks["east"].tend()
    assert two.look(server) == server
    give(two.desks["east"].settings, "e2")
    two.desks["east"].tend()
    assert two.look(server).status == ERROR
    two.restart("east")
    give(two.desks["east"].settings, "e1", "e2", "e3")
    two.desks["east"].tend()
    assert two.look(server).status == ACTIVE
    assert two.process(server) == running
    assert two.boot("e3").status == ACTIVE


def test_work_waits_while_a_fresh_worker_does_not_know_its_nodes(two: Two) -> None:
    server = two.boot("e1")
    file = two.desks["east"].settings.home / "mine.yaml"
    good = file.read_text()
    file.write_text("- {name: e1")
    two.restart("east")
    actions.request_task(two.compute(), server.id, "powering-off")
    two.desks["east"].serve(server.id)
    two.desks["east"].tend()
    assert (two.look(server).status, two.look(server).task) == (ACTIVE, "powering-off")
    assert [service.up for service in services.listed(two.compute())] == [True, True]
    file.write_text(good)
    two.desks["east"].serve(server.id)
    assert two.look(server).status == SHUTOFF


def test_a_chore_that_fails_stops_no_other(two: Two) -> None:
    server, east = two.boot("e1"), two.compute("east")
    victim = two.process(server)
    os.kill(victim.pid, signal.SIGKILL)
    victim.wait(60)
    with east.engine.begin() as conn:
        conn.execute(text("ALTER TABLE compute_service_capabilities RENAME TO elsewhere"))
    with capture_logs() as seen:
        two.desks["east"].tend()
    assert two.look(server).status == SHUTOFF
    assert [one["item"] for one in seen if one["event"].startswith("chores of the compute service")] == [
        "report to zones"
    ]
