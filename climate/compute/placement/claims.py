"""Claims of node capacity: chosen on a snapshot, claimed under the nodes' row locks."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import Busy, ClaimLost, NoValidHost
from climate.compute.models.node import FREEPOOL, admits
from climate.compute.models.request import Spec
from climate.compute.models.server import Room, Server
from climate.compute.placement import request_data
from climate.compute.reservations import shared_capacity
from climate.compute.scheduler.decisions import notifications
from climate.compute.scheduler.hosts.table import Hosts
from climate.compute.scheduler.placement_plan import Plan
from climate.compute.scheduler.scheduler_parts import Sees
from climate.compute.store import node_locks
from climate.compute.store.db_errors import DATABASE_ERRORS, deadlocked
from climate.compute.store.nodes import resource_claims as rows
from climate.compute.store.nodes.resource_claims import NodeUsage

HASTY = 3
"""Choices that a request makes concurrently with others; afterwards it holds the queue exclusively."""

TRIES = 20
"""Choices in total: with the queue held, one fails only if nodes move or are disabled meanwhile."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at placing servers, in a transaction of its own."""

    conn: Connection
    lost: tuple[tuple[str, ...], ...] = ()
    """Why each earlier choice was lost: a reason for each node."""


def settle(compute: Compute, write: Callable[[Attempt], T]) -> T:
    """Return the result of `write`, which claims and writes in one transaction, retried after each lost race.

    A lost choice does not count as an attempt of the scheduler, and excludes no node. After HASTY of them the next
    choice is made while nobody else chooses, so that a request is not refused while there is capacity. Raises Busy if
    the nodes keep changing even then. A deadlock with a transaction that locks nodes in another order is a lost
    choice too.
    """
    lost: tuple[tuple[str, ...], ...] = ()
    for number in range(TRIES):
        try:
            with compute.engine.begin() as conn:
                rows.queue(conn, alone=number >= HASTY)
                return write(Attempt(conn, lost))
        except ClaimLost as loss:
            lost = (*lost, loss.reasons)
        except DATABASE_ERRORS as error:
            if not deadlocked(error):
                raise
            lost = (*lost, ("another transaction was in the way, and waited for this one",))
    raise Busy(f"The chosen hosts have changed {TRIES} times in a row; try again.")


def claim(compute: Compute, attempt: Attempt, spec: Spec, count: int, least: int, also: tuple[int, ...] = ()) -> Plan:
    """Choose nodes for `count` servers, or for as many as possible down to `least`, and claim capacity on them.

    The nodes in `also` are locked together with them. Raises NoValidHost, and ClaimLost after a lost race, which
    `settle` handles.
    """
    now = compute.now(attempt.conn)
    hosts = compute.roster.take(attempt.conn, now, compute.down_seconds, afresh=len(attempt.lost) >= HASTY)
    spec = replace(spec, slots=shared_capacity.slots(attempt.conn, hosts, spec))
    plan = _plan(compute, hosts, spec, count, least)
    counts = Counter(pick.node_id for pick in plan.picks)
    limits = {pick.node_id: pick.limits for pick in plan.picks}
    node_locks.lock(attempt.conn, [*counts, *also])
    each = Room(spec.vcpus, spec.ram_mb, spec.disk_mb)
    result = rows.node_usage(attempt.conn, list(counts))
    reasons = [f"{node.name}: {reason}" for node in result if (reason := _outdated(node, hosts, spec))]
    for node in result:
        short = shortages(_used(node), each, counts[node.id], limits[node.id], node.used_servers)
        reasons += [f"{node.name}: {short}"] if short else []
    reasons += shared_capacity.lacking(attempt.conn, spec, counts)
    reasons += _joined(compute, attempt.conn, spec, counts)
    if reasons or len(result) < len(counts):
        raise ClaimLost(reasons or ["a chosen host is gone"])
    rows.take(attempt.conn, counts, each)
    return plan


