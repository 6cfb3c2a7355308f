"""Servers of a cluster are on the real network of their member's host, and on that of another when it fails."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text

from climate.compute.linux import netns
from climate.compute.models.server import ACTIVE, DELETE, START, STOP, Server
from climate.compute.network.driver import interface_name
from climate.compute.network.driver.registry import DriverCache
from climate.compute.network.linux.driver import LinuxNetwork
from climate.compute.servers.interfaces import interfaces
from climate.compute.servers.interfaces.vif_plugging import netns_of
from climate.compute.virt import Guest
from climate.compute.virt.qemu.driver import QemuDriver
from climate.sandbox import topology
from climate.sandbox.topology import FLAT, Lab
from tests.compute.clusters.wired_pair import FAR, NEAR, WiredPair, wired_pair
from tests.compute.virt.driver_cases import cannot
from tests.databases import Databases, unsafe
from tests.netlab.bridge_bench import until
from tests.netlab.guest.build import TARGET
from tests.netlab.guests import packets_from, reaches, run, silent

pytestmark = [pytest.mark.netlab("ping", "nft"), pytest.mark.timeout(300)]

BRIDGE, WATCHER = "br100", "10.10.0.60/26"
"""The operator's bridge on each host, and an address of the network host that is no server's."""

HOSTS = {NEAR: "c1", FAR: "c2"}


def ip(host: str, *words: str) -> None:
    subprocess.run(["ip", "-n", host, *words], check=True)


@pytest.fixture
def wires(tmp_path: Path) -> DriverCache:
    return DriverCache(lambda host: LinuxNetwork(host, tmp_path / str(host)))


@pytest.fixture
def pair(lab: Lab, make_database: Databases, tmp_path: Path, wires: DriverCache) -> Iterator[WiredPair]:
    with on_the_lab(lab, make_database, tmp_path, wires, "process") as pair:
        yield pair


@pytest.fixture
def machines(lab: Lab, make_database: Databases, tmp_path: Path, wires: DriverCache) -> Iterator[WiredPair]:
    """The same of virtual machines."""
    trouble = QemuDriver(tmp_path, accel="tcg").trouble()
    if trouble is None and not TARGET.exists():
        trouble = f"there is no machine to boot in {TARGET}: python -m tests.netlab.guest.build makes it"
    if trouble is not None:
        cannot(trouble)
    with on_the_lab(lab, make_database, tmp_path, wires, "qemu") as pair:
        yield pair


@contextmanager
def on_the_lab(
    lab: Lab, make_database: Databases, folder: Path, wires: DriverCache, driver: str
) -> Iterator[WiredPair]:
    """A cluster whose members have guests of this driver, on the lab's hosts."""
    topology.bridge(lab, BRIDGE)
    ip(lab.network, "address", "replace", WATCHER, "dev", FLAT)
    made: list[Server] = []
    try:
        with wired_pair(unsafe(make_database()), folder, wires, driver=driver) as pair:
            with pair.here.compute.engine.begin() as conn:
                conn.execute(text("UPDATE compute_networks SET injected = true"))
            yield pair
            made = pair.servers()
            for server in made:
                pair.do(server, DELETE)
            pair.tend()
    finally:
        for server in made:
            netns.drop(netns_of(server.id))
        ip(lab.network, "address", "flush", "dev", FLAT)
        for host in lab.computes:
            ip(host, "link", "delete", BRIDGE)


def address(pair: WiredPair, server: Server) -> str:
    (vif,) = interfaces.interfaces(pair.here.compute, server.id)
    return str(vif.addresses[0])


def port(pair: WiredPair, server: Server) -> str:
    (vif,) = interfaces.interfaces(pair.here.compute, server.id)
    return interface_name(vif.id)


def hosts_with(pair: WiredPair, server: Server) -> list[str]:
    """The hosts with an interface of a server."""
    return [host for host in HOSTS.values() if run(host, "ip", "link", "show", port(pair, server)).returncode == 0]


def answers(lab: Lab, pair: WiredPair, server: Server) -> None:
    """Return when the server answers the network host."""
    until(lambda: reaches(lab.network, address(pair, server)), f"an answer of {address(pair, server)}")


def console(pair: WiredPair, server: Server) -> str:
    return pair.here.compute.driver.console(Guest(server.id, "", "sum"), None)


def counts(pair: WiredPair, server: Server) -> list[int]:
    """The numbers that the machine has counted on its console, from one on at each start."""
    said = console(pair, server)
    assert said.count("machine: starts") == 1
    return [int(number) for number in re.findall(r"^machine: (\d+)\r?$", said, re.M)]


def test_servers_on_two_members_reach_each_other_and_the_network(lab: Lab, pair: WiredPair, wires: DriverCache) -> None:
    near, far = pair.booted(NEAR), pair.booted(FAR)
    for server, member in ((near, NEAR), (far, FAR)):
        answers(lab, pair, server)
        assert hosts_with(pair, server) == [HOSTS[member]]
    assert reaches(netns_of(near.id), address(pair, far))
    assert reaches(netns_of(far.id), address(pair, near))
    pair.tend()
    for server, member in ((near, NEAR), (far, FAR)):
        assert hosts_with(pair, server) == [HOSTS[member]]
        pair.do(server, STOP)
        assert silent(lab.network, address(pair, server))
        pair.do(server, START)
        answers(lab, pair, server)
        own = port(pair, server)
        pair.do(server, DELETE)
        assert not netns.exists(netns_of(server.id))
        assert all(own not in wires.on(host).standing().plugs for host in HOSTS.values())


def test_a_server_answers_on_another_member_after_its_own_has_failed(lab: Lab, pair: WiredPair) -> None:
    server = pair.booted(FAR)
    answers(lab, pair, server)
    pair.fails()
    pair.tend()
    assert (pair.member(server), pair.here.look(server.id).status) == (NEAR, ACTIVE)
    answers(lab, pair, server)
    pair.answers = True
    for _ in range(2):
        pair.tend()
    assert hosts_with(pair, server) == ["c1"]
    answers(lab, pair, server)


def test_a_machine_leaves_a_member_in_maintenance_and_answers_at_another(lab: Lab, machines: WiredPair) -> None:
    """It goes on where it was, with its address, through a tap of its new host alone, and comes back likewise."""
    machines.write(FAR)
    machines.tend()
    server = machines.booted(NEAR, image_id=machines.here.image(TARGET.read_bytes()))
    own = address(machines, server)
    until(lambda: console(machines, server).count("machine: eth0 was given") == 1, "the start of its kernel")
    answers(lab, machines, server)
    for maintained, member in ((NEAR, FAR), (FAR, NEAR)):
        before = counts(machines, server)
        machines.write(maintained)
        machines.tend()
        assert (machines.member(server), machines.here.look(server.id).status) == (member, ACTIVE)
        answers(lab, machines, server)
        assert packets_from(HOSTS[member], port(machines, server)) > 0
        machines.tend()
        assert hosts_with(machines, server) == [HOSTS[member]]
        after = counts(machines, server)
        assert after == list(range(1, len(after) + 1))
        assert len(after) > len(before)
    assert address(machines, server) == own
