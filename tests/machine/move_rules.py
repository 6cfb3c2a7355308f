"""The engine over the bundled cloud: two services whose nodes move running servers, and a cluster of three members."""

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, text

from climate.cloud.bundled import BundledCloud
from climate.cloud.fake import FakeCloud
from climate.compute import Compute
from climate.compute.clusters.cluster_spec import CLUSTER, ClusterSpec, MemberSpec
from climate.compute.errors import ComputeError
from climate.compute.models.node import NodeSpec
from climate.compute.models.server import DELETE, Server
from climate.compute.nodes import services
from climate.compute.servers import sync_states
from climate.compute.servers.tasks import task_worker
from climate.compute.store.tables.servers import metadata as compute_metadata
from climate.compute.virt.hypervisor_cluster.driver import HypervisorClusterDriver
from climate.compute.virt.hypervisor_cluster.server_placements import ServerPlacements
from climate.compute.virt.multi_node import MultiNodeDriver
from climate.context import Climate
from climate.service.events import event_dispatch, events
from climate.service.hosts import inventory
from climate.settings import Settings
from tests import databases
from tests.compute.cloud_factory import SERVICE as HEAD
from tests.compute.cloud_factory import Place, node, place
from tests.compute.virt.hypervisor_cluster.live_machines import RUNNING, Dies, Host, Strikes
from tests.compute.virt.hypervisor_cluster.machines import LIMITS, Fenced, Machine
from tests.conftest import ADMIN, Clock, cloud_host
from tests.installed_plugins import installed_plugins
from tests.machine.world import empty

SIDE = "compute-2"
SUM, GPU = "sum", "g1"
RESERVABLE = (SUM, GPU)
"""Nodes that are kept for leases: a cluster, and one behind the service SIDE.  Others serve everybody."""
NEAR, FAR = "near", ("m1", "m2")
"""Members of the cluster: one at its own service, and two on machines that can fail."""


