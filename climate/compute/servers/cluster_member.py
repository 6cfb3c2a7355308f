"""Diagnostics of a server for administrators: the cluster member that runs it."""

from climate.compute.context import Compute
from climate.compute.models.server import Server
from climate.compute.virt import Guest
from climate.compute.virt.multi_node import MultiNodeDriver


def member_of(compute: Compute, server: Server) -> str | None:
    """Return the cluster member that runs a server.

    None if its node is no cluster, or a cluster of a service whose files this process does not have.
    """
    if server.node is None or not isinstance(compute.driver, MultiNodeDriver):
        return None
    return compute.driver.member_of(Guest(server.id, "", server.node))
