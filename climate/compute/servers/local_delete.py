"""Servers that are to be deleted and whose service is down: their rows go at once, as with Nova's local delete.

Quota, addresses and the room of the node are free then, and the lease that
held the node can end.  What is left of the guests belongs to no server when
the service comes back, and is cleared away by it.
"""

import structlog

from climate.compute.context import Compute
from climate.compute.servers import task_results
from climate.compute.store.nodes import services as rows
from climate.compute.store.servers import servers
from climate.connections import reading

log = structlog.get_logger(__name__)


def forget(compute: Compute) -> None:
    """Forget all such servers; any number of processes may do so at once."""
    with reading(compute.engine) as conn:
        left = rows.abandoned(conn, compute.now(conn), compute.down_seconds)
        found = [servers.get(conn, server_id) for server_id in left]
    for server in found:
        if server is not None:
            task_results.gone(compute, server)
            log.info("a server was deleted while its service is down", server=server.id, host=server.service_host)
