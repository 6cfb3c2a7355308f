"""Virtual machines of a cluster are migrated live between its members of two compute services."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import text

from climate.compute import Compute
from climate.compute.clusters import migration_orders
from climate.compute.clusters.cluster_spec import CLUSTER
from climate.compute.clusters.migration_orders import DROP, KEEP, RECEIVE, SEND, SENDERS, SENT, UNDER_WAY
from climate.compute.clusters.remote_members import RemoteMembers
from climate.compute.clusters.remote_migrator import RemoteMigrator
from climate.compute.errors import VirtError
from climate.compute.migrations import live_migration
from climate.compute.models.node import NodeDefaults
from climate.compute.models.server import ACTIVE, STOP, Server
from climate.compute.nodes import services
from climate.compute.nodes.nodes_file import NodesFile
from climate.compute.servers import actions, sync_states
from climate.compute.servers.tasks import task_worker
from climate.compute.virt import Guest, State
from climate.compute.virt.guest_volumes import Attached
from climate.compute.virt.hypervisor_cluster.driver import Find, HypervisorClusterDriver, nowhere
from climate.compute.virt.hypervisor_cluster.server_placements import ServerPlacements
from climate.compute.virt.live_migrator import SECRETS, Limits, MigrationCommand, sealed
from climate.compute.virt.multi_node import MultiNodeDriver
from climate.compute.virt.qemu.driver import QemuDriver
from climate.sealed_secrets import Vault
from tests.compute.cloud_factory import SERVICE, TINY, Place, node, place
from tests.compute.virt import boot_sector
from tests.compute.virt.afar import LISTENING, DriverAfar
from tests.compute.virt.driver_cases import cannot, until
from tests.compute.virt.hypervisor_cluster.live_machines import KEY, Host

RACK, NEAR, FAR, SUM = "rack-7", "near", "far", "sum"
SIZES = {"vcpus": 4, "memory_mb": 4096, "local_gb": 40}
PLENTY = NodeDefaults(ram_ratio=1.0, reserved_ram_mb=0)

Make = Callable[[Path, str], QemuDriver]


def beside(folder: Path, name: str) -> QemuDriver:
    return QemuDriver(folder, accel="tcg", stop_seconds=5)


def apart(folder: Path, name: str) -> QemuDriver:
    """A driver whose guests are on another machine than those of all others, and come over TCP."""
    return DriverAfar(folder, accel="tcg", stop_seconds=5, listening=LISTENING, machine=name)


def driver(home: Path, qemu: QemuDriver, find: Find = nowhere) -> MultiNodeDriver:
    read = NodesFile(home, "nodes.yaml").nodes
    return MultiNodeDriver(
        read, {"qemu": qemu, CLUSTER: HypervisorClusterDriver(read, {"qemu": qemu}, home, PLENTY, find)}
    )


@dataclass
class Pair:
    """The service of a cluster, and that of its member FAR, each with a home of its own."""

    here: Place
    rack: Compute
    orders: list[Any] = field(default_factory=list)
    """What was written of orders and of their answers."""

    @property
    def both(self) -> tuple[Compute, Compute]:
        return self.here.compute, self.rack

    def ring(self) -> None:
        for host, order in task_worker.unfinished(self.rack, wait=0):
            if host == RACK:
                task_worker.run_task(self.rack, order)
        with self.rack.engine.connect() as conn:
            self.orders += [
                tuple(row) for row in conn.execute(text("SELECT verb, said, answer FROM compute_member_orders"))
            ]

    def write(self, maintained: str | None = None, balance_percent: int = 0) -> None:
        """Write the cluster's entry, with a member in maintenance."""
        members: list[dict[str, Any]] = [{"name": NEAR, "driver": "qemu", **SIZES}, {"name": FAR, "service": RACK}]
        for one in members:
            one["maintenance"] = one["name"] == maintained
        entry = {"name": SUM, "driver": CLUSTER, "balance_percent": balance_percent, "members": members}
        (self.here.compute.home / "nodes.yaml").write_text(yaml.safe_dump([entry]))

    def rounds(self) -> None:
        """A round of each service."""
        for compute in self.both:
            services.refresh(compute)
            sync_states.reconcile(compute)
        self.here.settle()

    def booted(self) -> Server:
        server = self.here.boot_one(image_id=self.here.image(boot_sector.image()), zone=f"nova::{SUM}", admin=True)
        assert server.status == ACTIVE, server.fault
        until(lambda: "boot finished" in self.console(server), "it does not boot")
        return server

    def member(self, server: Server) -> str | None:
        own = self.here.compute.driver
        assert isinstance(own, MultiNodeDriver)
        return own.member_of(Guest(server.id, "", SUM))

    def console(self, server: Server) -> str:
        return self.here.compute.driver.console(Guest(server.id, "", SUM), None)

    def qemu(self, compute: Compute) -> QemuDriver:
        own = compute.driver
        assert isinstance(own, MultiNodeDriver)
        found = own.members["qemu"]
        assert isinstance(found, QemuDriver)
        return found

    def goes_on(self, server: Server, member: str) -> None:
        """Return when the server runs on a member and nowhere else, and was never booted again."""
        assert self.member(server) == member
        there = [server.id in self.qemu(compute).states() for compute in self.both]
        assert there == [member == NEAR, member == FAR]
        before = len(self.console(server))
        until(lambda: len(self.console(server)) > before, "it stands still")
        assert len(re.findall("boot finished", self.console(server))) == 1
        after = self.here.look(server.id)
        assert (after.status, after.node, after.service_host, after.fault) == (ACTIVE, SUM, SERVICE, None)


