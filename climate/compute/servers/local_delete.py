"""Local delete, as in Nova: servers to be deleted whose service is down lose their rows at once.

This frees quota, addresses and the capacity of the node, so that the lease of the node can end. When the service
returns, it removes guests that belong to no server.
"""

import structlog

from climate.compute import one_by_one
from climate.compute.context import Compute
from climate.compute.servers.tasks import task_results
from climate.compute.store.nodes import services as rows
from climate.compute.store.servers import servers
from climate.database.connections import reading

log = structlog.get_logger(__name__)


def forget(compute: Compute) -> None:
    """Delete the rows of all such servers; processes may run this concurrently."""
    with reading(compute.engine) as conn:
        left = rows.abandoned(conn, compute.now(conn), compute.down_seconds)
    one_by_one.each("deletion of servers", left, lambda server_id: _forget(compute, server_id))


def _forget(compute: Compute, server_id: str) -> None:
    with reading(compute.engine) as conn:
        server = servers.get(conn, server_id)
    if server is not None:
        task_results.gone(compute, server)
        log.info("server deleted while its service is down", server=server.id, host=server.service_host)
