"""Body of a request for servers, read into a boot request of the bundled cloud."""

from collections.abc import Iterable
from dataclasses import dataclass

from api.compute import validation
from api.compute.microversion import since
from api.compute.servers import server_bodies
from api.compute.servers.server_bodies import Interfaces
from api.compute.zones import build_orders
from api.request_context import caller, climate, compute
from api.schema.body import Values
from climate.compute.images import image_catalog
from climate.compute.models.flavor import Flavor
from climate.compute.models.request import BootRequest, pools_of, read_zone
from climate.compute.models.security_group import DEFAULT
from climate.compute.network.operations import security_groups
from climate.compute.projects import flavors, keypairs
from climate.compute.reservations import pools
from climate.compute.zones.builds.orders import ServerOrder
from climate.domain.errors import Forbidden, InvalidInput
from climate.domain.lease import Lease
from climate.service.leases import lease_servers


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """A checked request, and what it wants beyond servers."""

    request: BootRequest
    reserved: bool
    lease_params: object
    reservations: tuple[str, ...]
    build_id_only: bool
    """Return the id of the request instead of a server."""
    order: ServerOrder | None
    """Build request of a parent zone on an offer of this zone; None: the scheduler chooses."""
    reservation_id: str | None
    """Reservation id that the client chose for the build."""
    password: str
    """Password that the answer returns, empty for a random one; guests get none."""
    security_groups: tuple[str, ...] = (DEFAULT,)
    """Names or ids of the security groups, as requested."""


def read(body: Values) -> ServerRequest:
    """Return the request in a body; InvalidInput, NotFound or Forbidden name what is wrong with it."""
    return checked(server_bodies.NEW.read(body))


def checked(values: Values, *, of_build: bool = False) -> ServerRequest:
    """Return the request that the schema has read; InvalidInput, NotFound or Forbidden name what is wrong with it.

    `of_build`: the request is for a build over zones, which may choose its reservation id.
    """
    server = values["server"]
    hints = _hints(values)
    read_hints = server_bodies.HINTS.read(hints)
    on_offer = build_orders.is_on_offer(server)
    request = _request(server, hints, on_offer=on_offer)
    order = build_orders.read(server, request.name) if on_offer else None
    build_orders.check(server, request.count, on_offer=on_offer, of_build=of_build)
    reserved = read_hints["reserved"]
    _check_hints(hints, reserved, request)
    return ServerRequest(
        request,
        reserved,
        read_hints.get("lease_params"),
        pools_of(hints),
        server["build_id_only"],
        order,
        server.get("reservation_id"),
        server["password"],
        server.get("security_groups") or (DEFAULT,),
    )


def admit(request: ServerRequest) -> dict[str, Lease]:
    """Return the leases by the reservations that a request names; errors if the caller may not boot on them."""
    return admit_on(request.reservations)


def admit_on(reservations: Iterable[str]) -> dict[str, Lease]:
    """Return the leases by reservation; errors if the caller may not boot on them."""
    ours = [
        reservation
        for reservation in reservations
        if not pools.is_lent_from_outside(compute(), reservation, caller().project_id)
    ]
    return {reservation: lease_servers.admit(climate(), caller(), reservation) for reservation in ours}


def flavor(ref: str) -> Flavor:
    """Return the flavor with the id, or with the id in the link."""
    return flavors.requested(compute(), ref.rpartition("/")[2], validation.own_project())


def image(ref: object) -> str:
    """Return the id of the image, given by its id or its link; the image must be active."""
    image_id = validation.uuid(ref.rpartition("/")[2] if isinstance(ref, str) else ref, "imageRef")
    image_catalog.check_bootable(compute(), image_id, validation.own_project())
    return image_id


def _request(server: Values, hints: dict[str, object], *, on_offer: bool = False) -> BootRequest:
    """Return the request; `on_offer`: a parent zone has chosen flavor and image, and the key belongs to its user."""
    least: int = server["min_count"]
    count = server.get("max_count", least)
    if least > count:
        raise InvalidInput("min_count must be <= max_count")
    interfaces = _interfaces(server)
    who = caller()
    return BootRequest(
        project_id=who.project_id,
        user_id=who.user_id,
        name=server["name"],
        flavor=_named_flavor(server["flavor_ref"]) if on_offer else flavor(server["flavor_ref"]),
        image_id=_named_image(server["image_ref"])
        if on_offer
        else image(server["image_ref"] or server["device_image"]),
        networks=interfaces.networks,
        addresses=dict(interfaces.addresses),
        ports=_ports(interfaces),
        metadata=server["metadata"],
        hints=hints,
        zone=_zone(server["zone"]),
        destination=_destination(server),
        access=(server["access_ipv4"], server["access_ipv6"]),
        key_name=server["key_name"] if on_offer else known_key(server["key_name"]),
        public_key=_sent_key(server.get("zone_build")) if on_offer else None,
        user_data=server["user_data"],
        config_drive=server["config_drive"],
        disk_config=server["disk_config"],
        description=server["description"],
        security_groups=_security_groups(server.get("security_groups") or ()),
        tags=_tags(server.get("tags", ())),
        count=count,
        least=least,
        admin=who.is_admin,
        request_id=who.request_id,
    )


