"""Unshelve: a shelved server is scheduled again, and created from the image that it was shelved in."""

from collections.abc import Mapping
from dataclasses import replace

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.images import image_data
from climate.compute.models.request import Group, replacement
from climate.compute.models.server import UNSHELVE, Server
from climate.compute.placement import claims, decisions, request_data, server_groups
from climate.compute.placement.claims import Attempt
from climate.compute.placement.decisions import Decision
from climate.compute.scheduler.multi import UNSHELVE as AS_UNSHELVED
from climate.compute.scheduler.placement_plan import Pick
from climate.compute.servers import actions
from climate.compute.servers.actions import By, TaskRequest
from climate.compute.store.servers import resize_and_shelve, servers


def unshelve(
    compute: Compute, server_id: str, zone: str | None = None, *, project_id: str | None = None, by: By | None = None
) -> None:
    """Choose a node for a shelved server and wake its service; `zone`: another availability zone than its own.

    Raises NotFound, Conflict, also if its image is gone, and NoValidHost if no node has capacity; then it stays
    shelved.
    """
    compute = compute.scheduling(AS_UNSHELVED)
    trust = compute.attested(actions.get(compute, server_id, project_id).flavor)
    asked = (server_id, project_id, zone, trust)
    pick = claims.settle(compute, lambda attempt: _placed(compute, attempt, asked, by))
    compute.cast(pick.service_host, server_id)


def _placed(
    compute: Compute, attempt: Attempt, asked: tuple[str, str | None, str | None, Mapping[str, str]], by: By | None
) -> Pick:
    (server_id, project_id, zone, trust), conn = asked, attempt.conn
    # Lock the group first: deleting a group locks it before its members.
    group = _group(conn, compute, server_id)
    server = actions.locked(conn, server_id, project_id)
    actions.check_lock(server, project_id)
    actions.idle(server, UNSHELVE)
    image_data.shelved(conn, compute, server)
    spec = replace(replacement(server, ()), group=group, build_id=server.build_id, server_ids=(server.id,))
    # As in Nova, a forced host applies to the boot only: the node may be disabled or full by now.
    spec = replace(spec, trust=trust, force_hosts=(), force_nodes=(), destination=None)
    if zone is not None:
        spec = replace(spec, zone=zone)
        request_data.check_place(conn, spec, compute.rules.options.default_zone)
    plan = claims.claim(compute, attempt, request_data.completed(conn, compute.rules, spec), 1, 1)
    pick, now = plan.picks[0], compute.now(conn)
    resize_and_shelve.place(conn, server.id, pick.node_id)
    actions.record(conn, compute, server, TaskRequest(UNSHELVE), by)
    decisions.store(conn, Decision(server.build_id, server.id, now, decisions.PLACED, plan.trail, attempt.lost))
    return pick


def _group(conn: Connection, compute: Compute, server_id: str) -> Group | None:
    result: Server | None = servers.get(conn, server_id)
    if result is None or result.group_id is None:
        return None
    return server_groups.staying(conn, compute.rules, result.group_id, server_id)
