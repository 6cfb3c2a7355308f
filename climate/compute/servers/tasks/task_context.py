"""A task in progress on a server, with the steps that many tasks share."""

from dataclasses import dataclass, replace

from climate.compute.context import Compute
from climate.compute.metadata import config_drives
from climate.compute.models.server import Server
from climate.compute.servers import guest_removal, volume_attachments
from climate.compute.servers.interfaces import vif_plugging
from climate.compute.servers.tasks.task_heartbeat import Check
from climate.compute.virt import Guest, VirtDriver


@dataclass(frozen=True, slots=True)
class Work:
    """A task in progress and its dependencies."""

    compute: Compute
    server: Server
    guest: Guest
    check: Check

    @property
    def driver(self) -> VirtDriver:
        return self.compute.driver

    def connected(self, *, up: bool = True) -> Guest:
        """Return the guest with its volumes, and its interfaces plugged in; `up` False: without traffic."""
        volumes = volume_attachments.of_guest(self.compute, self.server)
        return replace(self.guest, interfaces=vif_plugging.plug(self.compute, self.server, up=up), volumes=volumes)

    def with_config_drive(self, *, up: bool = True) -> Guest:
        """Return the connected guest with its config drive, for a guest that is to start."""
        return replace(self.connected(up=up), config=config_drives.of_server(self.compute, self.server))

    def clear(self) -> None:
        """Remove the guest, the mounts of its volumes, and its interfaces."""
        self.check()
        guest_removal.remove(self.compute, self.server)
