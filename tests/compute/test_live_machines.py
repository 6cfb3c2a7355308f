"""Live migration of real virtual machines by compute services: one, and two with homes of their own."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from climate.compute.migrations import live_migration_requests
from climate.compute.models.migration import COMPLETED, ERROR, Migration
from climate.compute.models.server import ACTIVE, Server
from climate.compute.nodes import services
from climate.compute.nodes.nodes_file import NodesFile
from climate.compute.servers import sync_states
from climate.compute.servers.tasks import task_worker
from climate.compute.store.servers import migration_lists
from climate.compute.virt import State
from climate.compute.virt.multi_node import MultiNodeDriver
from climate.compute.virt.qemu.driver import QemuDriver
from tests.compute.cloud_factory import SERVICE, Place, place
from tests.compute.virt import boot_sector
from tests.compute.virt.driver_cases import cannot, until

OTHER = "compute-2"
NODE = "- {{name: {}, driver: qemu, vcpus: 4, memory_mb: 4096, local_gb: 20}}\n"


@dataclass
class Site:
    """Two services, each with a home and a folder of machines."""

    here: Place
    services: dict[str, Any]

    def settle(self) -> None:
        while self.here.rings.rung:
            host, server_id = self.here.rings.rung.pop(0)
            task_worker.run_task(self.services[host], server_id)

    def booted(self) -> Server:
        image = self.here.image(boot_sector.image())
        made = self.here.boot(image_id=image)[0]
        self.settle()
        server = self.here.look(made.id)
        assert server.status == ACTIVE, server.fault
        self.says(server, "boot finished")
        return server

    def moved(self, server: Server, host: str) -> Server:
        live_migration_requests.live_migrate(self.here.compute, server.id, host)
        self.settle()
        return self.here.look(server.id)

    def migration(self, server: Server) -> Migration:
        with self.here.compute.engine.connect() as conn:
            return migration_lists.listed(conn, {"server_id": server.id}, 1)[0]

    def console(self, server: Server) -> str:
        home = self.services[self.here.look(server.id).service_host].home
        return (Path(home) / "machines" / server.id / "console.log").read_text()

    def says(self, server: Server, words: str) -> None:
        until(lambda: words in self.console(server), f"no {words!r}")

    def goes_on(self, server: Server) -> None:
        """Return when the guest is seen to run, and never to have been booted again."""
        before = len(self.console(server))
        until(lambda: len(self.console(server)) > before, "it stands still")
        assert len(re.findall("boot finished", self.console(server))) == 1

    def states(self, server: Server) -> dict[str, State]:
        """What each service has of the server."""
        found = {host: compute.driver.states().get(server.id) for host, compute in self.services.items()}
        return {host: state for host, state in found.items() if state is not None}


def driver(home: Path) -> MultiNodeDriver:
    return MultiNodeDriver(NodesFile(home, "nodes.yaml").nodes, {"qemu": QemuDriver(home / "machines", "tcg")})


@pytest.fixture
def site(scratch: str, tmp_path: Path) -> Iterator[Site]:
    homes = {SERVICE: tmp_path / "one", OTHER: tmp_path / "two"}
    for home, names in zip(homes.values(), (("n1", "n2"), ("m1",)), strict=True):
        home.mkdir()
        (home / "nodes.yaml").write_text("".join(map(NODE.format, names)))
    (homes[SERVICE] / "images").mkdir()
    (homes[OTHER] / "images").symlink_to(homes[SERVICE] / "images")
    if (trouble := driver(homes[SERVICE]).members["qemu"].trouble()) is not None:
        cannot(trouble)
    with place(scratch, homes[SERVICE], [], driver(homes[SERVICE])) as here:
        second = replace(here.compute, home=homes[OTHER], service_host=OTHER, driver=driver(homes[OTHER]))
        services.refresh(second)
        made = Site(here, {SERVICE: here.compute, OTHER: second})
        yield made
        for compute in made.services.values():
            for server_id in compute.driver.states():
                compute.driver.delete(server_id)


def test_a_machine_goes_on_wherever_it_is_moved(site: Site) -> None:
    """Between nodes of a service, to another service, and back: its disk and its console go with it."""
    server = site.booted()
    for host, service in ((("n2" if server.node == "n1" else "n1"), SERVICE), ("m1", OTHER), ("n1", SERVICE)):
        if site.here.look(server.id).node == host:
            continue
        after = site.moved(server, host)
        assert (after.node, after.service_host, after.status, after.task) == (host, service, ACTIVE, None)
        assert site.migration(server).status == COMPLETED, site.migration(server).error
        assert site.states(server) == {service: State.RUNNING}
        site.goes_on(server)
        for compute in site.services.values():
            sync_states.reconcile(compute)
        assert site.states(server) == {service: State.RUNNING}
        assert site.here.look(server.id).status == ACTIVE
        assert site.here.drift() == []


def test_a_disk_that_must_be_copied_is_copied(site: Site) -> None:
    server = site.booted()
    there = "m1" if server.node != "m1" else "n1"
    live_migration_requests.live_migrate(site.here.compute, server.id, there, block=False)
    site.settle()
    found = site.migration(server)
    assert (found.status, "not shared" in (found.error or "")) == (ERROR, True)
    assert site.here.look(server.id).node == server.node
    assert len(site.states(server)) == 1
    site.goes_on(server)
    live_migration_requests.live_migrate(site.here.compute, server.id, there, block=True)
    site.settle()
    found = site.migration(server)
    assert found.status == COMPLETED
    assert found.progress["disk_total_bytes"] == 1 << 30
    assert found.progress["memory_processed_bytes"] > 0
    site.goes_on(server)
