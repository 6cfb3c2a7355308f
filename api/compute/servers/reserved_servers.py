"""Reserved servers, which wait until their lease starts: refused actions, and the end of the lease on deletion."""

from api.compute import validation
from api.request_context import caller, climate, deployment
from climate.compute import server_operations
from climate.compute.errors import Conflict
from climate.compute.models.server import RESERVED
from climate.compute.servers import actions
from climate.domain.status import EventKind
from climate.service.leases import lease_servers, leases


def explained(server_id: str, refusal: Conflict) -> Conflict:
    """Return the refusal; for a reserved server it names the lease that will start the server."""
    server = server_operations.get(deployment().compute, server_id, validation.own_project())
    lease = leases.of_resource(climate(), server.id) if server.status == RESERVED else None
    if lease is None:
        return refusal
    start = lease.event(EventKind.START).due_at
    return Conflict(f"{refusal}: lease {lease.id} starts it at {start:%Y-%m-%d %H:%M:%S} UTC")


def end_reservation(server_id: str) -> None:
    """End the lease of a reserved server before the server is deleted.

    Raises Conflict if the server is locked against the caller, and Busy while the lease starts it.
    """
    server = server_operations.get(deployment().compute, validation.path_id(server_id), validation.own_project())
    if server.status == RESERVED:
        # Check before the lease ends, because its end is committed separately.
        actions.check_lock(server, validation.own_project())
        lease_servers.end_reservation(climate(), caller(), server.id)
