"""Body of a request for servers, read into a boot request of the bundled cloud."""

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from api.compute import validation
from api.compute.microversion import since
from api.compute.networks import ip_validation
from api.compute.zones import build_orders
from api.request_context import caller, climate, compute
from climate.compute.images import registry
from climate.compute.models.flavor import Flavor
from climate.compute.models.request import BootRequest, pools_of, read_zone
from climate.compute.projects import flavors, keypairs
from climate.compute.reservations import pools
from climate.compute.zones.builds.orders import Order
from climate.domain.errors import Forbidden, InvalidInput
from climate.domain.lease import Lease
from climate.service.leases import server_boot as leased_boot

HINTS = ("OS-SCH-HNT:scheduler_hints", "os:scheduler_hints")
LONGEST_USER_DATA = 65535
LONGEST_PASSWORD = 255

KNOWN = (
    frozenset(HINTS)
    | build_orders.KEYS
    | {
        *("name", "imageRef", "flavorRef", "min_count", "max_count", "networks", "block_device_mapping_v2", "metadata"),
        *("availability_zone", "key_name", "user_data", "scheduler_hints", "return_reservation_id"),
        *("security_groups", "config_drive", "adminPass", "OS-DCF:diskConfig", "description", "tags", "hostname"),
        *("host", "hypervisor_hostname"),
        *("accessIPv4", "accessIPv6", "personality", "trusted_image_certificates"),
    }
)
"""Keys below `server`; some have no effect, but clients send them."""

KEPT_NOWHERE = ("personality", "tags", "trusted_image_certificates")
"""Keys that must be empty, because their content would be lost."""


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """A checked request, and what it wants beyond servers."""

    request: BootRequest
    reserved: bool
    lease_params: object
    reservations: tuple[str, ...]
    build_id_only: bool
    """Return the id of the request instead of a server."""
    order: Order | None
    """Build request of a parent zone on an offer of this zone; None: the scheduler chooses."""
    reservation_id: str | None
    """Reservation id that the client chose for the build."""
    password: str
    """Password that the answer returns, empty for a random one; guests get none."""


def read(body: dict[str, Any], *, of_build: bool = False) -> ServerRequest:
    """Return the request in a body; InvalidInput, NotFound or Forbidden name what is wrong with it.

    `of_build`: the request is for a build over zones, which may choose its reservation id.
    """
    server = validation.part(body, "server")
    unknown = sorted(set(server) - KNOWN)
    if unknown:
        raise InvalidInput(f"server: {', '.join(unknown)[:200]} cannot be set")
    if lost := [key for key in KEPT_NOWHERE if server.get(key)]:
        raise InvalidInput(f"server: {', '.join(lost)} must be empty, because this cloud does not store it")
    hints = _hints(body, server)
    reserved = validation.flag(hints["reserved"], "reserved") if "reserved" in hints else False
    on_offer = build_orders.is_on_offer(server)
    request = _request(server, hints, on_offer=on_offer)
    order = build_orders.read(server, request.name) if on_offer else None
    build_orders.check(server, request.count, on_offer=on_offer, of_build=of_build)
    _check_hints(hints, reserved, request)
    build_id_only = validation.flag(server.get("return_reservation_id", False), "return_reservation_id")
    password = server.get("adminPass", "")
    if not isinstance(password, str) or len(password) > LONGEST_PASSWORD:
        raise InvalidInput(f"adminPass must be a text of at most {LONGEST_PASSWORD} characters")
    chosen = build_orders.reservation_id(server)
    return ServerRequest(
        request, reserved, hints.get("lease_params"), pools_of(hints), build_id_only, order, chosen, password
    )


def admit(wanted: ServerRequest) -> dict[str, Lease]:
    """Return the leases by the reservations that a request names; errors if the caller may not boot on them."""
    return admit_on(wanted.reservations)


