"""Requests for servers as they always were: placed in this zone or, where no node takes them, in a child zone."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from uuid import uuid4

import structlog

from climate.compute import operations
from climate.compute.context import Compute
from climate.compute.errors import ComputeError, NoMoreAddresses, NoValidHost, QuotaExceeded, ZoneUnavailable
from climate.compute.models.request import BootRequest
from climate.compute.models.server import DELETE, Server
from climate.compute.servers import create as compute_boot
from climate.compute.servers.interfaces import Who
from climate.compute.store.zones import child_zones
from climate.compute.zones import routing
from climate.compute.zones.builds import builds, provisioning, request_spec
from climate.compute.zones.builds.builds import BuildState
from climate.compute.zones.client import ChildRequest
from climate.compute.zones.models import FROM_USER, NO_PARTS, Parts, ZoneChain
from climate.connections import reading

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Made:
    """The first server of a request, and the id that its servers share."""

    server_id: str
    reservation_id: str


def boot(compute: Compute, request: BootRequest, chain: ZoneChain = FROM_USER, parts: Parts = NO_PARTS) -> Made:
    """Boot servers here, or over the tree when no node of this zone takes them.

    `parts`: where the reservations that the request names lie in child zones.  Their
    servers go to the hosts here if these take all of them, else to hosts here and there.

    When there is room for fewer than `least` they are stored here in ERROR, with the
    reason as their fault.  Raises what `compute.boot.boot` raises, and ZoneUnavailable
    when a child does not tell what it has made.
    """
    if request_spec.stays(request, parts):
        return _first(compute_boot.boot(compute, request))
    try:
        return _first(_booted_here(compute, request, parts))
    except NoValidHost:
        if not _may_leave(compute, chain):
            return _first(compute_boot.boot(compute, request))
    made = _over_tree(compute, request, parts)
    if isinstance(made, Made):
        return made
    also = made.build.fault or ""
    if made.placed:
        _take_back(compute, request, made)
        also += " They are deleted again."
    return _first(compute_boot.boot(compute, request, build_id=made.build.reservation_id, also=also))


def reserve(compute: Compute, request: BootRequest, here: Callable[[], Server], chain: ZoneChain = FROM_USER) -> Made:
    """Reserve one server by `here`, or in a child zone, which makes its lease, when no node of this zone takes it."""
    try:
        return _first([here()])
    except NoValidHost:
        if request_spec.stays(request) or not _may_leave(compute, chain):
            raise
        made = _over_tree(compute, request)
        if isinstance(made, Made):
            return made
        raise


def _booted_here(compute: Compute, request: BootRequest, parts: Parts) -> list[Server]:
    """The servers, in this zone alone: NoValidHost where that cannot be, also for fewer than all if there are parts."""
    if not parts:
        return compute_boot.boot(compute, request, strict=True)
    try:
        return compute_boot.boot(compute, replace(request, least=request.count), strict=True)
    except (QuotaExceeded, NoMoreAddresses) as short:  # there may be enough for `least`, here and there
        raise NoValidHost(str(short)) from None


def _may_leave(compute: Compute, chain: ZoneChain) -> bool:
    """Return whether there are child zones; a request of a parent without an offer stays here."""
    with reading(compute.engine) as conn:
        return chain == FROM_USER and bool(child_zones.listed(conn))


def _over_tree(compute: Compute, request: BootRequest, parts: Parts = NO_PARTS) -> Made | BuildState:
    """The first server of a build over the tree; the build, where fewer than `least` were placed."""
    worker = str(uuid4())
    build = builds.create(compute, request, worker=worker, parts=parts)
    provisioning.run(compute, build.id, worker)
    state = builds.get(compute, build.reservation_id, request.project_id)
    if state.placed and len(state.placed) + state.unknown >= request.least:
        return Made(state.placed[0].server_id or "", build.reservation_id)
    if state.unknown:
        raise ZoneUnavailable(
            f"A child zone does not tell whether it has made the server; build {build.reservation_id} goes on"
        )
    return state


def _take_back(compute: Compute, request: BootRequest, state: BuildState) -> None:
    """Delete the servers of a build that came to fewer than were asked for at least."""
    by = {"project_id": request.project_id, "user_id": request.user_id, "request_id": request.request_id}
    for item in state.placed:
        server_id = item.server_id or ""
        try:
            if item.zone_id is None:
                operations.ask(compute, Who(server_id, None, by), DELETE)
            else:
                routing.forward(compute, server_id, ChildRequest("DELETE", f"/servers/{server_id}"), None)
        except ComputeError as error:
            log.warning("a server of a build that is taken back stays", server_id=server_id, reason=str(error))


def _first(servers: list[Server]) -> Made:
    return Made(servers[0].id, servers[0].build_id)
