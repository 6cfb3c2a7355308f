"""Execution of the tasks of servers by the compute service of their node.

No transaction is open while the driver works. Wake-ups may be lost or doubled: the task is read from the row each
time, and one worker at a time claims it.
"""

from uuid import uuid4

import structlog

from climate.compute.clusters import member_service
from climate.compute.context import Compute
from climate.compute.errors import NetworkError, VirtError
from climate.compute.migrations import departed_servers
from climate.compute.models.server import Server
from climate.compute.servers import guest_conversion
from climate.compute.servers.interfaces import vif_plugging
from climate.compute.servers.tasks import driver_calls, task_heartbeat, task_results
from climate.compute.servers.tasks.task_context import Work
from climate.compute.servers.tasks.task_heartbeat import CLAIM_SECONDS, Check, TaskLost
from climate.compute.store.projects import images as image_rows
from climate.compute.store.servers import servers, tasks
from climate.database.connections import alone, reading

log = structlog.get_logger(__name__)

WAIT_SECONDS, AGAIN_SECONDS = 2.0, 5.0
"""Seconds until an unclaimed task causes another wake-up, and between further ones."""


def run_task(compute: Compute, server_id: str) -> None:
    """Carry out the task of a server, unless it is claimed; nothing if there is none.

    A wake-up carries the server's id only: the node is read from the row. A wake-up at a service that does not have
    the server's node does nothing. The id of an order of a cluster to this service is carried out as such.
    """
    worker = str(uuid4())
    with compute.engine.begin() as conn:
        claimed = tasks.claim(conn, server_id, compute.service_host, worker, compute.now(conn), CLAIM_SECONDS)
    if not claimed:
        departed_servers.clear(compute, server_id)
        member_service.execute_order(compute, server_id)
        _renew_filters(compute, server_id)
        return
    with task_heartbeat.renewed_claim(compute, server_id, worker) as check:
        done = False
        while not done:
            work = _next(compute, server_id, check)
            done = work is None or _step(work, worker)


def unfinished(compute: Compute, wait: float = WAIT_SECONDS, again: float = AGAIN_SECONDS) -> list[tuple[str, str]]:
    """Return (service host, id of a server or an order) of unclaimed work that needs another wake-up."""
    with alone(compute.engine) as conn:
        return tasks.unfinished(conn, compute.now(conn), wait, again)


def _renew_filters(compute: Compute, server_id: str) -> None:
    """Apply the rules of a server's security groups; if that fails, the next reconciliation does it."""
    try:
        vif_plugging.renew_filters(compute, server_id)
    except (NetworkError, VirtError) as error:
        log.error("security groups not applied", server=server_id, reason=str(error))


def _next(compute: Compute, server_id: str, check: Check) -> Work | None:
    with reading(compute.engine) as conn:
        server: Server | None = servers.get(conn, server_id)
        if server is None or server.task is None:
            return None
        image_id = guest_conversion.source(server)
        image = image_rows.get(conn, image_id) if image_id else None
    return Work(compute, server, guest_conversion.guest(compute, server, image), check)


def _step(work: Work, worker: str) -> bool:
    """Carry out the current task of a server; False if another task was requested meanwhile.

    A disk that fails ends the task as a driver that fails does: repeated without end, it would fail again.
    """
    try:
        driver_calls.do(work)
    except VirtError as error:
        return task_results.failed(work.compute, work.server, worker, str(error))
    except OSError as error:
        log.error("task of a server failed", server=work.server.id, task=work.server.task, reason=str(error))
        return task_results.failed(work.compute, work.server, worker, _readable(error))
    except TaskLost:
        return True
    return task_results.done(work.compute, work.server, worker)


def _readable(error: OSError) -> str:
    """Return the reason of an error without paths of this machine, which users must not see."""
    return f"the disk of the compute service failed: {error.strerror or type(error).__name__}"
