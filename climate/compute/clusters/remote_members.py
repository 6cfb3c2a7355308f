"""Members of a cluster behind other compute services, as the cluster's own service sees them.

Each verb is an order in the database: the poller wakes the other service, and the answer is awaited. An order that
was not begun in time is withdrawn.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine

from climate.compute.clusters import member_service, migration_orders
from climate.compute.clusters.cluster_spec import MemberSpec
from climate.compute.clusters.remote_migrator import RemoteMigrator
from climate.compute.errors import Unanswered, VirtError
from climate.compute.linux import netns, processes
from climate.compute.models.node import NodeSpec
from climate.compute.servers.interfaces.vif_plugging import netns_of
from climate.compute.store.clock import database_time
from climate.compute.store.nodes import cluster_members as rows
from climate.compute.virt import Guest, State, VirtDriver, Wiring
from climate.compute.virt.guest_folders import MARK, kill
from climate.compute.virt.guest_kinds import LIVE_DRIVERS, Kind
from climate.compute.virt.hypervisor_cluster.member import Member
from climate.compute.virt.live_migrator import LiveMigrator
from climate.database.connections import reading
from climate.processes import supervised_command
from climate.processes.supervised_command import Run
from climate.sealed_secrets import Vault

FENCE_SECONDS = 60.0
"""Timeout of the command that fences a member, in seconds."""

STATES_SECONDS = 5.0
"""Timeout in seconds for the list of states of a service, so that a failing one does not block a round."""

LOOK_SECONDS = 0.05


@dataclass(frozen=True)
class RemoteMembers:
    """Finds the members of this service's clusters that are behind other services."""

    engine: Engine
    home: Path
    service_host: str
    """The host of this service."""
    ring: Callable[[], None]
    """Wakes the pollers to look for orders."""
    down_seconds: float
    """Seconds without a heartbeat after which a service has failed."""
    answer_seconds: float = 60.0
    """Timeout of an answer in seconds."""
    now: Callable[[Connection], datetime] = database_time
    vault: Vault = field(default_factory=Vault.of_this_process)
    """Seals the keys of live migrations in orders."""

    def find(self, cluster: NodeSpec, member: MemberSpec) -> Member | None:
        """Return a member as its service offers it; None if it was never offered to the cluster."""
        with reading(self.engine) as conn:
            offer = rows.offered(
                conn, member.service or "", member.name, cluster.name, self.now(conn), self.down_seconds
            )
        if offer is None:
            return None
        spec = replace(offer.spec, maintenance=member.maintenance, fence=member.fence)
        return RemoteMember(spec, RemoteDriver(self, spec, cluster.name), offer.machine, offer.up, offer.disks)

    def call(self, service: str, verb: str, said: Mapping[str, object], most: float = math.inf) -> Any:
        """Send an order to a service and return its answer, waiting for at most `most` seconds.

        VirtError if it fails, Unanswered if it does not answer.
        """
        seconds = min(self.answer_seconds, most)
        with self.engine.begin() as conn:
            order = rows.add_order(conn, service, verb, said, self.now(conn), seconds)
        self.ring()
        deadline = time.monotonic() + seconds
        while True:
            with reading(self.engine) as conn:
                begun, done, answer, error = rows.read_order(conn, order)
            if done:
                break
            if time.monotonic() > deadline and (begun or self._withdraw(order)):
                raise Unanswered(f"a member of the cluster did not answer within {seconds:g} s")
            time.sleep(LOOK_SECONDS)
        with self.engine.begin() as conn:
            rows.drop(conn, order, self.now(conn))
        if error is not None:
            raise VirtError(error)
        return answer

    def _withdraw(self, order: str) -> bool:
        with self.engine.begin() as conn:
            return rows.withdraw(conn, order)


