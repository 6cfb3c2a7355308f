"""Servers on leases whose hosts lie in child zones."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from api.body import read_object
from api.compute.server_body import Wanted
from api.current import caller, compute
from api.reservation.zone_tree import over_the_tree
from climate.compute.store import images, zone_servers
from climate.domain.errors import InvalidInput
from climate.domain.lease import Lease, Part
from climate.domain.status import PartState
from climate.service import zone_boot
from climate.service.zone_boot import Names


@dataclass(frozen=True, slots=True)
class BootedElsewhere:
    """A server that was booted in a child zone."""

    id: str
    build_id: str


def parts(leases: Mapping[str, Lease]) -> list[Part]:
    """The parts of reservations in child zones on which servers can be booted; `leases` by reservation."""
    found = [part for reservation, lease in leases.items() for part in lease.reservation(UUID(reservation)).parts]
    return [part for part in found if part.state is PartState.CONFIRMED and not part.cell]


def boot(wanted: Wanted, there: list[Part]) -> BootedElsewhere:
    """Boot the server of the request at hand on one of the parts, and write down whose it is."""
    request = wanted.request
    if request.count > 1 or len(wanted.reservations) > 1:
        raise InvalidInput("On a lease with parts in child zones, one server at a time is booted, on one reservation")
    with compute().engine.connect() as conn:
        image = images.get(conn, request.image_id) if request.image_id else None
    names = Names(request.flavor.name, image.name if image else None)
    body: dict[str, Any] = read_object()
    placed = zone_boot.boot(over_the_tree(), caller(), there, body, names)
    build_id = f"r-{secrets.token_hex(4)}"
    with compute().engine.begin() as conn:
        zone_servers.add(
            conn,
            {
                "server_id": placed.id,
                "zone_id": placed.zone_id,
                "project_id": request.project_id,
                "user_id": request.user_id,
                "build_id": build_id,
                "name": request.name,
                "vcpus": request.flavor.vcpus,
                "ram_mb": request.flavor.ram_mb,
            },
        )
    return BootedElsewhere(placed.id, build_id)