@pytest.fixture(params=[beside, apart])
def pair(scratch: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Pair]:
    make: Make = request.param
    homes = {SERVICE: tmp_path / "here", RACK: tmp_path / RACK}
    drivers = {name: make(home / "machines", name) for name, home in homes.items()}
    if (trouble := drivers[SERVICE].trouble()) is not None:
        cannot(trouble)
    for home in homes.values():
        home.mkdir()
    (homes[SERVICE] / "images").mkdir()
    (homes[RACK] / "images").symlink_to(homes[SERVICE] / "images")
    (homes[SERVICE] / "nodes.yaml").write_text("[]\n")
    rack_nodes = [
        {"name": FAR, "cluster": SUM, "driver": "qemu", **SIZES},
        {"name": "own", "driver": "qemu", **SIZES, "zone": "other"},
    ]
    (homes[RACK] / "nodes.yaml").write_text(yaml.safe_dump(rack_nodes))
    with place(scratch, homes[SERVICE], [], driver(homes[SERVICE], drivers[SERVICE])) as here:
        far = driver(homes[RACK], drivers[RACK])
        made = Pair(here, replace(here.compute, home=homes[RACK], service_host=RACK, driver=far))
        find = RemoteMembers(
            here.compute.engine, homes[SERVICE], SERVICE, lambda: made.ring(), 60.0, vault=here.compute.vault
        ).find
        here.compute = replace(here.compute, driver=driver(homes[SERVICE], drivers[SERVICE], find))
        made.write()
        made.rounds()
        made.rounds()
        yield made
        for compute in made.both:
            for server_id in made.qemu(compute).states():
                made.qemu(compute).delete(server_id)


def test_a_machine_leaves_a_member_in_maintenance_for_another_service_and_comes_back(pair: Pair) -> None:
    """It is never shut down, its disk and its console go with it, and no order has the key of the connection."""
    server = pair.booted()
    for member, other in ((FAR, NEAR), (NEAR, FAR)) if pair.member(server) == FAR else ((NEAR, FAR), (FAR, NEAR)):
        pair.write(member)
        pair.rounds()
        pair.goes_on(server, other)
    sealed = [json.dumps(one) for _, *both in pair.orders for one in both if one and SECRETS in json.dumps(one)]
    assert [one for one in sealed if '"key"' in one] == []
    assert bool(sealed) is isinstance(pair.qemu(pair.rack), DriverAfar)
    assert pair.here.drift() == []
    actions.request_task(pair.here.compute, server.id, STOP)
    pair.here.settle()
    assert pair.here.compute.driver.states() == {server.id: State.DEAD}


