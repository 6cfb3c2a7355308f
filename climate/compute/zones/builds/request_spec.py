"""Request spec of estimates between zones, and checks of what a boot request may send to another zone.

Ids of flavors, images, networks, servers, groups and reservations are local to a deployment. Flavor and image are sent
by name. A request with other ids stays in its zone. Reservations are an exception: those with parts in child zones are
sent by the ids of the parts.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from sqlalchemy import Connection

from climate.compute.errors import BadRequest
from climate.compute.models.flavor import Flavor, recorded
from climate.compute.models.image_member import ACCEPTED
from climate.compute.models.request import BootRequest, read_zone
from climate.compute.store.projects import flavors, image_members, images, keypairs
from climate.compute.zones.models import NO_PARTS, Parts

RESERVATION = "reservation"

OF_THIS_ZONE = (RESERVATION, "group", "same_host", "different_host")
"""Hints whose values are ids of this zone."""

SIZES: Mapping[str, str] = {
    "vcpus": "vcpus",
    "memory_mb": "ram_mb",
    "local_gb": "disk_gb",
    "ephemeral_gb": "ephemeral_gb",
    "swap_mb": "swap_mb",
}
"""Sizes of an instance type in a request spec -> fields of a flavor."""

LONGEST_NAME = 255


@dataclass(frozen=True, slots=True)
class RequestSpec:
    """Validated request for an estimate."""

    count: int = 1
    flavor: str | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    image: str | None = None
    zone: str | None = None
    hints: Mapping[str, object] = field(default_factory=dict)


def stays(request: BootRequest, parts: Parts = NO_PARTS) -> str | None:
    """Return why a request cannot leave this zone; None: child zones may serve it too.

    `parts`: the parts of its reservations in child zones.
    """
    hint = _hint_of_this_zone(request, parts)
    if hint is not None:
        return f"the hint '{hint}' names a resource of this zone"
    _, host, node = read_zone(request.zone)
    if host or node or request.destination:
        return "a host of this zone is named"
    if request.networks or request.addresses or request.ports:
        return "networks of this zone are named"
    if request.security_groups is not None:
        return "security groups of this zone are named"
    if request.flavor.reservation is not None:
        return "the flavor is of a reservation of this zone"
    return None


def _hint_of_this_zone(request: BootRequest, parts: Parts) -> str | None:
    """Return a hint that names a resource of this zone; a reservation with parts lies in children too."""
    return next((h for h in OF_THIS_ZONE if request.hints.get(h) and not (parts and h == RESERVATION)), None)


def with_key(conn: Connection, request: BootRequest) -> BootRequest:
    """Return the request with the public key of its key pair, which the user has in this zone only."""
    if request.key_name is None or request.public_key is not None:
        return request
    return replace(request, public_key=keypairs.public_key(conn, request.user_id, request.key_name))


def in_child(request: BootRequest, parts: Parts, zone_id: int) -> BootRequest:
    """Return the request for a child zone, with the parts of its reservations there."""
    if zone_id not in parts:
        return request
    return replace(request, hints={**request.hints, RESERVATION: list(parts[zone_id])})


def written(request: BootRequest, image: str | None, count: int) -> dict[str, object]:
    """Return the spec of a request for children; `image` is the name of its image."""
    sizes = {word: getattr(request.flavor, name) for word, name in SIZES.items()}
    return {
        "num_instances": count,
        "instance_type": {"name": request.flavor.name or None, **sizes},
        "instance_properties": {"image_name": image, "availability_zone": request.zone},
        "scheduler_hints": dict(request.hints),
        "filter": request.hints.get("host_filter"),
    }


def flavor_named(conn: Connection, name: str, project_id: str, *, admin: bool) -> Flavor:
    """Return the flavor of this zone with that name. Raise BadRequest if the project may use none."""
    flavor = next((one for one in flavors.listed(conn) if one.name == name), None)
    if flavor is None or not (flavor.usable_by(project_id) or admin):
        raise BadRequest(f"Flavor {name[:80]} could not be found in this zone.")
    return flavor


def image_named(conn: Connection, name: str, project_id: str) -> str:
    """Return the id of the image of this zone with that name. Raise BadRequest unless the project sees exactly one."""
    usable = [
        image for image in images.named(conn, name) if image_members.is_seen(conn, image, project_id, (ACCEPTED,))
    ]
    if len(usable) != 1:
        said = f"Image {name[:80]} could not be found in this zone."
        raise BadRequest(said if not usable else f"This zone has {len(usable)} images called {name[:80]}.")
    return usable[0].id


def image_name(conn: Connection, image_id: str | None) -> str | None:
    """Return the name of an image of this zone, which children look up."""
    image = images.get(conn, image_id) if image_id else None
    return image.name if image else None


def request_of(conn: Connection, spec: RequestSpec, who: Mapping[str, Any]) -> BootRequest:
    """Return the spec as a request of this zone; `who`: project_id, user_id, admin, request_id.

    Raise BadRequest for a missing flavor or image, and for a flavor of another size.
    """
    flavor = Flavor("", "", 0, 0, 0)
    if spec.flavor is not None:
        flavor = flavor_named(conn, spec.flavor, who["project_id"], admin=who["admin"])
    other = [name for name, size in spec.sizes.items() if spec.flavor and getattr(flavor, name) != size]
    if other:
        raise BadRequest(f"Flavor {flavor.name} of this zone has another size: {', '.join(other)} differs.")
    return BootRequest(
        **who,
        name="",
        flavor=flavor,
        image_id=image_named(conn, spec.image, who["project_id"]) if spec.image is not None else None,
        hints=spec.hints,
        zone=spec.zone,
        count=spec.count,
        least=1,
    )


def recorded_request(request: BootRequest) -> dict[str, object]:
    """Return a boot request as plain values, for a build's row."""
    return asdict(request)


def reread_request(fields: Mapping[str, Any]) -> BootRequest:
    """Return the boot request of a build's row."""
    networks = fields["networks"]
    changed = {
        "flavor": recorded(fields["flavor"]),
        "networks": None if networks is None else tuple(networks),
        "access": tuple(fields["access"]),
        "tags": tuple(fields.get("tags", ())),
    }
    return BootRequest(**{**fields, **changed})