def admit_on(reservations: Iterable[str]) -> dict[str, Lease]:
    """Return the leases by reservation; errors if the caller may not boot on them."""
    ours = [
        reservation
        for reservation in reservations
        if not pools.is_lent_from_outside(compute(), reservation, caller().project_id)
    ]
    return {reservation: leased_boot.admit(climate(), caller(), reservation) for reservation in ours}


def _request(server: dict[str, Any], hints: dict[str, Any], *, on_offer: bool = False) -> BootRequest:
    """Return the request; `on_offer`: a parent zone has chosen flavor and image, and the key belongs to its user."""
    least = validation.count(server.get("min_count", 1), "min_count", 1)
    count = validation.count(server.get("max_count", least), "max_count", 1)
    if least > count:
        raise InvalidInput("min_count must be <= max_count")
    who = caller()
    return BootRequest(
        project_id=who.project_id,
        user_id=who.user_id,
        name=validation.name(server.get("name")),
        flavor=_named_flavor(server.get("flavorRef")) if on_offer else flavor(server.get("flavorRef")),
        image_id=_named_image(server.get("imageRef")) if on_offer else _image(server),
        networks=_networks(server),
        addresses=_addresses(server),
        metadata=validation.metadata(server.get("metadata") or {}),
        hints=hints,
        zone=_zone(server),
        destination=_destination(server),
        access=(validation.address(server.get("accessIPv4"), 4), validation.address(server.get("accessIPv6"), 6)),
        key_name=_key(server, known=not on_offer),
        user_data=_user_data(server.get("user_data")),
        config_drive=_config_drive(server.get("config_drive")),
        description=validation.description(server.get("description")),
        count=count,
        least=least,
        admin=who.is_admin,
        request_id=who.request_id,
    )


def _hints(body: dict[str, Any], server: dict[str, Any]) -> dict[str, Any]:
    places = [body.get(key) for key in HINTS] + [server.get(key) for key in (*HINTS, "scheduler_hints")]
    found: dict[str, Any] = {}
    for place in places:
        if place is not None and not isinstance(place, dict):
            raise InvalidInput("scheduler_hints must be an object")
        found |= place or {}
    return found


def _check_hints(hints: dict[str, Any], reserved: bool, request: BootRequest) -> None:
    if "group" in hints:
        validation.name(hints["group"], "group")
    if "lease_params" in hints and not reserved:
        raise InvalidInput("lease_params needs the hint reserved=True")
    if reserved and request.count > 1:
        raise InvalidInput("reserved=True allows only one server per request")
    if reserved and pools_of(hints):
        raise InvalidInput("give only one of the hints reservation=ID and reserved=True")


def _named_flavor(name: Any) -> Flavor:
    wanted = validation.name(name, "flavorRef")
    return flavors.named(compute(), wanted, caller().project_id, admin=caller().is_admin)


def _named_image(name: Any) -> str | None:
    if name is None:
        return None
    return registry.id_of(compute(), validation.name(name, "imageRef"), caller().project_id)


def flavor(ref: Any) -> Flavor:
    """Return the flavor with the id, or with the id in the link."""
    if isinstance(ref, bool) or not isinstance(ref, (str, int)) or ref == "":
        raise InvalidInput("flavorRef must be the id of a flavor")
    return flavors.requested(compute(), str(ref).rpartition("/")[2], validation.own_project())


def image(ref: Any) -> str:
    """Return the id of the image, given by its id or its link; the image must be active."""
    image_id = validation.uuid(ref.rpartition("/")[2] if isinstance(ref, str) else ref, "imageRef")
    registry.check_bootable(compute(), image_id, validation.own_project())
    return image_id


def _image(server: dict[str, Any]) -> str:
    booted_from = _booted_from(server.get("block_device_mapping_v2"))
    return image(server.get("imageRef") or booted_from)


