"""Builds over zones: a request for servers is recorded, planned over the whole tree, and provisioned.

One worker at a time runs a build. Each order to a child is recorded before it is sent. A worker that takes over repeats
the orders without a known answer, and a child that already carried out an order returns the same server.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import uuid4

from climate.compute.context import Compute
from climate.compute.errors import Conflict, NotFound
from climate.compute.models.request import BootRequest, spec_of
from climate.compute.placement import request_data
from climate.compute.projects import quota_check
from climate.compute.reservations import shared_capacity
from climate.compute.servers import create as boot
from climate.compute.store.zones import builds as rows
from climate.compute.store.zones import child_zones, notify_pollers, servers, used_offers
from climate.compute.store.zones.builds import LOST, PLACED, SENT, Build, Item
from climate.compute.zones.builds import request_spec
from climate.compute.zones.models import NO_PARTS, Parts
from climate.database.connections import reading

AGAIN_SECONDS = 5.0
"""Seconds after which a wake-up for an unclaimed build is repeated."""

CLAIM_SECONDS = 120.0

KEPT = timedelta(days=7)
"""Time to keep finished builds."""

MOST_LISTED = 1000


@dataclass(frozen=True, slots=True)
class BuildState:
    """Build and its servers, as its owner may see them."""

    build: Build
    items: tuple[Item, ...]

    @property
    def placed(self) -> tuple[Item, ...]:
        """Return the placed servers, by number."""
        return tuple(item for item in self.items if item.state == PLACED)

    @property
    def unknown(self) -> int:
        """Return the number of servers that an unreachable zone may have created."""
        return sum(item.state in (SENT, LOST) for item in self.items)


@dataclass(frozen=True, slots=True)
class InChild:
    """Server that this zone placed in a child."""

    zone_id: int
    reservation_id: str
    launch_index: int | None
    """Number in its build; None: it was forwarded for a parent."""


def claim_seconds(compute: Compute) -> float:
    """Return the seconds without a heartbeat after which a worker loses its build: two waits for children."""
    return CLAIM_SECONDS + 2 * compute.zones.timeout_seconds


def create(
    compute: Compute,
    request: BootRequest,
    reservation_id: str | None = None,
    *,
    worker: str | None = None,
    parts: Parts = NO_PARTS,
) -> Build:
    """Record a request for `count` servers, or as many as the quota allows, at least `least`.

    `parts`: the parts of its reservations in child zones.

    `worker`: the caller runs the build itself, and places at least `least` or none. None: any worker runs it, and
    places fewer than `least` if there is no more room.

    Raise QuotaExceeded, BadRequest, and Conflict for a used reservation id.
    """
    build_id, reservation_id = str(uuid4()), reservation_id or boot.new_build_id(compute)
    spec, kept = spec_of(request), request if worker else replace(request, least=1)
    with compute.engine.begin() as conn:
        count = quota_check.allowed(conn, request.project_id, request.flavor, request.count, request.least)
        request_data.check_image(conn, request.image_id, request.flavor)
        shared_capacity.check_hints(conn, spec)
        image = request_spec.image_name(conn, request.image_id)
        recorded = {
            "boot": request_spec.recorded_request(kept),
            "image": image,
            "parts": {str(zone_id): list(reservations) for zone_id, reservations in parts.items()},
        }
        added = rows.add(conn, {"id": build_id, **_columns(request, reservation_id, count), "request": recorded})
        if worker is not None:
            rows.claim(conn, build_id, worker, compute.now(conn), claim_seconds(compute))
        if not added:
            raise Conflict(f"The reservation id {reservation_id} is in use; choose another one")
        made = _known(rows.get(conn, build_id), reservation_id)
        notify_pollers.notify(conn, notify_pollers.BUILDS)
    if worker is None:
        compute.cast("")
    return made


def _columns(request: BootRequest, reservation_id: str, count: int) -> dict[str, object]:
    """Return the columns of a new build of `count` servers."""
    return {
        "reservation_id": reservation_id,
        "project_id": request.project_id,
        "user_id": request.user_id,
        "requested": count,
        "pending": count,
        "vcpus": request.flavor.vcpus,
        "ram_mb": request.flavor.ram_mb,
    }


def get(compute: Compute, reservation_id: str, project_id: str | None = None) -> BuildState:
    """Return the build with that reservation id. Raise NotFound if it is unknown or another project's."""
    with reading(compute.engine) as conn:
        result = _known(rows.of_reservation(conn, reservation_id, project_id), reservation_id)
        return BuildState(result, tuple(rows.of(conn, result.id)))


def listed(compute: Compute, project_id: str | None = None) -> list[BuildState]:
    """Return the latest builds of a project, or of all projects, without their servers."""
    with reading(compute.engine) as conn:
        return [BuildState(result, ()) for result in rows.listed(conn, project_id, MOST_LISTED)]


def zone_names(compute: Compute) -> Mapping[int, str]:
    """Return child zone id -> name shown to users."""
    with reading(compute.engine) as conn:
        return {zone.id: zone.name or f"zone {zone.id}" for zone in child_zones.listed(conn)}


def in_child(compute: Compute, server_id: str) -> InChild | None:
    """Return the child that this zone placed a server in; None if it placed none."""
    with reading(compute.engine) as conn:
        placed = servers.get(conn, server_id)
        if placed is None:
            return None
        return InChild(placed.zone_id, placed.build_id, rows.number_of(conn, server_id))


def servers_for_parent(compute: Compute, build_id: str, project_id: str) -> list[Mapping[str, object]]:
    """Return the servers of a parent's build that this zone created for the account, with their owners there."""
    with reading(compute.engine) as conn:
        return used_offers.of_build(conn, project_id, build_id)


def to_ring(compute: Compute, again: float = AGAIN_SECONDS) -> list[str]:
    """Return the ids of due, unclaimed builds that need a wake-up."""
    with compute.engine.begin() as conn:
        return rows.to_ring(conn, compute.now(conn), again)


def are_open(compute: Compute) -> bool:
    """Return whether there are unfinished builds."""
    with reading(compute.engine) as conn:
        return rows.are_open(conn)


def sweep(compute: Compute) -> None:
    """Delete old finished builds, and expired offers."""
    with compute.engine.begin() as conn:
        now = compute.now(conn)
        rows.forget(conn, now - KEPT)
        used_offers.sweep(conn, now)


def parts_of(build: Build) -> Parts:
    """Return the parts of the build's reservations in child zones."""
    return {int(zone_id): tuple(there) for zone_id, there in build.request.get("parts", {}).items()}


def number_name(build: Build, request: BootRequest, number: int) -> str:
    """Return the name of a server of a build, numbered if there are several."""
    return request.name if build.requested == 1 else f"{request.name}-{number + 1}"


def _known(build: Build | None, reservation_id: str) -> Build:
    if build is None:
        raise NotFound(f"Build {reservation_id[:80]} could not be found.")
    return build
