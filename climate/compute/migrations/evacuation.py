"""Evacuation: a server whose host is down is created again on another node.

It keeps its id, addresses and volumes. Its disk is created from its image again, unless the services share a home.
When the failed host returns, it removes its copy of the server.
"""

from climate.compute.context import Compute
from climate.compute.errors import Conflict
from climate.compute.migrations import cold_migration
from climate.compute.migrations.cold_migration import Move
from climate.compute.models.migration import EVACUATION, PRE_MIGRATING
from climate.compute.models.server import EVACUATE
from climate.compute.nodes import services
from climate.compute.servers import actions
from climate.compute.servers.actions import By


def evacuate(
    compute: Compute, server_id: str, host: str | None = None, *, project_id: str | None = None, by: By | None = None
) -> None:
    """Evacuate a server to another node, `host` or any, and wake its service.

    Raises NotFound, Conflict, also while its host is up, Busy, BadRequest for an unknown host, and NoValidHost if no
    node fits; then nothing has changed.
    """
    server = actions.get(compute, server_id, project_id)
    if server.service_host is None:
        raise Conflict(f"Cannot 'evacuate' instance {server_id}: it is on no host")
    if any(service.up for service in services.listed(compute, server.service_host)):
        raise Conflict(f"Compute service of {server.service_host} is still in use: stop it first, or force it down.")
    move = Move(server_id, host, project_id, EVACUATE, EVACUATION, PRE_MIGRATING, by or {}, at_once=True)
    pick, _ = cold_migration.place(compute, move)
    compute.cast(pick.service_host, server_id)
