"""Servers that sleep until their lease begins: what they refuse, and what their deletion does to the lease."""

from api.compute import validation
from api.request_context import caller, climate, deployment
from climate.compute import operations
from climate.compute.errors import Conflict
from climate.compute.models.server import RESERVED
from climate.compute.servers import actions
from climate.domain.status import EventKind
from climate.service.leases import leases, server_boot


def explained(server_id: str, refusal: Conflict) -> Conflict:
    """The refusal, with the lease that will wake the server if it is one that sleeps."""
    server = operations.get(deployment().compute, server_id, validation.own_project())
    lease = leases.of_resource(climate(), server.id) if server.status == RESERVED else None
    if lease is None:
        return refusal
    start = lease.event(EventKind.START).due_at
    return Conflict(f"{refusal}: lease {lease.id} wakes it at {start:%Y-%m-%d %H:%M:%S} UTC")


def give_up(server_id: str) -> None:
    """End the lease of a server that sleeps, before the server is deleted.

    Raises Conflict where the server is locked against the caller, and Busy while it is being woken.
    """
    server = operations.get(deployment().compute, validation.path_id(server_id), validation.own_project())
    if server.status == RESERVED:
        actions.check_lock(server, validation.own_project())  # before the lease ends: that is committed by itself
        server_boot.give_up(climate(), caller(), server.id)