def _booted_from(devices: Any) -> Any:
    """Return the image among the block devices, which must be the only one: clients send it beside imageRef."""
    if devices is None:
        return None
    if not isinstance(devices, list) or not all(isinstance(device, dict) for device in devices):
        raise InvalidInput("block_device_mapping_v2 must be a list of objects")
    found = None
    for device in devices:
        if device.get("source_type") != "image" or device.get("destination_type", "local") != "local":
            raise InvalidInput(
                "block_device_mapping_v2: boot from volume is not supported; each must be like "
                '{"uuid": "…", "source_type": "image", "destination_type": "local"}'
            )
        if found is not None:
            raise InvalidInput("block_device_mapping_v2: a server has exactly one image")
        found = device.get("uuid")
    return found


def _networks(server: dict[str, Any]) -> tuple[str, ...] | None:
    given = server.get("networks")
    if given is None and since(37):
        raise InvalidInput('networks must be "auto", "none" or a list')
    if given in (None, "auto", []):
        return None
    if given == "none":
        return ()
    if not isinstance(given, list) or len(given) > 16:
        raise InvalidInput('networks must be "auto", "none" or a list of at most 16 objects')
    named = tuple(_network(entry) for entry in given)
    twice = next((network for network in named if named.count(network) > 1), None)
    if twice is not None:
        raise InvalidInput(f"networks: network {twice} is given twice; a server has one interface per network")
    return named


def _network(entry: Any) -> str:
    if not isinstance(entry, dict) or entry.get("port"):
        raise InvalidInput(
            'networks: each must be like {"uuid": "…"}, optionally with "fixed_ip"; ports are not supported'
        )
    return validation.uuid(entry.get("uuid"), "networks.uuid")


def _addresses(server: dict[str, Any]) -> dict[str, str]:
    """Return the requested addresses by network, of the networks that `_networks` has checked."""
    given = server.get("networks")
    named = [(_network(entry), entry.get("fixed_ip")) for entry in given] if isinstance(given, list) else []
    return {
        network: str(ip_validation.address(wanted, "networks.fixed_ip"))
        for network, wanted in named
        if wanted is not None
    }


def _zone(server: dict[str, Any]) -> str | None:
    """Return the parts of `zone[:host[:node]]`; a host or node in it is forced."""
    zone = server.get("availability_zone")
    if zone is None:
        return None
    named, host, node = read_zone(validation.name(zone, "availability_zone"))
    if (host or node) and not caller().is_admin:
        raise Forbidden("Only administrators may force a host.")
    return f"{named or ''}:{host or ''}:{node or ''}".rstrip(":") or None


def _destination(server: dict[str, Any]) -> str | None:
    """Return `host[:node]` or `:node` of the keys `host` and `hypervisor_hostname`, which do not skip the filters."""
    host, node = (_host(server, key) for key in ("host", "hypervisor_hostname"))
    if host is None and node is None:
        return None
    if not caller().is_admin:
        raise Forbidden("Only administrators may name a host.")
    return f"{host or ''}:{node or ''}".rstrip(":")


def _host(server: dict[str, Any], key: str) -> str | None:
    given = server.get(key)
    if given is None:
        return None
    if not since(74) or ":" in str(server.get("availability_zone")):
        raise InvalidInput(f"{key} needs 2.74 or later, and an availability_zone without a host")
    if ":" in validation.name(given, key):
        raise InvalidInput(f"{key} must be the name of a host")
    return str(given)


def _key(server: dict[str, Any], *, known: bool = True) -> str | None:
    key = server.get("key_name")
    if key is None:
        return None
    wanted = validation.name(key, "key_name")
    if known and not keypairs.exists(compute(), caller().user_id, wanted):
        raise InvalidInput(f"Invalid key_name provided: {wanted[:80]!r}")
    return wanted


def _config_drive(value: Any) -> bool:
    """Return whether a config drive is requested; clients send an empty text if not."""
    return False if value in (None, "") else validation.flag(value, "config_drive")


def _user_data(text: Any) -> str | None:
    if text is None:
        return None
    if not isinstance(text, str) or len(text) > LONGEST_USER_DATA:
        raise InvalidInput(f"user_data must be Base64 of at most {LONGEST_USER_DATA} characters")
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput("user_data must be Base64") from None
    return text
