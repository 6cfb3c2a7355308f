"""Plan of a host's evacuation: for each server the action, the destination, or the reason why it stays.

A plan changes nothing. The servers are placed one after the other, each with the capacity that those before it have
left.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import BadRequest, Conflict, NotFound, VirtError
from climate.compute.migrations import cold_migration
from climate.compute.migrations.cold_migration import SameDriver
from climate.compute.models.request import Group
from climate.compute.models.server import EVACUATE, LIVE_MIGRATE, MIGRATE, WISHES, Server
from climate.compute.nodes import services
from climate.compute.placement import request_data, server_groups
from climate.compute.reservations import shared_capacity
from climate.compute.scheduler.hosts.table import Hosts
from climate.compute.scheduler.multi import MIGRATE as AS_MIGRATED
from climate.compute.servers import actions
from climate.compute.store.servers import live_migration_steps, servers
from climate.compute.store.servers import migrations as rows
from climate.compute.virt.guest_kinds import LIVE_DRIVERS
from climate.database.connections import reading


@dataclass(frozen=True, slots=True)
class Step:
    """The planned action for a server of a host to be emptied."""

    server: Server
    action: str
    """`os-migrateLive` if it runs and its driver can do that, else `migrate`; `evacuate` if the host is down."""
    node: str | None = None
    """The destination; None: there is none, and `reason` says why."""
    service_host: str | None = None
    reason: str | None = None


def plan(compute: Compute, host: str) -> list[Step]:
    """Return the steps that would empty a node, or all nodes of a service host. Raise NotFound."""
    compute = compute.scheduling(AS_MIGRATED)
    with reading(compute.engine) as conn:
        present = servers.on_node(conn, host) or servers.on_service(conn, host)
        known = bool(present) or cold_migration.is_host(conn, host)
    if not known:
        raise NotFound(f"Host {host[:80]} could not be found.")
    up = {service.host: service.up for service in services.listed(compute)}
    leaving = frozenset(server.node_id or 0 for server in present)
    with reading(compute.engine) as conn:
        hosts = compute.roster.take(conn, compute.now(conn), compute.down_seconds).copy()
        steps = list(_steps(compute, conn, (hosts, leaving), [(one, up[one.service_host or ""]) for one in present]))
        conn.rollback()
    return steps


def _steps(
    compute: Compute, conn: Connection, where: tuple[Hosts, frozenset[int]], servers: list[tuple[Server, bool]]
) -> Iterator[Step]:
    hosts, leaving = where
    joined: dict[str, list[int]] = {}
    nodes = {server.node_id or 0 for server, _ in servers}
    live = {node for node in nodes if live_migration_steps.driver_of(conn, node) in LIVE_DRIVERS}
    for server, up in servers:
        task = _task(server, up=up, live=server.node_id in live)
        action = WISHES[task].action
        try:
            actions.idle(server, task)
            index = _place(compute, conn, server, (hosts, leaving, joined))
        except (Conflict, BadRequest, VirtError) as reason:
            yield Step(server, action, reason=str(reason))
            continue
        yield Step(server, action, str(hosts.names[index]), str(hosts.service_hosts[index]))


def _task(server: Server, *, up: bool, live: bool) -> str:
    if not up:
        return EVACUATE
    return LIVE_MIGRATE if live and server.status in WISHES[LIVE_MIGRATE].begins else MIGRATE


def _place(
    compute: Compute,
    conn: Connection,
    server: Server,
    where: tuple[Hosts, frozenset[int], dict[str, list[int]]],
) -> int:
    """Return the row of a server's destination in the snapshot, and take the capacity there."""
    hosts, leaving, joined = where
    spec = cold_migration.spec_of(conn, server, None)
    group = _group(compute, conn, server, joined)
    spec = replace(spec, tried=tuple(leaving), group=group, trust=compute.attested(server.flavor))
    spec = request_data.completed(conn, compute.rules, spec)
    spec = replace(spec, slots=shared_capacity.slots(conn, hosts, spec))
    bound = SameDriver(compute.schedule, frozenset(rows.of_other_drivers(conn, server.node_id or 0)))
    pick = bound(hosts.copy(), spec, 1, compute.rules).picks[0]
    index = int(np.searchsorted(hosts.ids, pick.node_id))
    hosts.consume(index, spec)
    if server.group_id is not None:
        joined.setdefault(server.group_id, []).append(pick.node_id)
    return index


def _group(compute: Compute, conn: Connection, server: Server, joined: dict[str, list[int]]) -> Group | None:
    if server.group_id is None:
        return None
    group = server_groups.staying(conn, compute.rules, server.group_id, server.id)
    for node_id in joined.get(server.group_id, []):
        group = group and group.joined_by(node_id)
    return group
