"""A running machine moves between two machines that see nothing of each other's files, and its disk stays whole."""

import contextlib
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from climate.cloud.bundled import BundledCloud
from climate.compute.linux import processes
from climate.compute.migrations import evacuation_plan, live_migration_requests
from climate.compute.models.migration import CANCELLED, COMPLETED, ERROR, LIVE, Migration
from climate.compute.models.server import ACTIVE, Server
from climate.compute.store.servers import migration_lists
from climate.compute.virt import State
from climate.compute.virt.qemu.live_migration import INCOMING
from climate.sandbox.topology import Lab
from tests.compute.cloud_factory import Place, place
from tests.compute.virt import counting_sector
from tests.compute.virt.driver_cases import until
from tests.databases import Databases, unsafe
from tests.netlab import guests, machine_service
from tests.netlab.machine_service import MachineService

pytestmark = [pytest.mark.netlab("qemu-system-x86_64", "qemu-img"), pytest.mark.timeout(300)]

RANDOM_MB = 48
_FORCED_BUFFER = 33
"""SO_RCVBUFFORCE of Linux, which Python has no name for."""

SOME_BYTES = 8 << 20
"""By then the copy of the disk is under way, and not nearly done."""


@dataclass
class Machines:
    """Two compute services, and the cloud that they work for."""

    here: Place
    services: dict[str, MachineService]
    image: str

    def settle(self) -> None:
        while self.here.rings.rung:
            host, server_id = self.here.rings.rung.pop(0)
            self.hear(self.services[host].ask("carry out", server_id))

    def hear(self, answer: Any) -> None:
        self.here.rings.rung += [(host, server_id) for host, server_id in answer["rung"]]

    def booted(self) -> Server:
        """A server that counts on its disk."""
        made = self.here.boot(image_id=self.image)[0]
        self.settle()
        server = self.here.look(made.id)
        assert server.status == ACTIVE, server.fault
        self.counts(server)
        return server

    def console(self, server: Server) -> str:
        home = self.services[str(self.here.look(server.id).service_host)].home
        return (home / "machines" / server.id / "console.log").read_text()

    def counts(self, server: Server) -> None:
        """Return when the guest is seen to go on."""
        before = len(counting_sector.printed(self.console(server)))
        until(lambda: len(counting_sector.printed(self.console(server))) > before + 3, "it stands still")

    def other(self, server: Server) -> str:
        return next(name for name in self.services if name != self.here.look(server.id).service_host)

    def receive(self, server: Server) -> MachineService:
        """Ask for a live migration, and see it through to where the source is to send the guest; the source."""
        source = self.services[str(server.service_host)]
        live_migration_requests.live_migrate(self.here.compute, server.id, self.other(server))
        while not (self.waits(server) / "pid").exists() or self.here.look(server.id).service_host != source.name:
            assert self.here.rings.rung, self.migration(server).error
            host, server_id = self.here.rings.rung.pop(0)
            self.hear(self.services[host].ask("carry out", server_id))
        return source

    def copying(self, server: Server) -> MachineService:
        """Have the disk be copied, slowly; the source, which has not answered yet."""
        slow(str(server.service_host))
        source = self.receive(server)
        source.tell("carry out", server.id)
        disk = self.disk_there(server)
        until(lambda: disk.stat().st_size > SOME_BYTES, "the copy does not begin")
        return source

    def waits(self, server: Server) -> Path:
        there = next(one for name, one in self.services.items() if name != server.service_host)
        return there.home / "machines" / server.id / INCOMING

    def disk_there(self, server: Server) -> Path:
        return self.waits(server).parent / "disk.qcow2"

    def migration(self, server: Server) -> Migration:
        with self.here.compute.engine.connect() as conn:
            return migration_lists.listed(conn, {"server_id": server.id}, 1)[0]

    def stays(self, server: Server, source: MachineService, status: str = ERROR) -> None:
        """Hear the source to the end, and return when the server is there and nowhere else, with its migration over."""
        self.hear(source.answer())
        fast(source.name)
        self.settle()
        for one in self.services.values():
            one.ask("reconcile")
        assert self.migration(server).status == status
        self.only_at(server, source.name)

    def moves_later(self, server: Server) -> None:
        """Move the server to the other machine after all."""
        there = self.other(server)
        live_migration_requests.live_migrate(self.here.compute, server.id, there)
        self.settle()
        found = self.migration(server)
        assert found.status == COMPLETED, found.error
        self.only_at(server, there)

    def restart(self, server: Server, service: MachineService) -> None:
        """Kill a service in the midst of its work, of which it is not known to be dead, and start it again."""
        service.end()
        fast(service.name)
        with self.here.compute.engine.begin() as conn:
            conn.execute(text("UPDATE compute_servers SET worker_until = now() - interval '1 s'"))
        service.process = service.again()
        self.here.rings(service.name, server.id)

    def states(self) -> dict[str, dict[str, str]]:
        """What each service has."""
        return {name: one.ask("look")["states"] for name, one in self.services.items()}

    def only_at(self, server: Server, host: str) -> None:
        """Return when the server runs at one host, goes on counting, and is nowhere else, in no process and no file."""
        after = self.here.look(server.id)
        assert (after.service_host, after.status, after.task) == (host, ACTIVE, None)
        assert self.states() == {one: {server.id: State.RUNNING.value} if one == host else {} for one in self.services}
        for name, one in self.services.items():
            assert (one.home / "machines" / server.id).exists() is (name == host)
        assert len(machines_of(server)) == 1
        self.counts(server)
        assert self.here.drift() == []

    def check_disk(self, server: Server) -> None:
        """Raise AssertionError unless the disk has all that the guest has written since it booted."""
        host = self.services[str(self.here.look(server.id).service_host)]
        (pid,) = machines_of(server)
        processes.send(
            pid, signal.SIGTERM
        )  # as a power button that is held: what the guest has written is written down
        assert processes.wait_gone(pid, 60)
        counting_sector.check(host.disk(server.id), self.console(server), RANDOM_MB)


