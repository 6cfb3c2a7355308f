"""Evacuation: a server whose host is down is made anew on another node.

It keeps its id, its addresses and its volumes.  Its disk is made from its image
again, unless the services share a home.  The host that was down clears away what
it still has of the server when it comes back.
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
    """Make a server anew on another node, `host` or any, and ring for it.

    Raises NotFound, Conflict, also while its host is up, Busy, BadRequest for a host
    that is not there, and NoValidHost where there is none for it: then nothing has changed.
    """
    server = actions.get(compute, server_id, project_id)
    if server.service_host is None:
        raise Conflict(f"Cannot 'evacuate' instance {server_id}: it is on no host")
    if any(service.up for service in services.listed(compute, server.service_host)):
        raise Conflict(
            f"Compute service of {server.service_host} is still in use: stop it first, or say that it is down."
        )
    move = Move(server_id, host, project_id, EVACUATE, EVACUATION, PRE_MIGRATING, by or {}, at_once=True)
    pick, _ = cold_migration.place(compute, move)
    compute.cast(pick.service_host, server_id)
