"""Boot requests without a build: placed in this zone or, if no node has room, in child zones."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from uuid import uuid4

import structlog

from climate.compute import server_operations
from climate.compute.context import Compute
from climate.compute.errors import ComputeError, NoMoreAddresses, NoValidHost, QuotaExceeded, ZoneUnavailable
from climate.compute.models.request import BootRequest
from climate.compute.models.server import DELETE, Server
from climate.compute.servers import create
from climate.compute.servers.interfaces.interfaces import Requester
from climate.compute.store.zones import child_zones
from climate.compute.zones import routing
from climate.compute.zones.builds import builds, provisioning, request_spec
from climate.compute.zones.builds.builds import BuildState
from climate.compute.zones.client_interface import ChildRequest
from climate.compute.zones.models import FROM_USER, NO_PARTS, Parts, ZoneChain
from climate.database.connections import reading

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class FirstServer:
    """First server of a request, and the reservation id of all its servers."""

    server_id: str
    reservation_id: str


def boot(compute: Compute, request: BootRequest, chain: ZoneChain = FROM_USER, parts: Parts = NO_PARTS) -> FirstServer:
    """Boot servers here, or over the tree if no node of this zone has room.

    `parts`: the parts of its reservations in child zones. The servers use the local hosts if all fit there, else local
    and remote hosts.

    If fewer than `least` fit, they are stored here in ERROR with the reason as fault. Raise the errors
    of `climate.compute.servers.create.boot`, and ZoneUnavailable if a child does not answer.
    """
    if request_spec.stays(request, parts):
        return _first(create.boot(compute, request))
    try:
        return _first(_booted_here(compute, request, parts))
    except NoValidHost:
        if not _may_leave(compute, chain):
            return _first(create.boot(compute, request))
    made = _over_tree(compute, request, parts)
    if isinstance(made, FirstServer):
        return made
    also = made.build.fault or ""
    if made.placed:
        _take_back(compute, request, made)
        also += " They are deleted again."
    return _first(create.boot(compute, request, build_id=made.build.reservation_id, also=also))


def reserve(
    compute: Compute, request: BootRequest, here: Callable[[], Server], chain: ZoneChain = FROM_USER
) -> FirstServer:
    """Reserve one server by `here`, or in a child zone, which creates its lease, if no node of this zone has room."""
    try:
        return _first([here()])
    except NoValidHost:
        if request_spec.stays(request) or not _may_leave(compute, chain):
            raise
        made = _over_tree(compute, request)
        if isinstance(made, FirstServer):
            return made
        raise


def _booted_here(compute: Compute, request: BootRequest, parts: Parts) -> list[Server]:
    """Return the servers in this zone alone. Raise NoValidHost if they do not fit, or with parts if not all fit."""
    if not parts:
        return create.boot(compute, request, strict=True)
    try:
        return create.boot(compute, replace(request, least=request.count), strict=True)
    except (QuotaExceeded, NoMoreAddresses) as short:  # `least` may fit on local and remote hosts together
        raise NoValidHost(str(short)) from None


def _may_leave(compute: Compute, chain: ZoneChain) -> bool:
    """Return whether there are child zones; a parent's request without an offer stays here."""
    with reading(compute.engine) as conn:
        return chain == FROM_USER and bool(child_zones.listed(conn))


def _over_tree(compute: Compute, request: BootRequest, parts: Parts = NO_PARTS) -> FirstServer | BuildState:
    """Return the first server of a build over the tree, or the build if fewer than `least` were placed."""
    worker = str(uuid4())
    build = builds.create(compute, request, worker=worker, parts=parts)
    provisioning.run(compute, build.id, worker)
    state = builds.get(compute, build.reservation_id, request.project_id)
    if state.placed and len(state.placed) + state.unknown >= request.least:
        return FirstServer(state.placed[0].server_id or "", build.reservation_id)
    if state.unknown:
        raise ZoneUnavailable(
            f"A child zone has not confirmed whether it built the server; build {build.reservation_id} continues"
        )
    return state


def _take_back(compute: Compute, request: BootRequest, state: BuildState) -> None:
    """Delete the servers of a build with fewer than the requested minimum."""
    by = {"project_id": request.project_id, "user_id": request.user_id, "request_id": request.request_id}
    for item in state.placed:
        server_id = item.server_id or ""
        try:
            if item.zone_id is None:
                server_operations.request_task(compute, Requester(server_id, None, by), DELETE)
            else:
                routing.forward(compute, server_id, ChildRequest("DELETE", f"/servers/{server_id}"), None)
        except ComputeError as error:
            log.warning("server of a cancelled build not deleted", server_id=server_id, reason=str(error))


def _first(servers: list[Server]) -> FirstServer:
    return FirstServer(servers[0].id, servers[0].build_id)
