"""Driver of nodes that are clusters: it forwards each call to the member of the server.

Scheduler, API and compute service see one node. Only the ledger knows the member of a server, and diagnostics show it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from climate.compute.clusters.cluster_spec import CLUSTER, MemberSpec
from climate.compute.errors import Unanswered, VirtError
from climate.compute.models.node import DEFAULTS, NodeDefaults, NodeSpec
from climate.compute.virt import Guest, State, VirtDriver, Wiring
from climate.compute.virt.guest_folders import as_virt_error
from climate.compute.virt.guest_kinds import Kind, completed
from climate.compute.virt.hypervisor_cluster import live_moves, periodic_tasks
from climate.compute.virt.hypervisor_cluster.cluster import Cluster
from climate.compute.virt.hypervisor_cluster.member import HERE, LocalMember, Member
from climate.compute.virt.hypervisor_cluster.member_capacity import Limits
from climate.compute.virt.hypervisor_cluster.server_placements import KEPT, Entry, ServerPlacements
from climate.compute.virt.live_migrator import Limits as LiveLimits
from climate.compute.virt.live_migrator import LiveMigrator
from climate.sealed_secrets import Vault

Find = Callable[[NodeSpec, MemberSpec], Member | None]
"""Function that returns the member of a cluster entry; None while it is unreachable."""


Connect = Callable[[VirtDriver, str | None], VirtDriver]
"""Function that returns a driver that connects its guests to the networks of a host: a namespace, None: the machine."""


def unconnected(driver: VirtDriver, netns: str | None) -> VirtDriver:
    """Return the driver itself: addresses are only recorded."""
    return driver


def nowhere(cluster: NodeSpec, member: MemberSpec) -> Member | None:
    """Return None: for processes that run no tasks and so need no remote members."""
    return None


@dataclass(frozen=True)
class ClusterOptions:
    """Dependencies of the clusters of a compute service."""

    defaults: NodeDefaults = DEFAULTS
    """Limits of members."""
    find_elsewhere: Find = nowhere
    """Finds members of other compute services."""
    vault: Vault = field(default_factory=Vault.of_this_process)
    """Seals the keys of live migrations in files."""
    connect: Connect = unconnected
    """Gives members the driver that plugs interfaces; used if networks are real."""


@dataclass(frozen=True)
class HypervisorClusterDriver:
    """Driver of nodes with `driver: cluster`; `drivers`: available drivers of members on this machine."""

    read_nodes: Callable[[], Sequence[NodeSpec]]
    drivers: Mapping[str, VirtDriver]
    home: Path
    defaults: NodeDefaults = DEFAULTS
    find_elsewhere: Find = nowhere
    """Finds members of other compute services."""
    live_limits: LiveLimits = field(default_factory=LiveLimits)
    """Limits of live migrations between machines."""
    vault: Vault = field(default_factory=Vault.of_this_process)
    """Seals the keys of live migrations in the ledger."""
    connect: Connect = unconnected
    """Gives members on this machine the driver that plugs interfaces, if networks are real."""
    failures: dict[str, str] = field(default_factory=dict)
    """Last logged message per member or server, so that each is logged once."""

    def nodes(self) -> Sequence[NodeSpec]:
        """Return each cluster as one node: the sum of its working members."""
        return [self._described(cluster) for cluster in self._clusters()]

    def trouble(self) -> str | None:
        return None

    def kinds(self) -> tuple[Kind, ...]:
        return ()

    def live(self, node: str) -> LiveMigrator | None:
        """Return None: a cluster moves its servers itself, and the scheduler cannot migrate them live."""
        return None

    def wiring(self, node: str) -> Wiring:
        if self.connect is not unconnected:
            return Wiring.BY_MEMBER
        cluster = self._cluster(node)
        wirings = [] if cluster is None else [one.driver.wiring(one.spec.name) for one in cluster.members.values()]
        return wirings[0] if wirings else Wiring.NONE

    def host_netns(self, node: str) -> str | None:
        cluster = self._cluster(node)
        return None if cluster is None else cluster.spec.netns

    def knows_guests(self, node: str) -> bool:
        cluster = self._cluster(node)
        if cluster is None or not cluster.members:
            return False
        return all(one.driver.knows_guests(one.spec.name) for one in cluster.members.values())

    def member_of(self, guest: Guest) -> str | None:
        """Return the name of a server's member; None if it has none, or is not on a cluster."""
        cluster = self._cluster(guest.node)
        entry = None if cluster is None else cluster.placements.get(guest.id)
        return None if entry is None else entry.place.member

    def hosts_of_servers(self) -> Mapping[str, str | None]:
        """Return the network namespaces of the servers on members of this machine: id -> namespace."""
        ledgers = ((cluster.spec.netns, cluster.placements.entries()) for cluster in self._clusters())
        return {
            server_id: netns
            for netns, entries in ledgers
            for server_id, entry in entries.items()
            if entry.place.machine == HERE and entry.leaves is None and entry.moving is None and not entry.starts
        }

    def restarts(self) -> Mapping[str, bool]:
        """Return the servers restarted on another member and not reported yet: id -> whether their disk was kept."""
        entries = (entry for one in self._clusters() for entry in one.placements.entries().values())
        return {entry.guest.id: entry.restarted == KEPT for entry in entries if entry.restarted}

    def reported(self, server_ids: Iterable[str]) -> None:
        """Record that the restarts of these servers were reported."""
        for cluster in self._clusters():
            for server_id in server_ids:
                _forget_restart(cluster, server_id)

    def prepare(self, guest: Guest) -> None:
        with self._taken(guest, State.PREPARED) as (member, asked):
            member.driver.prepare(asked)

    def run(self, guest: Guest) -> None:
        with self._taken(guest, State.RUNNING) as (member, asked):
            member.driver.run(asked)

    def stop(self, guest: Guest, *, kindly: bool = True) -> None:
        if self._entry(guest) is not None:
            self._call_member(guest, lambda driver, asked: driver.stop(asked, kindly=kindly), becomes=State.DEAD)

    def pause(self, guest: Guest) -> None:
        self._call_member(guest, lambda driver, asked: driver.pause(asked), becomes=State.PAUSED)

    def unpause(self, guest: Guest) -> None:
        self._call_member(guest, lambda driver, asked: driver.unpause(asked), becomes=State.RUNNING)

    def suspend(self, guest: Guest) -> None:
        self._call_member(guest, lambda driver, asked: driver.suspend(asked), becomes=State.SUSPENDED)

    def resume(self, guest: Guest) -> None:
        self._call_member(guest, lambda driver, asked: driver.resume(asked), becomes=State.RUNNING, connected=True)

    def rewire(self, guest: Guest) -> None:
        if self._entry(guest) is not None:
            self._call_member(guest, lambda driver, asked: driver.rewire(asked), connected=True)

    def snapshot(self, guest: Guest, target: Path) -> None:
        self._call_member(guest, lambda driver, asked: driver.snapshot(asked, target))

    @as_virt_error
    def delete(self, server_id: str) -> None:
        for cluster in self._clusters():
            with cluster.placements.holding(server_id):
                entry = _end_move(cluster, server_id)
                if entry is not None:
                    _delete(cluster, entry)

    @as_virt_error
    def states(self) -> Mapping[str, State]:
        return {server_id: state for one in self._clusters() for server_id, state in periodic_tasks.states(one).items()}

    @as_virt_error
    def clean_up(self) -> None:
        """Run one round for all clusters: restart servers of failed members, and move others for balance."""
        for cluster in self._clusters():
            periodic_tasks.run_round(cluster, self.failures)

    @as_virt_error
    def console(self, guest: Guest, lines: int | None) -> str:
        cluster = self._known(guest)
        entry = cluster.placements.get(guest.id)
        if entry is None:
            return ""
        return cluster.host(entry).driver.console(replace(guest, node=entry.place.member), lines)

    @contextmanager
    def _taken(self, guest: Guest, becomes: State) -> Iterator[tuple[Member, Guest]]:
        """Lock a server to prepare or start it on a member with room, and record its new state."""
        cluster = self._known(guest)
        with cluster.placements.holding(guest.id):
            _end_move(cluster, guest.id)
            entry = cluster.takes(guest)
            member = cluster.host(entry)
            try:
                yield member, replace(guest, node=member.spec.name)
                made = entry.guest
                if made.carried:  # the image was deleted after the build
                    made = replace(made, image=made.again, carried=False, again=None)
                entry = replace(entry, guest=made, state=becomes, starts=False)
                cluster.placements.write(entry)
            except Unanswered:
                entry = live_moves.rest(cluster, entry)
                raise
            finally:
                self._record_state(cluster, entry, member)

    @as_virt_error
    def _call_member(
        self,
        guest: Guest,
        verb: Callable[[VirtDriver, Guest], None],
        *,
        becomes: State | None = None,
        connected: bool = False,
    ) -> None:
        """Call a method of the member's driver, and record the state that the method leads to.

        `becomes`: that state; None, and for a PREPARED server: the last one. `connected`: the ledger gets the
        interfaces and volumes of `guest`.
        """
        cluster = self._known(guest)
        with cluster.placements.holding(guest.id):
            entry = _end_move(cluster, guest.id)
            if entry is None:
                raise VirtError(f"there is nothing of server {guest.id} on the cluster, so it is not running")
            entry = cluster.arrived(entry)
            member = cluster.host(entry)
            try:
                verb(member.driver, replace(guest, node=member.spec.name))
                if becomes is not None and entry.state is not State.PREPARED:
                    # Recorded before the look, which fails if the member does not answer.
                    entry = replace(entry, state=becomes)
                    cluster.placements.write(entry)
            except Unanswered:
                entry = live_moves.rest(cluster, entry)
                raise
            finally:
                kept = entry.guest
                if connected:
                    kept = replace(kept, interfaces=guest.interfaces, volumes=guest.volumes)
                self._record_state(cluster, replace(entry, guest=kept), member)

    def _record_state(self, cluster: Cluster, entry: Entry, member: Member) -> None:
        """Record the state after a call, even if the call failed."""
        with suppress(VirtError):
            state = periodic_tasks.state_on(member, entry)
            cluster.placements.write(replace(entry, state=state, starts=False))

    def _entry(self, guest: Guest) -> Entry | None:
        return self._known(guest).placements.get(guest.id)

    def _known(self, guest: Guest) -> Cluster:
        cluster = self._cluster(guest.node)
        if cluster is None:
            raise VirtError(f"The resource {guest.node} does not exist")
        return cluster

    def _cluster(self, node: str) -> Cluster | None:
        return next((self._cluster_of(spec) for spec in self._specs() if spec.name == node), None)

    def _clusters(self) -> list[Cluster]:
        return [self._cluster_of(spec) for spec in self._specs()]

    def _specs(self) -> list[NodeSpec]:
        return [spec for spec in self.read_nodes() if spec.driver == CLUSTER and spec.cluster is not None]

    def _cluster_of(self, spec: NodeSpec) -> Cluster:
        named = spec.cluster.members if spec.cluster else ()
        members = {one.name: member for one in named if (member := self._member(spec, one)) is not None}
        kind = next((one.spec.driver for one in members.values()), "")
        members = {name: one for name, one in members.items() if one.spec.driver == kind}
        ledger, limits = ServerPlacements.of(self.home, spec.name), Limits.of(spec, self.defaults)
        return Cluster(spec, members, ledger, limits, self.live_limits, vault=self.vault)

    def _member(self, spec: NodeSpec, member: MemberSpec) -> Member | None:
        if member.service is not None:
            return self.find_elsewhere(spec, member)
        driver = self.drivers.get(member.driver)
        return None if driver is None else LocalMember(member, self.connect(driver, spec.netns))

    def _described(self, cluster: Cluster) -> NodeSpec:
        kind = next((one.spec.driver for one in cluster.members.values()), "")
        kinds = self.drivers[kind].kinds() if kind in self.drivers else ()
        return completed(cluster.described(self.defaults), kinds)


def _end_move(cluster: Cluster, server_id: str) -> Entry | None:
    """Return the entry of a server, without a live migration; the caller holds its lock. Raise VirtError."""
    entry = cluster.placements.get(server_id)
    return None if entry is None else live_moves.ended(cluster, entry)


def _forget_restart(cluster: Cluster, server_id: str) -> None:
    with cluster.placements.holding(server_id, wait=False) as held:
        entry = cluster.placements.get(server_id) if held else None
        if entry is not None and entry.restarted:
            cluster.placements.write(replace(entry, restarted=""))


def _delete(cluster: Cluster, entry: Entry) -> None:
    """Delete a server from its member and from the one it moved from. Raise VirtError if one cannot be reached."""
    for place in dict.fromkeys(one for one in (entry.leaves, entry.place) if one is not None):
        member = cluster.at(place)
        reason = "it has left the cluster" if member is None else cluster.trouble(member)
        if member is None or reason is not None:
            raise VirtError(f"a cluster member of server {entry.guest.id} cannot be reached: {reason}")
        member.driver.delete(entry.guest.id)
    cluster.placements.drop(entry.guest.id)