@dataclass(frozen=True)
class RemoteMember:
    """A member behind another service."""

    spec: MemberSpec
    driver: VirtDriver
    kernel: str
    """The machine that its service reports."""
    up: bool
    disks: str = ""

    @property
    def machine(self) -> str:
        return f"service {self.spec.service}"

    def trouble(self) -> str | None:
        return None if self.up else "its compute service is down, or offers it no more"

    def fence(self, guest: Guest) -> None:
        """Fence the member's guest: by the command of the entry, or as a process if it runs on this machine."""
        if self.spec.fence:
            _fence(self.spec.fence)
        elif self.kernel and self.kernel == member_service.machine():
            kill(processes.carrying({MARK: guest.id}))
            # The interface in it would answer for the server, and keep its name from the next member.
            netns.drop(netns_of(guest.id))
        else:
            raise VirtError("its member has failed, and the entry of the member names no command that fences it")


@dataclass(frozen=True)
class RemoteDriver:
    """The driver of a member behind another service: each verb is an order to it."""

    remote: RemoteMembers
    spec: MemberSpec
    cluster: str

    def nodes(self) -> Sequence[NodeSpec]:
        return ()

    def trouble(self) -> str | None:
        return None

    def kinds(self) -> tuple[Kind, ...]:
        return ()

    def live(self, node: str) -> LiveMigrator | None:
        return RemoteMigrator(self._call, self._drop, self.remote.vault) if self.spec.driver in LIVE_DRIVERS else None

    def wiring(self, node: str) -> Wiring:
        return Wiring.NONE

    def host_netns(self, node: str) -> str | None:
        return None

    def knows_guests(self, node: str) -> bool:
        return self.spec.driver != "memory"

    def prepare(self, guest: Guest) -> None:
        self._call("prepare", guest)

    def run(self, guest: Guest) -> None:
        self._call("run", guest)

    def stop(self, guest: Guest, *, kindly: bool = True) -> None:
        self._call("stop", guest, kindly=kindly)

    def pause(self, guest: Guest) -> None:
        self._call("pause", guest)

    def unpause(self, guest: Guest) -> None:
        self._call("unpause", guest)

    def suspend(self, guest: Guest) -> None:
        self._call("suspend", guest)

    def resume(self, guest: Guest) -> None:
        self._call("resume", guest)

    def rewire(self, guest: Guest) -> None:
        self._call("rewire", guest)

    def snapshot(self, guest: Guest, target: Path) -> None:
        if not target.is_relative_to(self.remote.home):
            raise VirtError("a member behind another service writes images into the shared folder only")
        self._call("snapshot", guest, target=str(target.relative_to(self.remote.home)))

    def delete(self, server_id: str) -> None:
        self.remote.call(self._service, "delete", {"server_id": server_id})

    def disconnect(self, server_id: str) -> None:
        self.remote.call(self._service, "disconnect", {"server_id": server_id})

    def states(self) -> Mapping[str, State]:
        states = self.remote.call(self._service, "states", {}, STATES_SECONDS)
        return {server_id: State(state) for server_id, state in states.items()}

    def clean_up(self) -> None:
        """Do nothing: the member's own service does it."""

    def console(self, guest: Guest, lines: int | None) -> str:
        return str(self._call("console", guest, lines=lines))

    def _drop(self, server_id: str) -> None:
        said = {"server_id": server_id, "member": self.spec.name}
        self.remote.call(self._service, migration_orders.DROP, said)

    @property
    def _service(self) -> str:
        return self.spec.service or ""

    def _call(self, verb: str, guest: Guest, **more: object) -> object:
        said = {"guest": member_service.guest_view(guest, self.remote.home), "cluster": self.cluster}
        return self.remote.call(self._service, verb, {**said, "by": self.remote.service_host, **more})


def _fence(command: Sequence[str], seconds: float = FENCE_SECONDS) -> None:
    """Run the command that fences a member; VirtError unless it succeeds. No process of it is left."""
    if reason := supervised_command.execute(Run(command, seconds)).failure:
        raise VirtError(f"the command that fences a member {reason}")