@dataclass
class Moving:
    """One deployment, from leases down to the machines that its servers run on."""

    engine: Engine
    home: Path
    clock: Clock = field(default_factory=Clock)
    strikes: Strikes = field(default_factory=Strikes)
    members: dict[str, Fenced] = field(default_factory=dict)
    dead: set[str] = field(default_factory=set)
    """Services whose machines have died."""
    ids: list[str] = field(default_factory=list)
    """Servers that there ever were."""
    stack: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        empty(self.engine)
        self.near = Host(name=NEAR, strikes=self.strikes)
        self.members = {name: Fenced(member(name), Host(name=name, strikes=self.strikes)) for name in FAR}
        self.hosts = {name: Host(name=name, strikes=self.strikes) for name in (HEAD, SIDE)}
        for host in self.hosts.values():
            host.others = self.hosts
        own = [self.near, *(one.driver for one in self.members.values())]
        summed = {host.name: host for host in own if isinstance(host, Host)}
        for host in summed.values():
            host.others = summed
        self.local = {NEAR: member(NEAR)}
        url = self.engine.url.render_as_string(hide_password=False)
        self.here: Place = self.stack.enter_context(place(url, self.home / HEAD, [], self._head()))
        compute = replace(self.here.compute, now=self.clock)
        (self.home / SIDE).mkdir(exist_ok=True)
        for folder in ("images", "volumes"):
            (self.home / HEAD / folder).mkdir(parents=True, exist_ok=True)
            if not (self.home / SIDE / folder).exists():
                (self.home / SIDE / folder).symlink_to(self.home / HEAD / folder)
        side = [node("n2", driver="qemu"), node(GPU, driver="qemu")]
        driver = MultiNodeDriver(lambda: side, {"qemu": self.hosts[SIDE]})
        other = replace(compute, home=self.home / SIDE, service_host=SIDE, driver=driver)
        self.here.compute = compute
        self.services: dict[str, Compute] = {HEAD: compute, SIDE: other}
        self.beat()
        cloud = BundledCloud(compute)
        settings = Settings(minutes_before_end=0, claim_seconds=15)
        self.climate = Climate(self.engine, cloud, installed_plugins(), settings, self.clock, lambda: 0.5)
        for name in RESERVABLE:
            cloud.enrol(name, 1)

    def _head(self) -> MultiNodeDriver:
        own = {"memory": self.near, "qemu": self.hosts[HEAD]}
        summing = HypervisorClusterDriver(
            self.nodes, {"memory": self.near}, self.home / HEAD, find_elsewhere=lambda _, one: self.members[one.name]
        )
        return MultiNodeDriver(self.nodes, {**own, CLUSTER: summing})

    def nodes(self) -> Sequence[NodeSpec]:
        """The nodes of the service HEAD, as its file has them now."""
        far = (replace(one.spec, service=name) for name, one in self.members.items())
        cluster = ClusterSpec((*self.local.values(), *far))
        sum_of_members = NodeSpec(SUM, 0, 0, 0, driver=CLUSTER, cluster=cluster, **LIMITS)  # type: ignore[arg-type]
        return [sum_of_members, node("n1", driver="qemu")]

    # What goes on by itself.

    def beat(self) -> None:
        """Each service that lives reports its nodes."""
        for name, compute in self.services.items():
            if name not in self.dead:
                services.refresh(compute)

    def tend(self) -> None:
        """Each service that lives looks after what it has."""
        self.beat()
        for name, compute in self.services.items():
            if name not in self.dead:
                with suppress(Dies):
                    sync_states.reconcile(compute)
        self._members_tend()

    def _members_tend(self) -> None:
        """Services of members that live clear away guests of no server, as the rounds of every service do."""
        there = {server.id for server in self.servers()}
        for member in self.members.values():
            for server_id in [*member.driver.guests, *member.driver.disks] if member.driver.up else ():
                if server_id not in there:
                    member.driver.delete(server_id)

    def work(self) -> None:
        """Workers do what was rung for; what one has claimed that died is free after a while."""
        rung = self.here.rings.rung
        while rung:
            self.carry_out(*rung.pop(0))
        self.strikes.ahead.clear()

    def carry_out(self, host: str, server_id: str) -> None:
        if host in self.services and host not in self.dead:
            with suppress(Dies):
                task_worker.run_task(self.services[host], server_id)
        with self.engine.begin() as conn:
            conn.execute(text("UPDATE compute_servers SET worker_until = NULL"))

    def finish(self) -> None:
        """Do all work that is open, of services that live, except deletions that wait for a failed member."""
        self.work()
        for _ in range(50):
            self.clock.forward(seconds=1)  # what was rung for in this very moment is not rung for again
            unfinished = task_worker.unfinished(self.here.compute, wait=0, again=0)
            found = [one for one in unfinished if one[0] not in self.dead and not self._waits(one[1])]
            if not found:
                return
            for host, server_id in found:
                self.carry_out(host, server_id)
            self.work()
        raise AssertionError(f"the work of services does not end: {found}")

    def _waits(self, server_id: str) -> bool:
        """Return whether a deletion waits for a failed member, which may still have the server."""
        entry = ServerPlacements.of(self.home / HEAD, SUM).get(server_id)
        places = () if entry is None else (entry.place, *([entry.leaves] if entry.leaves is not None else []))
        fails = any(one.member in self.members and not self.members[one.member].driver.up for one in places)
        return fails and any(one.id == server_id and one.task == DELETE for one in self.servers())

    def run_events(self) -> int:
        """Pollers and workers of leases run what is due, once; how many runs that were."""
        event_dispatch.rescue(self.climate, "poller")
        event_dispatch.claim_due(self.climate, "poller")
        messages = event_dispatch.to_send(self.climate)
        for message in messages:
            events.run(self.climate, message.event_id, message.token, "worker")
        return len(messages)

    def service_dies(self, name: str) -> None:
        self.hosts[name].die()
        self.dead.add(name)
        self._force_down()

    def service_returns(self, name: str) -> None:
        self.hosts[name].up = True
        self.dead.discard(name)
        self._force_down()
        self.beat()

    def _force_down(self) -> None:
        with self.engine.begin() as conn:
            query = text("UPDATE compute_services SET forced_down = (host = ANY(:dead))")
            conn.execute(query, {"dead": sorted(self.dead)})

    # What there is.

    def servers(self) -> list[Server]:
        found = []
        for server_id in self.ids:
            with suppress(ComputeError):
                found.append(self.here.look(server_id))
        return found

    def machines(self) -> dict[str, Machine]:
        """All machines, whether or not they can be reached."""
        return {NEAR: self.near, **{name: one.driver for name, one in self.members.items()}, **self.hosts}

    def copies(self, server_id: str) -> list[str]:
        """The machines on which a server runs."""
        return [name for name, one in self.machines().items() if one.guests.get(server_id) in RUNNING]

    def rows(self, question: str) -> list[Any]:
        with self.engine.connect() as conn:
            return list(conn.execute(text(question)))


def member(name: str) -> MemberSpec:
    return MemberSpec(name, "memory", 4, 4096, 40)


def registered(engine: Engine) -> Climate:
    """Register the hosts of RESERVABLE in a database that has the tables of the engine; return the means."""
    databases.create_tables(engine.url, compute_metadata)
    cloud = FakeCloud({name: cloud_host(name) for name in RESERVABLE})
    found = Climate(engine, cloud, {}, Settings(), Clock())
    for name in RESERVABLE:
        inventory.register(found, ADMIN, name, {})
    return found
