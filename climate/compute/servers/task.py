"""A task under way on a server, with the steps that many tasks share."""

from dataclasses import dataclass, replace

from climate.compute.context import Compute
from climate.compute.models.server import Server
from climate.compute.servers import config_drives, vif_plugging, volume_attachments
from climate.compute.servers.task_heartbeat import Check
from climate.compute.virt import Guest, VirtDriver


@dataclass(frozen=True, slots=True)
class Work:
    """A task under way, and what it is done with."""

    compute: Compute
    server: Server
    guest: Guest
    check: Check

    @property
    def driver(self) -> VirtDriver:
        return self.compute.driver

    def connected(self, *, up: bool = True) -> Guest:
        """The guest with its volumes, and its interfaces plugged in; `up` False: it hears and says nothing."""
        volumes = volume_attachments.of_guest(self.compute, self.server)
        return replace(self.guest, interfaces=vif_plugging.plug(self.compute, self.server, up=up), volumes=volumes)

    def told(self, *, up: bool = True) -> Guest:
        """The same with its config drive, for a guest that is to start."""
        return replace(self.connected(up=up), config=config_drives.of_server(self.compute, self.server))

    def clear(self) -> None:
        """Leave nothing of the guest, then nothing of its interfaces: a guest never loses them while it runs."""
        self.check()
        self.driver.delete(self.server.id)
        vif_plugging.unplug(self.compute, self.server)
