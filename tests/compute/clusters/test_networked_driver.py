"""Servers of a cluster are plugged into the host of their member, and into no other."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from climate.compute.clusters.networked_driver import HostNetworks, WiredDriver
from climate.compute.models.node import NodeSpec
from climate.compute.models.server import ACTIVE, DELETE, PAUSE, REBOOT, RESUME, SHUTOFF, START, STOP, SUSPEND, UNPAUSE
from climate.compute.network.driver.recording import RecordingNetwork
from climate.compute.network.driver.registry import DriverCache
from climate.compute.network.network_options import NetworkOptions
from climate.compute.servers.interfaces import interfaces
from climate.compute.servers.interfaces.interfaces import Requester
from climate.compute.virt import Guest, Wiring
from climate.compute.virt.in_memory import MemoryDriver
from climate.compute.virt.live_migrator import APART, Limits, LiveMigrator, MigrationCommand
from climate.compute.virt.multi_node import MultiNodeDriver
from climate.compute.virt.shared_storage import HasGuestFolders
from tests.compute import network_factory
from tests.compute.cloud_factory import Place, place
from tests.compute.clusters.wired_pair import FAR, NEAR, WiredPair, wired_pair

HOSTS = {NEAR: "c1", FAR: "c2"}


def apart(server_id: str) -> bool:
    """Have each service be on a machine of its own, on which it sees the processes of no other."""
    return False


@pytest.fixture
def wires() -> DriverCache:
    return DriverCache()


@pytest.fixture
def pair(scratch: str, tmp_path: Path, wires: DriverCache) -> Iterator[WiredPair]:
    with wired_pair(scratch, tmp_path, wires, apart) as made:
        yield made


def plugs(wires: DriverCache) -> dict[str, dict[str, bool]]:
    """Host -> the MACs that are plugged in there, and whether they are up."""
    made = {host: wires.on(host) for host in ("c1", "c2")}
    found = {host: one.plugs.values() for host, one in made.items() if isinstance(one, RecordingNetwork)}
    return {host: {plug.mac: plug.up for plug in there} for host, there in found.items()}


def mac(pair: WiredPair, server_id: str) -> str:
    (vif,) = interfaces.interfaces(pair.here.compute, server_id)
    return vif.mac


@pytest.mark.parametrize("member", [NEAR, FAR])
def test_a_server_is_plugged_into_the_host_of_its_member_alone(
    pair: WiredPair, wires: DriverCache, member: str
) -> None:
    server = pair.booted(member)
    other = next(host for host in HOSTS.values() if host != HOSTS[member])
    own = mac(pair, server.id)
    for tasks, up in (
        ((), True),
        ((PAUSE,), False),
        ((UNPAUSE,), True),
        ((SUSPEND,), False),
        ((RESUME, REBOOT), True),
        ((STOP,), False),
        ((START,), True),
    ):
        pair.do(server, *tasks)
        pair.tend()
        assert plugs(wires)[HOSTS[member]][own] is up
        assert own not in plugs(wires)[other]
    assert pair.here.look(server.id).status == ACTIVE
    pair.do(server, DELETE)
    assert all(own not in there for there in plugs(wires).values())


@pytest.mark.parametrize("member", [NEAR, FAR])
def test_interfaces_come_and_go_at_the_member(pair: WiredPair, wires: DriverCache, member: str) -> None:
    compute = pair.here.compute
    server = pair.booted(member)
    with compute.engine.begin() as conn:
        more = network_factory.network(conn, "more", "10.30.0.0/26")
    who = Requester(server.id, "demo", {"project_id": "demo", "user_id": "dora", "request_id": "req-1"})
    added = interfaces.add(compute, who, more)
    pair.here.settle()
    assert set(plugs(wires)[HOSTS[member]]) >= {added.mac}
    interfaces.unplug(compute, who, added.id)
    pair.here.settle()
    assert added.mac not in plugs(wires)[HOSTS[member]]
    assert mac(pair, server.id) in plugs(wires)[HOSTS[member]]


def test_a_server_that_is_restarted_elsewhere_leaves_its_old_host(pair: WiredPair, wires: DriverCache) -> None:
    server = pair.booted(FAR)
    own = mac(pair, server.id)
    pair.fails()
    pair.tend()
    assert (pair.member(server), pair.here.look(server.id).status) == (NEAR, ACTIVE)
    assert plugs(wires)["c1"][own] is True
    pair.answers = True
    for _ in range(2):
        pair.tend()
    assert plugs(wires)["c1"][own] is True
    assert own not in plugs(wires)["c2"]


def test_a_server_that_keeps_its_shared_disk_leaves_its_old_host_too(pair: WiredPair, wires: DriverCache) -> None:
    (pair.here.compute.home / "servers").mkdir(exist_ok=True)
    (pair.rack.home / "servers").rename(pair.rack.home / "empty")
    (pair.rack.home / "servers").symlink_to(pair.here.compute.home / "servers")
    pair.tend()
    server = pair.booted(FAR)
    own = mac(pair, server.id)
    pair.fails()
    pair.tend()
    assert (pair.member(server), plugs(wires)["c1"][own]) == (NEAR, True)
    pair.answers = True
    for _ in range(2):
        pair.tend()
    assert own not in plugs(wires)["c2"]
    assert (pair.here.compute.home / "servers" / server.id / "disk").is_dir()
    pair.do(server, STOP, START)
    assert plugs(wires)["c1"][own] is True


def test_an_interface_that_was_lost_at_a_member_here_is_plugged_in_again(pair: WiredPair, wires: DriverCache) -> None:
    server, far = pair.booted(NEAR), pair.booted(FAR)
    (vif,) = interfaces.interfaces(pair.here.compute, server.id)
    here = wires.on("c1")
    assert isinstance(here, RecordingNetwork)
    here.plugs.clear()
    for _ in range(2):
        pair.tend()
    assert plugs(wires)["c1"] == {vif.mac: True}
    assert mac(pair, far.id) in plugs(wires)["c2"]


def test_a_server_that_has_ended_by_itself_is_set_down_at_its_member(pair: WiredPair, wires: DriverCache) -> None:
    server = pair.booted(FAR)
    own = mac(pair, server.id)
    assert isinstance(pair.rack.driver, MultiNodeDriver)
    pair.rack.driver.members["process"].stop(Guest(server.id, "s", FAR), kindly=False)
    pair.tend()
    assert pair.here.look(server.id).status == SHUTOFF
    assert plugs(wires)["c2"][own] is False


def test_rounds_of_the_services_keep_what_is_plugged_in(pair: WiredPair, wires: DriverCache) -> None:
    made = [mac(pair, pair.booted(member).id) for member in (NEAR, FAR)]
    for _ in range(2):
        pair.tend()
    assert [made[0] in plugs(wires)["c1"], made[1] in plugs(wires)["c2"]] == [True, True]


@dataclass
class Moving:
    """Live migration methods that only remember."""

    asked: list[str] = field(default_factory=list)
    seen: list[Guest] = field(default_factory=list)

    def offer(self, guest: Guest) -> Mapping[str, Any]:
        return {"offered": guest.id}

    def receive(self, guest: Guest, offer: Mapping[str, Any]) -> Mapping[str, Any]:
        self.seen.append(guest)
        return offer

    def send(self, guest: Guest, arrangement: Mapping[str, Any], limits: Limits, watch: Any) -> Mapping[str, Any]:
        return {"sent": guest.id, **arrangement}

    def keep(self, guest: Guest, sent: Mapping[str, Any]) -> None:
        self.asked.append("keep")

    def drop(self, server_id: str, *, spare_disk: bool = False) -> None:
        self.asked.append(f"drop {spare_disk}")

    def clear(self, guest: Guest, arrangement: Mapping[str, Any]) -> None:
        self.asked.append("clear")

    def waiting(self) -> list[str]:
        return ["one"]


@dataclass
class Mover(MemoryDriver):
    """A driver whose guests hold taps, and can move while they run."""

    moving: Moving = field(default_factory=Moving)

    def live(self, node: str) -> LiveMigrator | None:
        return self.moving


@dataclass
class Moves:
    """A guest with an interface, and the driver of the host `c1`."""

    guest: Guest
    driver: WiredDriver
    inner: Mover
    host: RecordingNetwork

    @property
    def migrator(self) -> LiveMigrator:
        found = self.driver.live("m")
        assert found is not None
        return found


@pytest.fixture
def cloud(scratch: str, tmp_path: Path) -> Iterator[Place]:
    with place(scratch, tmp_path, [NodeSpec("n1", 8, 8192, 100, driver="memory")]) as made:
        yield made


@pytest.fixture
def moves(cloud: Place, wires: DriverCache, request: pytest.FixtureRequest) -> Moves:
    alive = bool(getattr(request, "param", False))
    server = cloud.boot_one()
    inner = Mover(wiring_mode=Wiring.TAP)
    hosts = HostNetworks(cloud.compute.engine, wires, NetworkOptions(), lambda server_id: alive)
    driver, host = hosts.connect(inner, "c1"), wires.on("c1")
    assert isinstance(driver, WiredDriver)
    assert isinstance(host, RecordingNetwork)
    return Moves(Guest(server.id, "s", "m"), driver, inner, host)


def test_a_destination_has_the_interfaces_before_the_guest_comes(moves: Moves) -> None:
    told = moves.migrator.receive(moves.guest, moves.migrator.offer(moves.guest))
    assert told == {"offered": moves.guest.id}
    assert [plug.up for plug in moves.host.plugs.values()] == [True]
    assert [(one.host_netns, one.addresses) for one in moves.inner.moving.seen[0].interfaces] == [
        ("c1", ("10.10.0.2",))
    ]
    moves.host.plugs.clear()
    moves.migrator.keep(moves.guest, {})
    assert len(moves.host.plugs) == 1
    sent = moves.migrator.send(moves.guest, {"to": "c1"}, Limits(), lambda progress: MigrationCommand.GO_ON)
    assert sent == {"sent": moves.guest.id, "to": "c1"}
    assert list(moves.migrator.waiting()) == ["one"]


@pytest.mark.parametrize(
    ("moves", "told", "left"),
    [(False, {}, 0), (True, {}, 1), (True, {APART: True}, 0), (False, {APART: True}, 0)],
    indirect=["moves"],
)
def test_a_source_keeps_an_interface_only_for_a_destination_on_its_machine(
    moves: Moves, told: Mapping[str, Any], left: int
) -> None:
    moves.driver.run(moves.guest)
    moves.migrator.clear(moves.guest, told)
    assert (moves.inner.moving.asked, len(moves.host.plugs)) == (["clear"], left)


@pytest.mark.parametrize(("moves", "left"), [(False, 0), (True, 1)], indirect=["moves"])
def test_a_destination_that_gets_nothing_keeps_only_the_interface_of_a_source_on_its_machine(
    moves: Moves, left: int
) -> None:
    moves.migrator.receive(moves.guest, {})
    moves.migrator.drop(moves.guest.id, spare_disk=True)
    assert (moves.inner.moving.asked, len(moves.host.plugs)) == (["drop True"], left)


def test_a_prepared_server_is_plugged_in_and_silent(moves: Moves) -> None:
    moves.driver.prepare(moves.guest)
    assert [plug.up for plug in moves.host.plugs.values()] == [False]
    moves.driver.run(moves.guest)
    assert [plug.up for plug in moves.host.plugs.values()] == [True]


def test_folders_are_those_of_the_driver_if_it_has_any(moves: Moves, tmp_path: Path) -> None:
    assert not isinstance(moves.driver, HasGuestFolders)
    assert moves.driver.wiring("m") is Wiring.BY_MEMBER
    assert moves.driver.host_netns("m") == "c1"
    assert replace(moves.driver, inner=MemoryDriver()).live("m") is None
