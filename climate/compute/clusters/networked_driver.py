"""Driver of a cluster's members on real networks: it connects each server to the network of its member.

The scheduler and the tasks of servers know only the cluster, and so cannot plug interfaces into the host of a member.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import Engine

from climate.compute.errors import NetworkError, VirtError
from climate.compute.linux import processes
from climate.compute.models.node import NodeSpec
from climate.compute.network.driver.registry import DriverCache
from climate.compute.network.network_options import NetworkOptions
from climate.compute.servers.interfaces import vif_plugging
from climate.compute.servers.interfaces.vif_plugging import Networking, Socket
from climate.compute.virt import Guest, State, VirtDriver, Wiring
from climate.compute.virt.guest_folders import MARK, Homes
from climate.compute.virt.guest_kinds import Kind
from climate.compute.virt.live_migrator import APART, Limits, LiveMigrator, Watch
from climate.compute.virt.shared_storage import HasGuestFolders


def _lives_here(server_id: str) -> bool:
    """Return whether a process of a server runs on this machine, for whatever compute service."""
    return next(iter(processes.carrying({MARK: server_id})), None) is not None


@dataclass(frozen=True)
class HostNetworks:
    """Dependencies of the drivers of members: the part of `Compute` that exists before its driver."""

    engine: Engine
    network_drivers: DriverCache
    network: NetworkOptions
    lives_here: Callable[[str], bool] = _lives_here
    """Return whether a server has a process on this machine."""

    def connect(self, driver: VirtDriver, netns: str | None) -> VirtDriver:
        """Return a driver that plugs the interfaces of its guests into the host with this network namespace."""
        return WiredDriver(driver, self, netns, self.lives_here)


@dataclass(frozen=True)
class WiredDriver:
    """Driver that plugs the interfaces of its guests into one host before it starts them."""

    inner: VirtDriver
    networking: Networking
    netns: str | None
    """Network namespace of the host; None: the machine's own."""
    lives_here: Callable[[str], bool] = _lives_here
    """See HostNetworks."""

    @property
    def homes(self) -> Homes:
        """Return the folders of the guests. AttributeError if the driver has none, as `HasGuestFolders` expects."""
        if not isinstance(self.inner, HasGuestFolders):
            raise AttributeError("homes")
        return self.inner.homes

    def nodes(self) -> Sequence[NodeSpec]:
        return self.inner.nodes()

    def trouble(self) -> str | None:
        return self.inner.trouble()

    def kinds(self) -> tuple[Kind, ...]:
        return self.inner.kinds()

    def live(self, node: str) -> LiveMigrator | None:
        migrator = self.inner.live(node)
        return None if migrator is None else WiredMigrator(self, migrator)

    def wiring(self, node: str) -> Wiring:
        return Wiring.BY_MEMBER

    def host_netns(self, node: str) -> str | None:
        return self.netns

    def knows_guests(self, node: str) -> bool:
        return self.inner.knows_guests(node)

    def prepare(self, guest: Guest) -> None:
        self.inner.prepare(self.connected(guest, up=False))

    def run(self, guest: Guest) -> None:
        self.inner.run(self.connected(guest))

    def stop(self, guest: Guest, *, kindly: bool = True) -> None:
        self.inner.stop(guest, kindly=kindly)
        self.connected(guest, up=False)

    def pause(self, guest: Guest) -> None:
        self.inner.pause(guest)
        self.connected(guest, up=False)

    def unpause(self, guest: Guest) -> None:
        self.inner.unpause(self.connected(guest))

    def suspend(self, guest: Guest) -> None:
        self.inner.suspend(guest)
        self.connected(guest, up=False)

    def resume(self, guest: Guest) -> None:
        self.inner.resume(self.connected(guest))

    def rewire(self, guest: Guest) -> None:
        """Plug changed interfaces, remove those that the server has no more, and pass the rest to the driver."""
        wanted = self.connected(guest, up=self.inner.states().get(guest.id) is State.RUNNING)
        try:
            vif_plugging.sweep_hosts(self.networking, {guest.node: self.netns})
        except NetworkError as error:
            raise VirtError(f"the network cannot be listed: {error}") from error
        self.inner.rewire(wanted)

    def snapshot(self, guest: Guest, target: Path) -> None:
        self.inner.snapshot(guest, target)

    def delete(self, server_id: str) -> None:
        """Delete a guest, then its interfaces: a running guest never loses its interfaces."""
        self.inner.delete(server_id)
        self.disconnect(server_id)

    def disconnect(self, server_id: str) -> None:
        """Remove the interfaces of a server, unless it runs on this machine for another member. Raise VirtError."""
        if not self.lives_here(server_id):
            self.unplug(server_id)

    def states(self) -> Mapping[str, State]:
        return self.inner.states()

    def clean_up(self) -> None:
        self.inner.clean_up()

    def console(self, guest: Guest, lines: int | None) -> str:
        return self.inner.console(guest, lines)

    def connected(self, guest: Guest, *, up: bool = True) -> Guest:
        """Return the guest with its interfaces plugged into the host; `up` False: without traffic."""
        interfaces = vif_plugging.plug_into(self.networking, guest.id, self._socket(guest.node), up=up)
        return replace(guest, interfaces=interfaces)

    def unplug(self, server_id: str) -> None:
        """Remove the interfaces of a server from the host. Raise VirtError."""
        vif_plugging.unplug_from(self.networking, server_id, self._socket(""))

    def _socket(self, node: str) -> Socket:
        return Socket(self.networking.network_drivers.on(self.netns), self.netns, self.inner.wiring(node))


@dataclass(frozen=True)
class WiredMigrator:
    """Live migration methods of such a driver: both hosts have the interfaces while a guest moves."""

    driver: WiredDriver
    inner: LiveMigrator

    def offer(self, guest: Guest) -> Mapping[str, object]:
        return self.inner.offer(guest)

    def receive(self, guest: Guest, offer: Mapping[str, object]) -> Mapping[str, object]:
        return self.inner.receive(self.driver.connected(guest), offer)

    def send(
        self, guest: Guest, arrangement: Mapping[str, object], limits: Limits, watch: Watch
    ) -> Mapping[str, object]:
        return self.inner.send(guest, arrangement, limits, watch)

    def keep(self, guest: Guest, sent: Mapping[str, object]) -> None:
        """Let the guest run, and plug what is missing: a failure of that does not end the guest."""
        self.inner.keep(guest, sent)
        with suppress(VirtError):
            self.driver.connected(guest)

    def drop(self, server_id: str, *, spare_disk: bool = False) -> None:
        self.inner.drop(server_id, spare_disk=spare_disk)
        self.driver.disconnect(server_id)

    def clear(self, guest: Guest, arrangement: Mapping[str, object]) -> None:
        """Delete the rest of the guest, and its interfaces if the two machines share none."""
        self.inner.clear(guest, arrangement)
        if arrangement.get(APART):
            self.driver.unplug(guest.id)
        else:
            self.driver.disconnect(guest.id)

    def waiting(self) -> Collection[str]:
        return self.inner.waiting()
