"""Reschedule: a server that failed to spawn on one node is created on another, as in Nova.

Failed nodes are remembered by node: another node of the same service may still succeed.
"""

import contextlib
import logging
from dataclasses import dataclass, replace

from climate.compute.context import Compute
from climate.compute.errors import BadRequest, Busy, NoValidHost, VirtError
from climate.compute.models.request import Spec, replacement
from climate.compute.models.server import ERROR, RESERVE, UNSHELVE, Server
from climate.compute.placement import claims, decisions, request_data, server_groups
from climate.compute.placement.claims import Attempt
from climate.compute.placement.decisions import Decision
from climate.compute.scheduler import multi
from climate.compute.scheduler.placement_plan import Pick
from climate.compute.servers import fault_redaction, guest_removal
from climate.compute.store.servers import reschedule, servers, tasks

log = logging.getLogger(__name__)

KINDS = {RESERVE: multi.RESERVE, UNSHELVE: multi.UNSHELVE}
"""Task -> the kind of request that its scheduler is chosen by; any other task is a boot."""

HOLD_SECONDS = 8.0
"""Minimum seconds for which a renewed claim keeps the task."""


@dataclass(frozen=True, slots=True)
class FailedBoot:
    """A server that could not be created on its node, the worker that claimed the task, and the reason."""

    server: Server
    worker: str
    reason: str


def elsewhere(compute: Compute, server: Server, worker: str, reason: str) -> bool:
    """Reschedule a server that failed to spawn to another node; ERROR if there is none or the attempts are used up.

    A worker that has lost the claim changes neither the guest nor the row. False if the worker still has the claim,
    but another task was requested.
    """
    with compute.engine.begin() as conn:
        wanted = reschedule.renew_claim(conn, server.id, worker, compute.now(conn), HOLD_SECONDS)
    if wanted != server.task:
        return wanted is None
    with contextlib.suppress(VirtError):
        guest_removal.remove(compute, server)
    compute = compute.scheduling(KINDS.get(server.task or "", multi.BOOT))
    spec = replacement(server, (*server.tried, server.node_id or 0))
    spec = replace(spec, trust=compute.attested(server.flavor))
    most = compute.rules.options.max_attempts
    message = fault_redaction.readable(server, reason)
    log.error("Error from last host: %s (node %s): %s", server.service_host, server.node, reason)
    if not retried(spec, most):
        return _record_failure(compute, server, worker, message, _after(server, reason))
    if len(spec.tried) >= most:
        exceeded = f"Exceeded max scheduling attempts {most} for instance {server.id}. Last exception: {message}"
        return _record_failure(compute, server, worker, exceeded, _after(server, reason))
    failed = FailedBoot(server, worker, reason)
    try:
        pick = claims.settle(compute, lambda attempt: _moved(compute, attempt, failed, spec))
    except (NoValidHost, BadRequest, Busy) as none:
        refusal = replace(_after(server, reason), trail=getattr(none, "trail", {}))
        return _record_failure(compute, server, worker, f"{none} Last exception: {message}", refusal)
    if pick is None:
        return _over(compute, server, worker)
    compute.cast(pick.service_host, server.id)
    return True


def retried(spec: Spec, most: int) -> bool:
    """Return whether another attempt is allowed: not if exactly one host or node was named."""
    return most > 1 and len(spec.force_hosts) != 1 and len(spec.force_nodes) != 1


def _moved(compute: Compute, attempt: Attempt, failed: FailedBoot, spec: Spec) -> Pick | None:
    """Return the new node of a server; None if another task was requested meanwhile."""
    server, conn = failed.server, attempt.conn
    # Lock the group first: deleting a group locks it before its members.
    group = server_groups.staying(conn, compute.rules, server.group_id, server.id) if server.group_id else None
    now = compute.now(conn)
    locked = servers.get(conn, server.id, lock=True)
    if locked is None or reschedule.renew_claim(conn, server.id, failed.worker, now, HOLD_SECONDS) != server.task:
        return None
    asked = replace(spec, group=group, build_id=server.build_id, server_ids=(server.id,))
    also = (server.node_id,) if server.node_id is not None else ()
    plan = claims.claim(compute, attempt, request_data.completed(conn, compute.rules, asked), 1, 1, also)
    claims.release(conn, locked)
    reschedule.move(conn, server.id, plan.picks[0].node_id, now)
    decisions.store(conn, replace(_after(server, failed.reason), made_at=now, trail=plan.trail, lost=attempt.lost))
    return plan.picks[0]


def _record_failure(compute: Compute, server: Server, worker: str, message: str, decision: Decision) -> bool:
    with compute.engine.begin() as conn:
        now = compute.now(conn)
        outcome = {
            "status": ERROR,
            "fault": {"code": 500, "created": f"{now:%Y-%m-%dT%H:%M:%SZ}", "message": message},
        }
        finished = tasks.finish(conn, server.id, worker, server.task or "", outcome, now)
        if finished:
            decisions.store(conn, replace(decision, made_at=now, error=message))
    return finished or _over(compute, server, worker)


def _over(compute: Compute, server: Server, worker: str) -> bool:
    """Return whether the worker has lost the claim on the server."""
    with compute.engine.begin() as conn:
        return reschedule.renew_claim(conn, server.id, worker, compute.now(conn), HOLD_SECONDS) is None


def _after(server: Server, reason: str) -> Decision:
    """Return the decision that a failure calls for, without its outcome."""
    after = {"node": server.node, "service_host": server.service_host, "reason": reason}
    return Decision(server.build_id, server.id, server.updated_at, decisions.RETRY, {}, after=after)
