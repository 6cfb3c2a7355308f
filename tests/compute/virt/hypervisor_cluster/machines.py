"""A cluster whose members are machines that fail, come back, and are fenced, as a test wants it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import uuid4

from climate.compute.clusters.cluster_spec import CLUSTER, ClusterSpec, MemberSpec
from climate.compute.errors import Unanswered, VirtError
from climate.compute.models.node import NodeSpec
from climate.compute.virt import Guest, State
from climate.compute.virt.hypervisor_cluster.driver import HypervisorClusterDriver
from climate.compute.virt.hypervisor_cluster.member import HERE
from climate.compute.virt.in_memory import MemoryDriver
from climate.sealed_secrets import Vault

LIMITS = {"ram_ratio": 1.0, "cpu_ratio": 4.0, "disk_ratio": 1.0, "reserved_ram_mb": 0, "reserved_disk_mb": 0}


@dataclass
class Machine(MemoryDriver):
    """The driver of one machine, whose servers go on while nobody can reach it."""

    up: bool = True
    mute: bool = False
    """Whether its service beats, and answers nothing."""
    broken_off: str | None = None
    """The verb at which whoever asks for it dies, once it is done."""
    disks: dict[str, str] = field(default_factory=dict)
    """Server -> what its disk is; machines that share their disks have one of these."""

    def knows_guests(self, node: str) -> bool:
        return True

    def states(self) -> Mapping[str, State]:
        self._reached()
        return {**dict.fromkeys(self.disks, State.DEAD), **self.guests}

    def delete(self, server_id: str) -> None:
        self._reached()
        super().delete(server_id)
        self.disks.pop(server_id, None)

    def _set(self, verb: str, guest: Guest, state: State) -> None:
        self._reached()
        super()._set(verb, guest, state)
        if verb in ("run", "prepare"):
            self.disks.setdefault(guest.id, str(uuid4()))
        if self.broken_off == verb:
            self.broken_off = None
            raise KeyboardInterrupt

    def _reached(self) -> None:
        if not self.up:
            raise VirtError("the machine does not answer")
        if self.mute:
            raise Unanswered("a member of the cluster did not answer")


@dataclass
class Fenced:
    """A member behind another service."""

    spec: MemberSpec
    driver: Machine
    can_fence: bool = True
    disks: str = ""

    @property
    def machine(self) -> str:
        return self.spec.name

    def trouble(self) -> str | None:
        return None if self.driver.up else "its service is down"

    def fence(self, guest: Guest) -> None:
        if not self.can_fence:
            raise VirtError("it cannot be fenced")
        if self.disks:
            self.driver.guests.pop(guest.id, None)  # all that there is of it is in the folder that is shared
        elif self.driver.guests.get(guest.id) in (State.RUNNING, State.PAUSED):
            self.driver.guests[guest.id] = State.DEAD


@dataclass
class Lab:
    """A cluster `c` of members here, and of members on machines of their own."""

    home: Path
    here: dict[str, MemberSpec] = field(default_factory=dict)
    machines: dict[str, Fenced] = field(default_factory=dict)
    terms: ClusterSpec = field(default_factory=lambda: ClusterSpec(()))
    local: Machine = field(default_factory=Machine)
    make: Callable[[str], Machine] = lambda name: Machine()
    """Makes the machine of that name."""
    vault: Vault = field(default_factory=Vault.of_this_process)

    @property
    def driver(self) -> HypervisorClusterDriver:
        """The driver, as after a restart of the service."""
        return HypervisorClusterDriver(
            self.read,
            {"memory": self.local},
            self.home,
            find_elsewhere=lambda _, one: self.machines.get(one.name),
            vault=self.vault,
        )

    def read(self) -> list[NodeSpec]:
        members = (*self.here.values(), *(replace(one.spec, service=name) for name, one in self.machines.items()))
        cluster = replace(self.terms, members=members)
        return [NodeSpec("c", 0, 0, 0, driver=CLUSTER, cluster=cluster, **LIMITS)]  # type: ignore[arg-type]

    @property
    def node(self) -> NodeSpec:
        """The cluster, as it is reported."""
        return self.driver.nodes()[0]

    def member(self, name: str, memory_mb: int = 4096, *, here: bool = True) -> None:
        """Add a member, or change its size."""
        spec = MemberSpec(name, "memory", 4, memory_mb, 40)
        if here:
            self.here[name] = spec
        elif name in self.machines:
            self.machines[name].spec = spec
        else:
            self.machines[name] = Fenced(spec, self.make(name))

    def guest(self, ram_mb: int = 1024, **wanted: object) -> Guest:
        return replace(Guest(str(uuid4()), "web", "c", ram_mb=ram_mb), **wanted)  # type: ignore[arg-type]

    def run(self, ram_mb: int = 1024) -> Guest:
        """A new server that runs."""
        guest = self.guest(ram_mb)
        self.driver.run(guest)
        return guest

    def where(self, guest: Guest) -> str | None:
        return self.driver.member_of(guest)

    def share(self, *names: str) -> None:
        """Let the disks of these machines be in one folder."""
        common = self.machines[names[0]].driver.disks
        for name in names:
            self.machines[name].driver.disks, self.machines[name].disks = common, f"shared by {names}"

    def copies(self, guest: Guest) -> list[str]:
        """The machines on which a server runs, whether or not they can be reached."""
        drivers = {HERE: self.local, **{name: one.driver for name, one in self.machines.items()}}
        alive = (State.RUNNING, State.PAUSED)
        return [name for name, driver in drivers.items() if driver.guests.get(guest.id) in alive]