def test_machines_move_to_another_service_for_balance(pair: Pair) -> None:
    pair.write(FAR)
    pair.rounds()
    made = [pair.booted() for _ in range(3)]
    assert {pair.member(one) for one in made} == {NEAR}
    pair.write(balance_percent=10)
    for _ in range(3):
        pair.rounds()
    assert sorted(str(pair.member(one)) for one in made) == [FAR, NEAR, NEAR]
    for one in made:
        pair.goes_on(one, str(pair.member(one)))


def test_a_service_leaves_what_waits_for_a_machine_of_a_cluster_alone(pair: Pair) -> None:
    """It has a node of its own, whose waiting machines it deletes when their migration is over."""
    pair.write(FAR)
    pair.rounds()
    server = pair.booted()
    at = Guest(server.id, "", FAR, ram_mb=TINY.ram_mb)
    offer = pair.qemu(pair.here.compute).live(NEAR).offer(replace(at, node=NEAR))  # type: ignore[union-attr]
    said = {"guest": {}, "offer": offer, "by": SERVICE, "cluster": SUM}
    migration_orders.execute_order(pair.rack, RECEIVE, at, said)
    live_migration.drop_strays(pair.rack)
    waiting = pair.rack.driver.live(FAR)
    assert waiting is not None
    assert list(waiting.waiting()) == [server.id]
    migration_orders.drop(pair.rack.driver, {"server_id": server.id, "member": FAR})
    assert list(waiting.waiting()) == []
    pair.goes_on(server, NEAR)


@pytest.fixture
def rack(scratch: str, tmp_path: Path) -> Iterator[Compute]:
    """A service with a machine that migrates guests."""
    host = Host(name=RACK)
    host.others = {RACK: host}
    with place(scratch, tmp_path, [], MultiNodeDriver(lambda: [node(FAR, driver="qemu")], {"qemu": host})) as here:
        yield here.compute


GUEST = Guest("5f1c2a4e-0d7b-4f0e-9a38-1c6f6a1b2c3d", "web", FAR)


def test_an_order_to_send_while_an_earlier_one_is_under_way_says_so(rack: Compute) -> None:
    said = {"arrangement": sealed(rack.vault, {"to": RACK, SECRETS: {"key": KEY}}), "abort": False}
    with ServerPlacements(rack.home / "clusters" / SENDERS).holding(GUEST.id):
        assert migration_orders.execute_order(rack, SEND, GUEST, said) == {UNDER_WAY: True}
    with pytest.raises(VirtError, match="nobody waits"):
        migration_orders.execute_order(rack, SEND, GUEST, said)


def test_a_machine_whose_volume_is_not_there_is_refused(rack: Compute) -> None:
    guest = replace(GUEST, volumes=(Attached("v1", 0, rack.home / "volumes" / "v1"),))
    with pytest.raises(VirtError, match="the volume v1 does not exist at compute-1: share the volumes"):
        migration_orders.execute_order(rack, RECEIVE, guest, {"offer": {}})


def test_a_driver_that_cannot_migrate_says_so(rack: Compute) -> None:
    own = rack.driver
    assert isinstance(own, MultiNodeDriver)
    host = own.members["qemu"]
    assert isinstance(host, Host)
    host.others = {}
    with pytest.raises(VirtError, match=f"the driver of member {FAR} cannot migrate running servers"):
        migration_orders.drop(own, {"server_id": GUEST.id, "member": FAR})
    assert DROP not in migration_orders.VERBS


def test_a_machine_that_was_sent_goes_on_although_no_key_opens_its_console(rack: Compute) -> None:
    """The services may have different keys while an administrator rotates them."""
    sealed_by_another = sealed(Vault.of_this_process(), {SECRETS: {"console": "booted"}, "size": 1})
    migrator = RemoteMigrator(lambda verb, guest, **said: {SENT: sealed_by_another}, lambda one: None, rack.vault)
    assert migrator.send(GUEST, {}, Limits(), lambda progress: MigrationCommand.GO_ON) == {"size": 1}
    own = rack.driver
    assert isinstance(own, MultiNodeDriver)
    host = own.members["qemu"]
    assert isinstance(host, Host)
    host.run(GUEST)
    host.awaited.add(GUEST.id)
    migration_orders.execute_order(rack, KEEP, GUEST, {"sent": sealed_by_another})
    assert host.awaited == set()
