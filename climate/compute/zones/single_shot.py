"""Requests for servers as they always were: placed in this zone or, where no node takes them, in a child zone."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import uuid4

from climate.compute import boot as compute_boot
from climate.compute.context import Compute
from climate.compute.errors import NoValidHost, ZoneUnavailable
from climate.compute.request import BootRequest
from climate.compute.server import Server
from climate.compute.store import child_zones
from climate.compute.zones import builds, provisioning, request_spec
from climate.compute.zones.models import FROM_USER, ZoneChain


@dataclass(frozen=True, slots=True)
class Made:
    """The first server of a request, and the id that its servers share."""

    server_id: str
    reservation_id: str


def boot(compute: Compute, request: BootRequest, chain: ZoneChain = FROM_USER) -> Made:
    """Boot servers here, or over the tree when no node of this zone takes them.

    When there is room nowhere they are stored here in ERROR, with the reason as
    their fault.  Raises what `compute.boot.boot` raises, and ZoneUnavailable when a
    child does not tell what it has made.
    """
    if request_spec.stays(request):
        return _first(compute_boot.boot(compute, request))
    try:
        return _first(compute_boot.boot(compute, request, strict=True))
    except NoValidHost:
        if not _may_leave(compute, chain):
            return _first(compute_boot.boot(compute, request))
    made = _over_tree(compute, request)
    if isinstance(made, Made):
        return made
    return _first(compute_boot.boot(compute, request, build_id=made.build.reservation_id, also=made.build.fault or ""))


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


def _may_leave(compute: Compute, chain: ZoneChain) -> bool:
    """Return whether there are child zones; a request of a parent without an offer stays here."""
    with compute.engine.connect() as conn:
        return chain == FROM_USER and bool(child_zones.listed(conn))


def _over_tree(compute: Compute, request: BootRequest) -> Made | builds.BuildState:
    """The first server of a build over the tree; the build, where none was placed."""
    worker = str(uuid4())
    build = builds.create(compute, request, worker=worker)
    provisioning.run(compute, build.id, worker)
    state = builds.get(compute, build.reservation_id, request.project_id)
    if state.placed:
        return Made(state.placed[0].server_id or "", build.reservation_id)
    if state.unknown:
        raise ZoneUnavailable(
            f"A child zone does not tell whether it has made the server; build {build.reservation_id} goes on"
        )
    return state


def _first(servers: list[Server]) -> Made:
    return Made(servers[0].id, servers[0].build_id)