def release(conn: Connection, server: Server) -> None:
    """Release the capacity of a server."""
    if server.node_id is not None:
        rows.release(conn, server.node_id, server.held)


def shortages(used: Room, each: Room, count: int, limits: Mapping[str, float], servers: int = 0) -> str:
    """Return the resources of a node that are too small for `count` servers more than `servers`; empty if they fit.

    Memory, disk, CPUs and servers are each compared with their limit; one without a limit is never short. The limits
    are those that the filter has set, and are compared as the filter does for the last server.
    """
    before = count - 1
    checked = (
        ("memory", "MB", limits.get("memory_mb"), used.ram_mb + before * each.ram_mb, each.ram_mb),
        ("disk", "GB", limits.get("disk_gb"), (used.disk_mb + before * each.disk_mb) / 1024, each.disk_mb / 1024),
        ("vcpu", "VCPU", limits.get("vcpu"), used.vcpus + before * each.vcpus, each.vcpus),
        ("instance", "INSTANCE", limits.get("servers"), servers + before, 1),
    )
    return "; ".join(
        f"Free {name} {limit - taken:.2f} {unit} < requested {wanted:g} {unit}"
        for name, unit, limit, taken, wanted in checked
        if limit is not None and wanted > limit - taken
    )


def _plan(compute: Compute, hosts: Hosts, spec: Spec, count: int, least: int) -> Plan:
    wanted = count
    while True:
        try:
            return notifications.run(compute.schedule, hosts.copy(), spec, (wanted, compute.rules), compute.tell)
        except NoValidHost as reason:
            if not least <= reason.found < wanted:
                raise
            wanted = reason.found


def _joined(compute: Compute, conn: Connection, spec: Spec, counts: Mapping[int, int]) -> list[str]:
    """Return a reason for each node that other servers have joined since, if a filter counts those."""
    if spec.forced:
        return []
    seen, nodes = spec.occupants, list(counts)
    came: list[int] = []
    if seen is not None and compute.rules.kept() is not Sees.NOTHING:
        now = request_data.occupied(conn, compute.rules.occupants_read(), spec, nodes)
        came += seen.fewer_than(now) if now else []
    if spec.demands is not None:
        demands = request_data.demanded(conn, spec, nodes)
        came += [node for node in demands if Counter(demands[node]) - Counter(spec.demands.get(node, ()))]
    return [f"node {node}: other servers have come" for node in came]


def _used(node: NodeUsage) -> Room:
    return Room(node.used_vcpus, node.used_ram_mb, node.used_disk_mb)


def _outdated(node: NodeUsage, hosts: Hosts, spec: Spec) -> str | None:
    """Return the reason why a node must not be used any more, if it has changed since it was chosen."""
    index = int(np.searchsorted(hosts.ids, node.id))
    if not node.present:
        return "its driver does not report it any more"
    if hosts.up[index] and node.in_maintenance:
        return "it went into maintenance"
    if node.disabled and not hosts.disabled[index]:
        return "its service was disabled"
    if not _open(node, spec):
        return "it was moved to another pool"
    sizes = (node.vcpus, node.memory_mb, node.local_gb * 1024, node.ram_ratio, node.cpu_ratio, node.disk_ratio)
    columns = (hosts.vcpus, hosts.ram_mb, hosts.disk_mb, hosts.ram_ratio, hosts.cpu_ratio, hosts.disk_ratio)
    if sizes != tuple(column[index] for column in columns):
        return "it has another size"
    return None


def _open(node: NodeUsage, spec: Spec) -> bool:
    """Return whether the request may use the node, by the rule of the ReservationFilter."""
    if spec.flavor is not None and spec.flavor.reservation is not None:
        return node.pool == FREEPOOL
    if node.pool is None:
        return not spec.pools
    return node.pool in spec.pools and admits(node.owner, node.shared, spec.project_id) and not node.closed
