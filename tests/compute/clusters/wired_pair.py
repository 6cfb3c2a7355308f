"""A cluster of two services, each with the network of a host of its own: `c1` of the cluster, `c2` of its member."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sqlalchemy import text

from climate.compute import Compute, MachineOptions, drivers
from climate.compute.clusters.cluster_spec import MemberSpec
from climate.compute.clusters.networked_driver import HostNetworks
from climate.compute.clusters.remote_members import RemoteMembers
from climate.compute.models.node import NodeDefaults, NodeSpec
from climate.compute.models.server import ACTIVE, Server
from climate.compute.network.driver.registry import DriverCache
from climate.compute.network.network_options import NetworkOptions
from climate.compute.nodes import services
from climate.compute.servers import actions, sync_states
from climate.compute.servers.tasks import task_worker
from climate.compute.virt import Guest
from climate.compute.virt.hypervisor_cluster.driver import ClusterOptions
from climate.compute.virt.hypervisor_cluster.member import Member
from climate.compute.virt.multi_node import MultiNodeDriver
from tests.compute.cloud_factory import SERVICE, TINY, Place, place

RACK, NEAR, FAR = "rack-7", "near", "far"
CLUSTER = """
- name: sum
  driver: cluster
  netns: c1
  balance_percent: 0
  members:
    - {{name: near, driver: {driver}, vcpus: 4, memory_mb: 4096, local_gb: 40, maintenance: {near}}}
    - {{name: far, service: rack-7, maintenance: {far}}}
"""
MEMBER = "- {{name: far, cluster: sum, netns: c2, driver: {driver}, vcpus: 4, memory_mb: 4096, local_gb: 40}}\n"
PLENTY = NodeDefaults(ram_ratio=1.0, reserved_ram_mb=0)


@dataclass
class WiredPair:
    """The service of the cluster, and that of its member FAR."""

    here: Place
    rack: Compute
    driver: str
    """Driver of both members."""
    elsewhere: RemoteMembers = field(init=False)
    answers: bool = True
    """Whether the member's service works."""

    def find(self, cluster: NodeSpec, member: MemberSpec) -> Member | None:
        return self.elsewhere.find(cluster, member)

    def ring(self) -> None:
        for host, order in task_worker.unfinished(self.rack, wait=0):
            if host == RACK and self.answers:
                task_worker.run_task(self.rack, order)

    def write(self, maintained: str | None = None) -> None:
        """Write the cluster's entry, with a member in maintenance."""
        words = {member: str(member == maintained).lower() for member in (NEAR, FAR)}
        (self.here.compute.home / "nodes.yaml").write_text(CLUSTER.format(driver=self.driver, **words))

    def tend(self) -> None:
        """A round of each service that works."""
        for compute in [self.rack, self.here.compute] if self.answers else [self.here.compute]:
            services.refresh(compute)
            sync_states.reconcile(compute)
        self.here.settle()

    def fails(self) -> None:
        """The member's service dies, and its servers go on."""
        self.answers = False
        with self.here.compute.engine.begin() as conn:
            conn.execute(text("UPDATE compute_services SET beat_at = '2001-01-01' WHERE host = :host"), {"host": RACK})

    def booted(self, member: str, **wanted: Any) -> Server:
        """A server that the cluster has put on a member."""
        for _ in range(4):
            server = self.here.boot_one(TINY, **wanted)
            assert server.status == ACTIVE, server.fault
            if self.member(server) == member:
                return server
        raise AssertionError(f"nothing was put on {member}")

    def servers(self) -> list[Server]:
        """All servers that there are."""
        with self.here.compute.engine.connect() as conn:
            return [self.here.look(str(one)) for one in conn.execute(text("SELECT id FROM compute_servers")).scalars()]

    def member(self, server: Server) -> str | None:
        own = self.here.compute.driver
        assert isinstance(own, MultiNodeDriver)
        return own.member_of(Guest(server.id, "", "sum"))

    def do(self, server: Server, *tasks: str) -> None:
        for task in tasks:
            actions.request_task(self.here.compute, server.id, task)
            self.here.settle()


@contextmanager
def wired_pair(
    database: str,
    folder: Path,
    wires: DriverCache,
    lives_here: Callable[[str], bool] | None = None,
    driver: str = "process",
) -> Iterator[WiredPair]:
    homes = {SERVICE: folder / "here", RACK: folder / RACK}
    for home in homes.values():
        home.mkdir()
    (homes[RACK] / "nodes.yaml").write_text(MEMBER.format(driver=driver))
    (homes[SERVICE] / "images").mkdir()
    (homes[RACK] / "images").symlink_to(homes[SERVICE] / "images")
    with place(database, homes[SERVICE], []) as here:
        networks = HostNetworks(here.compute.engine, wires, NetworkOptions())
        networks = networks if lives_here is None else replace(networks, lives_here=lives_here)
        own = replace(here.compute, network_drivers=wires)
        options = ClusterOptions(PLENTY, connect=networks.connect)
        machines = MachineOptions(accel="tcg")
        far = drivers(homes[RACK], machines=machines, wired=True, clusters=options)
        made = WiredPair(here, replace(own, home=homes[RACK], service_host=RACK, driver=far), driver)
        made.write()
        made.elsewhere = RemoteMembers(own.engine, homes[SERVICE], SERVICE, lambda: made.ring(), 60.0)
        options = replace(options, find_elsewhere=made.find)
        here.driver = drivers(homes[SERVICE], machines=machines, wired=True, clusters=options)
        here.compute = replace(own, driver=here.driver)
        for compute in (made.rack, here.compute):
            services.refresh(compute)
        try:
            yield made
        finally:
            for compute in (here.compute, made.rack):
                assert isinstance(compute.driver, MultiNodeDriver)
                for server_id in compute.driver.members[driver].states():
                    compute.driver.members[driver].delete(server_id)
