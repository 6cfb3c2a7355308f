"""A task under way on a server, with the steps that many tasks share."""

from dataclasses import dataclass, replace

from climate.compute import attachments, config_drives, plugging
from climate.compute.context import Compute
from climate.compute.heartbeat import Check
from climate.compute.server import Server
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
        volumes = attachments.of_guest(self.compute, self.server)
        return replace(self.guest, interfaces=plugging.plug(self.compute, self.server, up=up), volumes=volumes)

    def told(self, *, up: bool = True) -> Guest:
        """The same with its config drive, for a guest that is to start."""
        return replace(self.connected(up=up), config=config_drives.of_server(self.compute, self.server))

    def clear(self) -> None:
        """Leave nothing of the guest, then nothing of its interfaces: a guest never loses them while it runs."""
        self.check()
        self.driver.delete(self.server.id)
        plugging.unplug(self.compute, self.server)
