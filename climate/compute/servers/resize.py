"""Resize of servers on their nodes: resized, then confirmed or reverted.

Until then a server holds capacity for the larger of both sizes, so that it can always be reverted.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from uuid import uuid4

import numpy as np

from climate.compute import one_by_one
from climate.compute.context import Compute
from climate.compute.errors import BadRequest, Conflict, NotFound, NoValidHost, QuotaExceeded
from climate.compute.migrations import migration_steps
from climate.compute.models.flavor import Flavor
from climate.compute.models.request import Spec, pools_of
from climate.compute.models.server import RESIZE, VERIFY_RESIZE, VM_STATES, Room, Server
from climate.compute.nodes.attestation import SPEC
from climate.compute.placement import claims, request_data
from climate.compute.placement.claims import Attempt
from climate.compute.placement.numa_and_pci_requests import KEYS
from climate.compute.reservations import shared_capacity
from climate.compute.scheduler.hosts.table import Hosts
from climate.compute.scheduler.multi import RESIZE as AS_RESIZED
from climate.compute.scheduler.placement_plan import Plan, Schedule
from climate.compute.scheduler.scheduler_parts import Rules
from climate.compute.servers import actions
from climate.compute.servers.actions import By, TaskRequest
from climate.compute.store import node_locks
from climate.compute.store.nodes import resource_claims
from climate.compute.store.projects import quotas
from climate.compute.store.servers import migrations, resize_and_shelve, servers, tasks
from climate.database.connections import reading

CONFIRM = "confirmResize"


def resize(
    compute: Compute, server_id: str, flavor: Flavor, *, project_id: str | None = None, by: By | None = None
) -> None:
    """Claim the additional capacity for another flavor, and wake the compute service.

    Raises NotFound, Conflict, QuotaExceeded, and NoValidHost if its node has no capacity. Raises BadRequest for the
    same flavor, one too small for its image, or one of a reservation. Nothing has changed then.
    """
    compute = compute.scheduling(AS_RESIZED)
    server = actions.get(compute, server_id, project_id)
    trust = compute.attested(flavor)
    claims.settle(compute, lambda attempt: _claimed(compute, attempt, (server, project_id, flavor, trust), by))
    compute.cast(server.service_host or "", server_id)


def confirm(compute: Compute, server_id: str, *, project_id: str | None = None, by: By | None = None) -> None:
    """Confirm the new size or node of a server, and release the capacity that only the old one needed.

    Raises NotFound, Conflict.
    """
    left = None
    with compute.engine.begin() as conn:
        server = actions.locked(conn, server_id, project_id)
        actions.check_lock(server, project_id)
        if server.status != VERIFY_RESIZE or server.busy:
            state = f"task_state {server.task}" if server.busy else f"vm_state {VM_STATES[server.status]}"
            raise Conflict(f"Cannot '{CONFIRM}' instance {server.id} while it is in {state}")
        node_locks.lock_of_migration(conn, server.migration_id)
        resize_and_shelve.settle(conn, server.id, size(server.flavor))
        resize_and_shelve.resized(conn, server.id, server.flavor)
        now = compute.now(conn)
        left = migration_steps.confirmed(conn, server, now)
        servers.set_status(conn, server.id, server.before or "", now)
        if by is not None:
            tasks.note(conn, server.id, CONFIRM, by, now, done=True)
    if left is not None:
        compute.cast(left, server_id)


def confirm_waiting(compute: Compute) -> None:
    """Confirm the servers of this service whose confirmation time has passed."""
    if not compute.confirm_seconds:
        return
    with reading(compute.engine) as conn:
        result = migrations.unconfirmed(conn, compute.service_host, compute.now(conn), compute.confirm_seconds)
    by = {"project_id": "", "user_id": "climate", "request_id": f"req-{uuid4()}"}
    one_by_one.each("confirmation of servers", result, lambda server_id: confirm_if_waiting(compute, server_id, by))


def confirm_if_waiting(compute: Compute, server_id: str, by: By) -> None:
    """Confirm a server, unless its owner has confirmed or reverted it first."""
    with suppress(Conflict, NotFound):
        confirm(compute, server_id, by=by)


def size(flavor: Flavor) -> Room:
    """Return the capacity of a node that a server of this flavor takes."""
    return Room(flavor.vcpus, flavor.ram_mb, flavor.disk_mb)


Resize = tuple[Server, str | None, Flavor, Mapping[str, str]]
"""(server, project of the requester, new flavor, trust of the service hosts)"""


def _claimed(compute: Compute, attempt: Attempt, resize: Resize, by: By | None) -> None:
    (seen, project_id, flavor, trust), conn = resize, attempt.conn
    limits = quotas.lock_limits(conn, seen.project_id)
    server = actions.locked(conn, seen.id, project_id)
    actions.check_lock(server, project_id)
    actions.idle(server, RESIZE)
    if flavor.id == server.flavor.id:
        raise BadRequest(f"Instance {server.id} has the flavor {flavor.name} already.")
    shared_capacity.check_ordinary(server.flavor, flavor)
    request_data.check_image(conn, server.image_id, flavor)
    larger = Room(*map(max, _sizes(size(flavor)), _sizes(server.held)))
    lacking = Room(*(wanted - held for wanted, held in zip(_sizes(larger), _sizes(server.held), strict=True)))
    check_quota(limits, servers.used(conn, server.project_id), lacking)
    if lacking != Room() or any(key in flavor.extra_specs for key in (*KEYS, SPEC)):
        _claim(compute, attempt, replace(server, flavor=flavor), lacking, trust)
    resize_and_shelve.set_held_capacity(conn, server.id, larger)
    actions.record(conn, compute, server, TaskRequest(RESIZE, details={"flavor": asdict(flavor)}), by)


def _claim(compute: Compute, attempt: Attempt, server: Server, lacking: Room, trust: Mapping[str, str]) -> None:
    """Claim the capacity that a server lacks for a new flavor, as if it were one more server."""
    node_id = server.node_id or 0
    spec = Spec(
        project_id=server.project_id,
        user_id=server.user_id,
        vcpus=lacking.vcpus,
        ram_mb=lacking.ram_mb,
        disk_mb=lacking.disk_mb,
        pools=pools_of(server.hints),
        flavor=server.flavor,
        image_id=server.image_id,
        build_id=server.build_id,
        server_ids=(server.id,),
        trust=trust,
    )
    there = _Bound(compute.schedule, node_id)
    spec = request_data.completed(attempt.conn, compute.rules, spec)
    claims.claim(replace(compute, schedule=there), attempt, spec, 1, 1)
    resource_claims.release(attempt.conn, node_id, Room())


@dataclass(frozen=True, slots=True)
class _Bound:
    """A scheduler restricted to one node."""

    schedule: Schedule
    node_id: int

    def __call__(self, hosts: Hosts, spec: Spec, count: int, rules: Rules) -> Plan:
        index = int(np.searchsorted(hosts.ids, self.node_id))
        if index == len(hosts) or hosts.ids[index] != self.node_id:
            raise NoValidHost
        return self.schedule(hosts.row(index), spec, count, rules)


def check_quota(limits: Mapping[str, int], used: Mapping[str, int], lacking: Room) -> None:
    """Check that a project may use so much more capacity, else raise QuotaExceeded."""
    for name, label, more in (("cores", "cores", lacking.vcpus), ("ram_mb", "ram", lacking.ram_mb)):
        if more > 0 and 0 <= limits[name] < used[name] + more:
            raise QuotaExceeded(
                f"Quota exceeded for {label}: Requested {more}, but already used {used[name]} of {limits[name]} {label}"
            )


def _sizes(of: Room) -> tuple[int, int, int]:
    return of.vcpus, of.ram_mb, of.disk_mb