def machines_of(server: Server) -> list[processes.Pid]:
    """All QEMUs of a server, on whatever machine."""
    word = server.id.encode()
    lines = ((folder, read(folder / "cmdline")) for folder in Path("/proc").glob("[0-9]*"))
    found = [int(folder.name) for folder, line in lines if line.startswith(b"/usr/bin/qemu-system") and word in line]
    return [pid for number in found if (pid := processes.of(number)) is not None]


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def slow(host: str) -> None:
    """Let a host send no more than 4 MB a second."""
    shape = ("tbf", "rate", "32mbit", "burst", "64kb", "latency", "400ms")
    subprocess.run(["ip", "netns", "exec", host, "tc", "qdisc", "replace", "dev", "eth1", "root", *shape], check=True)


def fast(host: str) -> None:
    words = ("ip", "netns", "exec", host, "tc", "qdisc", "del", "dev", "eth1", "root")
    subprocess.run(words, check=False, capture_output=True)


def cable(host: str, state: str) -> None:
    subprocess.run(["ip", "-n", host, "link", "set", "eth1", state], check=True)


@contextlib.contextmanager
def overheard(host: str) -> Iterator[Callable[[], bytes]]:
    """Hear all that passes the cable of a host; what is returned answers with it when it is over."""
    heard, over = bytearray(), threading.Event()
    with guests.wire(host, "eth1") as wire:
        wire.setsockopt(socket.SOL_SOCKET, _FORCED_BUFFER, 64 << 20)
        wire.settimeout(0.2)

        def listen() -> None:
            while True:
                try:
                    heard.extend(wire.recv(1 << 17)[54:])
                except TimeoutError:
                    if over.is_set():
                        return

        listener = threading.Thread(target=listen)
        listener.start()
        try:
            yield lambda: bytes(heard)
        finally:
            over.set()
            listener.join()


@pytest.fixture
def machines(lab: Lab, make_database: Databases, tmp_path: Path) -> Iterator[Machines]:
    database, homes = unsafe(make_database()), {name: tmp_path / name for name in lab.computes}
    shared = tmp_path / "shared"
    (shared / "images").mkdir(parents=True)
    addresses = {one.host: str(one.address.ip) for one in lab.cables if one.interface == "eth1" and one.address}
    for name, home in homes.items():
        home.mkdir()
        (home / "nodes.yaml").write_text(machine_service.NODE.format(name))
        (home / "images").symlink_to(shared / "images")
    one, two = lab.computes
    with place(database, homes[one], []) as here:
        own = replace(here.compute, vault=machine_service.vault(shared))
        started = {
            name: machine_service.start(name, homes[name], homes[other], shared, database, addresses[name])
            for name, other in ((one, two), (two, one))
        }
        made = Machines(replace(here, compute=own), started, here.image(counting_sector.image(RANDOM_MB)))
        try:
            for service in started.values():
                service.ask("refresh")
            yield made
        finally:
            for name, service in started.items():
                service.end()
                fast(name)
                cable(name, "up")
            for home in homes.values():
                own = machine_service.driver(home).members["qemu"]
                for server_id in own.states():
                    own.delete(server_id)


def test_a_machine_goes_on_at_another_machine_with_its_disk(machines: Machines) -> None:
    """It goes there and back, and counts on its disk all the while."""
    server = machines.booted()
    for _ in range(2):
        there = machines.other(server)
        live_migration_requests.live_migrate(machines.here.compute, server.id, there)
        machines.settle()
        found = machines.migration(server)
        assert found.status == COMPLETED, found.error
        assert found.progress["disk_total_bytes"] >= 1 << 30
        machines.only_at(server, there)
    machines.check_disk(server)