def _hints(values: Values) -> dict[str, object]:
    """Return the hints of all places in a body; those below `server` win."""
    server = values["server"]
    beside, below = (values["os_hints"], values["extension_hints"]), (server["extension_hints"], server["os_hints"])
    placement: dict[str, object] = {}
    for place in (*beside, *below, server["scheduler_hints"]):
        placement |= place
    return placement


def _check_hints(hints: dict[str, object], reserved: bool, request: BootRequest) -> None:
    if "lease_params" in hints and not reserved:
        raise InvalidInput("lease_params needs the hint reserved=True")
    if reserved and request.count > 1:
        raise InvalidInput("reserved=True allows only one server per request")
    if reserved and pools_of(hints):
        raise InvalidInput("give only one of the hints reservation=ID and reserved=True")


def _named_flavor(ref: str) -> Flavor:
    wanted = validation.name(ref, "flavorRef")
    return flavors.named(compute(), wanted, caller().project_id, admin=caller().is_admin)


def _named_image(ref: object) -> str | None:
    if ref is None:
        return None
    return image_catalog.id_of(compute(), validation.name(ref, "imageRef"), caller().project_id)


def _image(server: Values) -> str:
    return image(server["image_ref"] or server["device_image"])


def _interfaces(server: Values) -> Interfaces:
    """Return the requested networks, which must be given since 2.37."""
    networks: Interfaces | None = server.get("networks")
    if networks is None and since(37):
        raise InvalidInput('networks must be "auto", "none" or a list')
    return networks or Interfaces()


def _ports(interfaces: Interfaces) -> tuple[tuple[int, str], ...]:
    if interfaces.ports and compute().cells.is_api:
        raise InvalidInput("networks: servers in cells are created without ports")
    return interfaces.ports


def _zone(zone: str | None) -> str | None:
    """Return the parts of `zone[:host[:node]]`; a host or node in it is forced."""
    if zone is None:
        return None
    named, host, node = read_zone(zone)
    if (host or node) and not caller().is_admin:
        raise Forbidden("Only administrators may force a host.")
    return f"{named or ''}:{host or ''}:{node or ''}".rstrip(":") or None


def _destination(server: Values) -> str | None:
    """Return `host[:node]` or `:node` of the keys `host` and `hypervisor_hostname`, which do not skip the filters."""
    named = {key: server[key] for key in ("host", "hypervisor_hostname") if server[key] is not None}
    if not named:
        return None
    if not since(74) or ":" in (server["zone"] or ""):
        raise InvalidInput(f"{next(iter(named))} needs 2.74 or later, and an availability_zone without a host")
    if not caller().is_admin:
        raise Forbidden("Only administrators may name a host.")
    return f"{named.get('host', '')}:{named.get('hypervisor_hostname', '')}".rstrip(":")


def _tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    if tags and not since(52):
        raise InvalidInput("server: tags can be set since 2.52")
    return tags


def _security_groups(names: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the ids of the named groups; None for the group `default` alone."""
    groups = security_groups.ids_of(compute(), caller().project_id, names)
    if groups is not None and compute().cells.is_api:
        raise InvalidInput("security_groups: servers in cells have the group 'default' only")
    return groups


def _sent_key(build: Values | None) -> str | None:
    """Return the public key that a parent zone sent, empty for none; None if no parent takes the offer."""
    return None if build is None else build.get("public_key") or ""


def public_key(name: str | None) -> str:
    """Return the public key of a key pair of the caller, empty for none; InvalidInput for an unknown name."""
    known_key(name)
    return "" if name is None else keypairs.public_key(compute(), caller().user_id, name)


def known_key(name: str | None) -> str | None:
    """Return the name of a key pair of the caller; InvalidInput for another."""
    if name is not None and not keypairs.exists(compute(), caller().user_id, name):
        raise InvalidInput(f"Invalid key_name provided: {name[:80]!r}")
    return name
