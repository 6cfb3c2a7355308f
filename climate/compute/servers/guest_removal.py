"""Removal of a server from a node of this service: its guest, the mounts of its volumes, its interfaces.

A volume that stays mounted on a host that its server has left is damaged by the next mount elsewhere.
"""

from climate.compute.context import Compute
from climate.compute.models.server import Server
from climate.compute.servers import volume_attachments
from climate.compute.servers.interfaces import vif_plugging


def remove(compute: Compute, server: Server) -> None:
    """Remove a server from its node, which is one of this service. Raises VirtError.

    The guest is first: a running guest never loses its volumes and interfaces.
    """
    remove_departed(compute, server.id)
    vif_plugging.unplug(compute, server)


def remove_departed(compute: Compute, server_id: str) -> None:
    """Remove what a server, which is on another node by now, has left here; `vif_plugging.sweep` has its interfaces.

    Raises VirtError.
    """
    compute.driver.delete(server_id)
    volume_attachments.release(compute, server_id)