def test_the_engine_and_the_plan_of_an_evacuation_move_it_in_the_same_way(machines: Machines) -> None:
    """Maintenance, the pool's filling and recycling ask for a move by this verb, and administrators by the plan."""
    server, cloud = machines.booted(), BundledCloud(machines.here.compute)
    source, there = str(server.node), machines.other(server)
    (step,) = evacuation_plan.plan(machines.here.compute, source)
    assert (step.action, step.node) == ("os-migrateLive", there)
    cloud.move_server(server.id, source, 1, alone=True)
    machines.settle()
    found = machines.migration(server)
    assert (found.type, found.status) == (LIVE, COMPLETED), found.error
    assert list(cloud.servers_on(source)) == []
    machines.only_at(server, there)
    machines.check_disk(server)


def test_a_destination_that_is_killed_while_the_disk_is_copied(machines: Machines) -> None:
    server = machines.booted()
    source = machines.copying(server)
    waiting = processes.read(machines.waits(server) / "pid")
    assert waiting is not None
    processes.send(waiting, signal.SIGKILL)
    machines.stays(server, source)
    machines.moves_later(server)
    machines.check_disk(server)


def test_a_network_that_is_cut_while_the_disk_is_copied(machines: Machines) -> None:
    """No end of the connection hears of it: nothing arrives any more."""
    server = machines.booted()
    source = machines.copying(server)
    cable(machines.other(server), "down")
    machines.stays(server, source)
    cable(machines.other(server), "up")
    machines.moves_later(server)
    machines.check_disk(server)


def test_a_migration_that_is_aborted_while_the_disk_is_copied(machines: Machines) -> None:
    server = machines.booted()
    source = machines.copying(server)
    live_migration_requests.abort(machines.here.compute, server.id, machines.migration(server).id)
    machines.stays(server, source, CANCELLED)
    machines.check_disk(server)


def test_a_service_that_is_killed_while_the_disk_is_copied_is_succeeded_by_another(machines: Machines) -> None:
    server = machines.booted()
    source = machines.copying(server)
    there = machines.other(server)
    machines.restart(server, source)
    machines.settle()
    found = machines.migration(server)
    assert found.status == COMPLETED, found.error
    machines.only_at(server, there)
    machines.check_disk(server)


def test_nothing_of_the_guest_is_on_the_wire(machines: Machines) -> None:
    """What a host on the way could read has neither the words of the guest's memory nor those of its disk."""
    server = machines.booted()
    there = machines.other(server)
    with overheard(there) as heard:
        live_migration_requests.live_migrate(machines.here.compute, server.id, there)
        machines.settle()
    assert machines.migration(server).status == COMPLETED, machines.migration(server).error
    told = heard()
    assert len(told) > RANDOM_MB << 20
    assert counting_sector.GREETING.strip() not in told
    assert counting_sector.image(RANDOM_MB)[-4096:-3072] not in told
    assert server.id.encode() not in told


SIZES = "vcpus: 4, memory_mb: 4096, local_gb: 20"


def cluster(machines: Machines, maintained: str) -> tuple[MachineService, MachineService]:
    """Make a cluster of both machines, with a member in maintenance: its service, and that of its member `far`."""
    head, rack = machines.services.values()
    members = {"near": f"driver: qemu, {SIZES}", "far": f"service: {rack.name}"}
    lines = [f"    - {{name: {one}, {told}, maintenance: {one == maintained}}}" for one, told in members.items()]
    entry = ["- name: sum", "  driver: cluster", "  balance_percent: 0", "  members:", *lines, ""]
    (head.home / "nodes.yaml").write_text("\n".join(entry))
    (rack.home / "nodes.yaml").write_text(f"- {{name: far, cluster: sum, driver: qemu, {SIZES}}}\n")
    for service in (rack, head):
        service.ask("refresh")
    return head, rack


def test_a_cluster_empties_a_member_in_maintenance_to_another_machine(machines: Machines) -> None:
    """The scheduler knows nothing of it, and there is no migration; the guest goes on with its disk."""
    head, rack = cluster(machines, "far")
    rack.ask("serve")
    server = machines.booted()
    before = len(counting_sector.printed(machines.console(server)))
    cluster(machines, "near")
    for _ in range(30):
        head.ask("reconcile")
        if not (head.home / "machines" / server.id).exists():
            break
    assert machines.states()[rack.name] == {server.id: State.RUNNING.value}
    assert len(machines_of(server)) == 1
    console = rack.home / "machines" / server.id / "console.log"
    until(lambda: len(counting_sector.printed(console.read_text())) > before + 3, "it stands still")
    after = machines.here.look(server.id)
    assert (after.status, after.service_host, after.node) == (ACTIVE, head.name, "sum")
    with machines.here.compute.engine.connect() as conn:
        assert migration_lists.listed(conn, {"server_id": server.id}, 1) == []
    (pid,) = machines_of(server)
    processes.send(pid, signal.SIGTERM)
    assert processes.wait_gone(pid, 60)
    counting_sector.check(rack.disk(server.id), console.read_text(), RANDOM_MB)
