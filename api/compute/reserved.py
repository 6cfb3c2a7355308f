"""Why a server that sleeps until its lease begins cannot do what it is asked: the lease is named."""

from api.compute import asked
from api.current import climate, deployment
from climate.compute import operations
from climate.compute.errors import Conflict
from climate.compute.server import RESERVED
from climate.domain.status import EventKind
from climate.service import leases


def explained(server_id: str, refusal: Conflict) -> Conflict:
    """The refusal, with the lease that will wake the server if it is one that sleeps."""
    server = operations.get(deployment().compute, server_id, asked.own_project())
    lease = leases.of_resource(climate(), server.id) if server.status == RESERVED else None
    if lease is None:
        return refusal
    start = lease.event(EventKind.START).due_at
    return Conflict(f"{refusal}: lease {lease.id} wakes it at {start:%Y-%m-%d %H:%M:%S} UTC")
