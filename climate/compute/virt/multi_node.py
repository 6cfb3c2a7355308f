"""Compute service with several nodes from a file, each with its own driver."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from climate.compute.clusters.cluster_spec import CLUSTER, MemberSpec
from climate.compute.errors import VirtError
from climate.compute.models.node import NodeSpec
from climate.compute.virt import Guest, State, VirtDriver, Wiring
from climate.compute.virt.guest_kinds import Kind, completed
from climate.compute.virt.hypervisor_cluster.driver import Connect, HypervisorClusterDriver, unconnected
from climate.compute.virt.hypervisor_cluster.member import ConnectingDriver
from climate.compute.virt.live_migrator import LiveMigrator

log = structlog.get_logger("climate.compute.virt")


@dataclass(frozen=True)
class MultiNodeDriver:
    """Driver that forwards each call to the driver of the guest's node; the nodes file is read each time."""

    read_nodes: Callable[[], Sequence[NodeSpec]]
    members: Mapping[str, VirtDriver]
    connect: Connect = unconnected
    """Gives members of clusters of other services the driver that plugs interfaces, if networks are real."""
    failures: dict[str, str] = field(default_factory=dict)
    """Node -> last logged reason why it was skipped."""
    indexed: list[tuple[Sequence[NodeSpec], Mapping[str, NodeSpec]]] = field(default_factory=list, compare=False)
    """Nodes of the last reading, by name, which saves repeated readings."""

    completed: list[tuple[Sequence[NodeSpec], object, Sequence[NodeSpec]]] = field(default_factory=list, compare=False)
    """Last result of `nodes`, with the entries and the drivers' reports that it was made from."""

    def nodes(self) -> Sequence[NodeSpec]:
        """Return the nodes whose drivers work here; log a warning once for each other node."""
        entries = self.read_nodes()
        specs = [spec for spec in entries if spec.joins is None]
        reasons = {driver: self._reason(driver) for driver in {spec.driver for spec in specs}}
        kinds = {driver: self.members[driver].kinds() for driver, reason in reasons.items() if reason is None}
        # The size of a cluster is the current sum of its members.
        if CLUSTER in reasons or not isinstance(entries, tuple):
            return self._nodes(specs, reasons)
        last = self.completed[0] if self.completed else None
        if last is None or last[0] is not entries or last[1] != (reasons, kinds):
            last = (entries, (reasons, kinds), self._nodes(specs, reasons))
            self.completed[:] = [last]
        return last[2]

    def _nodes(self, specs: Sequence[NodeSpec], reasons: Mapping[str, str | None]) -> Sequence[NodeSpec]:
        refused = {spec.name: reasons[spec.driver] or self._refusal(spec) for spec in specs}
        left_out = {name: reason for name, reason in refused.items() if reason is not None}
        self._report(left_out)
        summed = {spec.name: spec for spec in self.members[CLUSTER].nodes()} if reasons.get(CLUSTER, 1) is None else {}
        there = [spec for spec in specs if spec.name not in left_out]
        return [summed.get(spec.name) or completed(spec, self.members[spec.driver].kinds()) for spec in there]

    def _report(self, left_out: Mapping[str, str]) -> None:
        """Log the nodes that are left out, each once for the same reason."""
        for name, reason in left_out.items():
            if self.failures.get(name) != reason:
                log.warning("node skipped", node=name, reason=reason)
        self.failures.clear()
        self.failures.update(left_out)

    def offers(self) -> list[tuple[str, MemberSpec]]:
        """Return the (cluster, member) pairs that this service offers to clusters of other services."""
        joining = [spec for spec in self.read_nodes() if spec.joins is not None]
        reasons = {driver: self._reason(driver) for driver in {spec.driver for spec in joining}}
        return [
            (spec.joins, MemberSpec(spec.name, spec.driver, spec.vcpus, spec.memory_mb, spec.local_gb))
            for spec in joining
            if spec.joins is not None and reasons[spec.driver] is None
        ]

    def hosts_of_members(self) -> Mapping[str, str | None]:
        """Return the network namespaces of the members here that plug interfaces: name -> namespace."""
        if self.connect is unconnected:
            return {}
        specs = self.read_nodes()
        clusters = [(spec.cluster, spec.netns) for spec in specs if spec.cluster is not None]
        here = {
            member.name: netns for cluster, netns in clusters for member in cluster.members if member.service is None
        }
        return {**here, **{spec.name: spec.netns for spec in specs if spec.joins is not None}}

    def hosts_of_member_servers(self) -> Mapping[str, str | None]:
        """Return the network namespaces of servers of clusters here that are on a member of this machine."""
        summing = self.members.get(CLUSTER)
        if not isinstance(summing, HypervisorClusterDriver) or summing.connect is unconnected:
            return {}
        return summing.hosts_of_servers()

    def disconnect(self, server_id: str) -> None:
        """Remove the interfaces of a server of another service's cluster from the members here. Raise VirtError."""
        for driver in self._connected():
            if isinstance(driver, ConnectingDriver):
                driver.disconnect(server_id)

    def member_of(self, guest: Guest) -> str | None:
        """Return the cluster member of a server, for administrators; None if its node is not a cluster."""
        summing = self.members.get(CLUSTER)
        return summing.member_of(guest) if isinstance(summing, HypervisorClusterDriver) else None

    def restarts(self) -> Mapping[str, bool]:
        """Return servers restarted by clusters and not reported yet: id -> whether their disk was kept."""
        summing = self.members.get(CLUSTER)
        return summing.restarts() if isinstance(summing, HypervisorClusterDriver) else {}

    def reported(self, server_ids: Iterable[str]) -> None:
        """Record that the restarts of these servers were reported."""
        summing = self.members.get(CLUSTER)
        if isinstance(summing, HypervisorClusterDriver):
            summing.reported(server_ids)

    def trouble(self) -> str | None:
        return None

    def kinds(self) -> tuple[Kind, ...]:
        return tuple(dict.fromkeys(kind for member in self.members.values() for kind in member.kinds()))

    def wiring(self, node: str) -> Wiring:
        spec = self._spec(node)
        return Wiring.NONE if spec is None else self.members[spec.driver].wiring(node)

    def host_netns(self, node: str) -> str | None:
        spec = self._spec(node)
        return None if spec is None else spec.netns

    def knows_guests(self, node: str) -> bool:
        spec = self._spec(node)
        return spec is not None and self.members[spec.driver].knows_guests(node)

    def prepare(self, guest: Guest) -> None:
        self._member(guest).prepare(guest)

    def run(self, guest: Guest) -> None:
        self._member(guest).run(guest)

    def stop(self, guest: Guest, *, kindly: bool = True) -> None:
        self._member(guest).stop(guest, kindly=kindly)

    def pause(self, guest: Guest) -> None:
        self._member(guest).pause(guest)

    def unpause(self, guest: Guest) -> None:
        self._member(guest).unpause(guest)

    def suspend(self, guest: Guest) -> None:
        self._member(guest).suspend(guest)

    def resume(self, guest: Guest) -> None:
        self._member(guest).resume(guest)

    def rewire(self, guest: Guest) -> None:
        self._member(guest).rewire(guest)

    def snapshot(self, guest: Guest, target: Path) -> None:
        self._member(guest).snapshot(guest, target)

    def delete(self, server_id: str) -> None:
        # The node may be missing in the file, so all drivers delete the guest. Clusters come first: with shared
        # folders, a guest's folder must not be deleted before its process on another machine.
        for member in reversed(list(self.members.values())):
            member.delete(server_id)

    def states(self) -> Mapping[str, State]:
        return {server_id: state for member in self.members.values() for server_id, state in member.states().items()}

    def live(self, node: str) -> LiveMigrator | None:
        spec = self._spec(node)
        return None if spec is None else self._driver(spec).live(node)

    def clean_up(self) -> None:
        for member in self.members.values():
            member.clean_up()

    def console(self, guest: Guest, lines: int | None) -> str:
        return self._member(guest).console(guest, lines)

    def _member(self, guest: Guest) -> VirtDriver:
        spec = self._spec(guest.node)
        if spec is None:
            raise VirtError(f"The resource {guest.node} does not exist")
        return self._driver(spec)

    def _driver(self, spec: NodeSpec) -> VirtDriver:
        own = self.members[spec.driver]
        return own if spec.joins is None else self.connect(own, spec.netns)

    def _connected(self) -> list[VirtDriver]:
        """Return the drivers of the members here, one per driver and host."""
        joining = {(spec.driver, spec.netns) for spec in self.read_nodes() if spec.joins is not None}
        known = sorted((one for one in joining if one[0] in self.members), key=str)
        return [self.connect(self.members[driver], netns) for driver, netns in known]

    def _spec(self, node: str) -> NodeSpec | None:
        specs = self.read_nodes()
        if not self.indexed or self.indexed[0][0] is not specs or not isinstance(specs, tuple):
            self._index(specs)
        return self.indexed[0][1].get(node)

    def _index(self, specs: Sequence[NodeSpec]) -> None:
        known = [spec for spec in specs if spec.driver in self.members]
        self.indexed[:] = [(specs, {spec.name: spec for spec in reversed(known)})]

    def _refusal(self, spec: NodeSpec) -> str | None:
        """Return why the members of a cluster cannot work; None: they can, or there are none."""
        kinds = sorted(set(self.members) - {CLUSTER})
        named = {member.driver for member in spec.cluster.members if member.service is None} if spec.cluster else set()
        unknown = sorted(named - set(kinds))
        return f"there is no driver {unknown[0]!r} for its members, only {', '.join(kinds)}" if unknown else None

    def _reason(self, driver: str) -> str | None:
        member = self.members.get(driver)
        if member is None:
            return f"there is no driver {driver!r}, only {', '.join(sorted(self.members))}"
        return member.trouble()
