"""Nodes that are to become empty move their servers away, where the settings want it, instead of waiting for them.

One server of a node is moved at a time, shut down on the way, and confirmed when
it has arrived.  A server that can go nowhere stays, and is tried again.
"""

from contextlib import suppress
from uuid import uuid4

import structlog

from climate.compute import asking, migrating, resizing
from climate.compute.context import Compute
from climate.compute.errors import BadRequest, Conflict, NotFound
from climate.compute.store import migrations as rows
from climate.connections import reading

POOLS = frozenset({"draining", "recycling", "maintenance"})
"""Pools of hosts that wait for their servers to go."""

USER = "climate"
"""Stands where the id of a user would: nobody asked for these migrations."""

log = structlog.get_logger(__name__)


def tend(compute: Compute) -> None:
    """Move servers away from this service's nodes that are to become empty, and confirm those that have arrived."""
    if not compute.leaving_pools:
        return
    with reading(compute.engine) as conn:
        arrived = rows.moved_by(conn, compute.service_host, USER)
    for server_id in arrived:
        with suppress(Conflict, NotFound):  # its owner was quicker
            resizing.confirm(compute, server_id, by=_by())
    with reading(compute.engine) as conn:
        leaving = rows.leaving(conn, compute.service_host, compute.leaving_pools)
    begun: set[int | None] = set()
    for server_id in leaving:
        with suppress(NotFound):
            node_id = asking.get(compute, server_id).node_id
            if node_id not in begun and _is_moved(compute, server_id):
                begun.add(node_id)


def _is_moved(compute: Compute, server_id: str) -> bool:
    try:
        migrating.migrate(compute, server_id, by=_by())
    except (BadRequest, Conflict) as reason:
        log.warning("a server cannot be moved away", server=server_id, reason=str(reason)[:200])
        return False
    return True


def _by() -> dict[str, str]:
    return {"project_id": "", "user_id": USER, "request_id": f"req-{uuid4()}"}
