"""Cold migration: a server moves to another node, and is confirmed or reverted there.

The scheduler chooses the destination by the rules for new servers. Capacity is claimed there at once, and held on the
source until the migration is over, so that it can always be reverted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import BadRequest, Busy, NoValidHost
from climate.compute.models.migration import COLD, PRE_MIGRATING, Migration
from climate.compute.models.request import Group, Spec, pools_of, replacement
from climate.compute.models.server import MIGRATE, Server
from climate.compute.placement import claims, decisions, request_data, server_groups
from climate.compute.placement.claims import Attempt
from climate.compute.placement.decisions import Decision
from climate.compute.scheduler.hosts.table import Hosts
from climate.compute.scheduler.multi import MIGRATE as AS_MIGRATED
from climate.compute.scheduler.placement_plan import Pick, Plan, Schedule
from climate.compute.scheduler.scheduler_parts import Rules
from climate.compute.servers import actions
from climate.compute.servers.actions import By, TaskRequest
from climate.compute.store.nodes import availability_zones
from climate.compute.store.reservations import pools
from climate.compute.store.servers import migrations as rows
from climate.compute.store.servers import servers


@dataclass(frozen=True, slots=True)
class Move:
    """A request to move a server from its node, and its requester."""

    server_id: str
    host: str | None
    """The service host or node to move to; None: any."""
    project_id: str | None
    task: str
    type: str
    status: str
    by: By
    at_once: bool = False
    """The server is on its new node at once, because its old one is down."""
    alone: bool = False
    """Refuse while another server is migrating from the node."""


def migrate(
    compute: Compute,
    server_id: str,
    host: str | None = None,
    *,
    project_id: str | None = None,
    by: By | None = None,
    alone: bool = False,
) -> None:
    """Migrate a server to another node, `host` or any, and wake its service.

    Raises NotFound, Conflict, Busy, BadRequest for an unknown host, and NoValidHost if no node fits; then nothing has
    changed.
    """
    move = Move(server_id, host, project_id, MIGRATE, COLD, PRE_MIGRATING, by or {}, alone=alone)
    place(compute, move)
    server = actions.get(compute, server_id, project_id)
    compute.cast(server.service_host or "", server_id)


def place(compute: Compute, move: Move) -> tuple[Pick, Migration]:
    """Choose a node for a server that leaves its own, and record the migration."""
    compute = compute.scheduling(AS_MIGRATED)
    trust = compute.attested(actions.get(compute, move.server_id, move.project_id).flavor)
    return claims.settle(compute, lambda attempt: _placed(compute, attempt, move, trust))


def _placed(compute: Compute, attempt: Attempt, move: Move, trust: Mapping[str, str]) -> tuple[Pick, Migration]:
    conn = attempt.conn
    # Lock the group first: deleting a group locks it before its members.
    group = _group(conn, compute, move.server_id)
    server = actions.locked(conn, move.server_id, move.project_id)
    actions.check_lock(server, move.project_id)
    actions.idle(server, move.task)
    source = server.node_id or 0
    if move.alone and rows.is_left_by_another(conn, source, server.id):
        raise Busy(f"Another server is on its way from host {server.node}.")
    if move.host is not None and move.host == server.node and move.host != server.service_host:
        raise BadRequest(f"Instance {server.id} is on host {server.node} already.")
    spec = replace(spec_of(conn, server, move.host), group=group, trust=trust)
    bound = SameDriver(compute.schedule, frozenset(rows.of_other_drivers(conn, source)))
    spec = request_data.completed(conn, compute.rules, spec)
    plan = claims.claim(replace(compute, schedule=bound), attempt, spec, 1, 1, (source,))
    pick, now = plan.picks[0], compute.now(conn)
    before = server.status if move.task == MIGRATE else None
    held = source if move.at_once else pick.node_id
    start = rows.Start(move.type, move.status, pick.node_id, held, move.by, before)
    migration = rows.begin(conn, server.id, start, now)
    actions.record(conn, compute, server, TaskRequest(move.task), move.by or None)
    if move.at_once:
        rows.swap(conn, migration, pick.node_id, source, now)
    decisions.store(conn, Decision(server.build_id, server.id, now, decisions.PLACED, plan.trail, attempt.lost))
    return pick, migration


def spec_of(conn: Connection, server: Server, host: str | None) -> Spec:
    """Return the request for a new node of a server: hosts of its lease and zone, as for a new server.

    A host that an administrator forced at boot no longer counts. BadRequest for an unknown host.
    """
    spec = replacement(server, (server.node_id or 0,))
    return replace(
        spec,
        pools=pools.alive(conn, pools_of(server.hints)),
        force_hosts=(),
        force_nodes=(),
        destination=_destination(conn, host),
        build_id=server.build_id,
        server_ids=(server.id,),
    )


def _destination(conn: Connection, host: str | None) -> str | None:
    """Return the destination of a request: a service host by its name, a node after a colon."""
    if host is None:
        return None
    if availability_zones.has_node(conn, host, None):
        return host
    if availability_zones.has_node(conn, None, host):
        return f":{host}"
    raise BadRequest(f"Compute host {host[:80]} could not be found.")


def is_host(conn: Connection, host: str) -> bool:
    """Return whether a service host or a node has this name."""
    return availability_zones.has_node(conn, host, None) or availability_zones.has_node(conn, None, host)


def _group(conn: Connection, compute: Compute, server_id: str) -> Group | None:
    result: Server | None = servers.get(conn, server_id)
    if result is None or result.group_id is None:
        return None
    return server_groups.staying(conn, compute.rules, result.group_id, server_id)


@dataclass(frozen=True, slots=True)
class SameDriver:
    """A scheduler restricted to nodes whose drivers can use the disk of a server."""

    schedule: Schedule
    others: frozenset[int]

    def __call__(self, hosts: Hosts, spec: Spec, count: int, rules: Rules) -> Plan:
        """Return the plan of the scheduler for the remaining nodes."""
        if self.others:
            hosts = hosts.where(~np.isin(hosts.ids, list(self.others)))
        if not len(hosts):
            raise NoValidHost
        return self.schedule(hosts, spec, count, rules)
