"""Bodies of servers: creation, update, metadata, and what they attach."""

import base64
import binascii
import re
from dataclasses import dataclass

from api.compute import common_body_keys as keys
from api.compute import validation
from api.compute.networks import ip_validation
from api.compute.projects.keypair_bodies import public_key
from api.compute.servers import tag_bodies
from api.schema import shapes
from api.schema.body import ABSENT, Below, Body, Ignored, Key, Values, as_given, part
from climate.compute.models import keypair
from climate.compute.models.security_group import MOST_GROUPS
from climate.compute.models.server import MANUAL
from climate.compute.projects.quota_check import MOST_AT_ONCE
from climate.domain.errors import InvalidInput

LONGEST_USER_DATA = 65535
LONGEST_PASSWORD = 255
MOST_INTERFACES = 16

TOGETHER = shapes.number(1, 100)
USER_DATA = {"type": "string", "contentEncoding": "base64", "maxLength": LONGEST_USER_DATA}
DISK_CONFIG = shapes.one_of("AUTO", MANUAL)
BUILD_ID = {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"}
_BUILD_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
INTERFACES = 'networks: each must be like {"uuid": "…"}, optionally with "fixed_ip", or {"port": "…"}'
NO_VOLUMES = (
    "block_device_mapping_v2: boot from volume is not supported; each must be like "
    '{"uuid": "…", "source_type": "image", "destination_type": "local"}'
)


@dataclass(frozen=True, slots=True)
class Interfaces:
    """Networks of a new server."""

    networks: tuple[str, ...] | None = None
    """Ids of networks; None: the cloud chooses."""
    addresses: tuple[tuple[str, str], ...] = ()
    """Network and requested address."""
    ports: tuple[tuple[int, str], ...] = ()
    """Place among the interfaces, and id of the port that has it."""


def _fixed_ip(value: object, field: str) -> str:
    return str(ip_validation.address(value, field))


class Interface(Body):
    """A network of a new server, or a port."""

    UNKNOWN = "networks: {first!r} cannot be set; known are uuid, fixed_ip and port"
    PREFIX = "networks."

    port = keys.uuid().or_null()
    uuid = keys.uuid().or_null()
    fixed_ip = Key(_fixed_ip, keys.ADDRESS).or_null()
    tag = Ignored(shapes.text(60))


INTERFACE = Interface()
NETWORKS = {"anyOf": [shapes.one_of("auto", "none"), shapes.listing(INTERFACE.shape(), MOST_INTERFACES)]}


def _interfaces(value: object, field: str) -> Interfaces | None:
    if value is None:
        return None
    if value in ("auto", []):
        return Interfaces()
    if value == "none":
        return Interfaces(())
    if not isinstance(value, list) or len(value) > MOST_INTERFACES:
        raise InvalidInput(f'{field} must be "auto", "none" or a list of at most {MOST_INTERFACES} objects')
    if not all(isinstance(entry, dict) for entry in value):
        raise InvalidInput(INTERFACES)
    return _named([INTERFACE.read(entry) for entry in value], field)


def _named(entries: list[Values], field: str) -> Interfaces:
    for entry in entries:
        _check_entry(entry, field)
    ports = tuple((index, entry["port"]) for index, entry in enumerate(entries) if entry["port"] is not None)
    _once([port_id for _, port_id in ports], f"{field}: port")
    others = [entry for entry in entries if entry["port"] is None]
    _check_fixed_ips(others, field)
    exact = tuple((entry["uuid"], entry["fixed_ip"]) for entry in others if entry["fixed_ip"])
    return Interfaces(tuple(entry["uuid"] for entry in others), exact, ports)


def _check_fixed_ips(entries: list[Values], field: str) -> None:
    """Refuse a second interface in a network in which one has a fixed IP."""
    for network_id in [entry["uuid"] for entry in entries if entry["fixed_ip"]]:
        _once([entry["uuid"] for entry in entries if entry["uuid"] == network_id], f"{field}: with fixed_ip, network")


def _check_entry(entry: Values, field: str) -> None:
    if entry["port"] is None and entry["uuid"] is None:
        raise InvalidInput(INTERFACES)
    if entry["port"] is not None and entry["fixed_ip"] is not None:
        raise InvalidInput(f"{field}: a port has its addresses; give fixed_ip with uuid only")


def _once(named: list[str], what: str) -> None:
    twice = next((one for one in named if named.count(one) > 1), None)
    if twice is not None:
        raise InvalidInput(f"{what} {twice} is given twice")


def _image_source(value: object, field: str) -> str:
    if value != "image":
        raise InvalidInput(NO_VOLUMES)
    return "image"


def _local(value: object, field: str) -> str:
    if value != "local":
        raise InvalidInput(NO_VOLUMES)
    return "local"


class Device(Body):
    """A block device of a new server: its image."""

    IS_OPEN = True

    source_type = Key(_image_source, shapes.one_of("image"), required=True)
    destination_type = Key(_local, shapes.one_of("local"), default="local")
    uuid = Key(as_given, shapes.uuid())


DEVICE = Device()
DEVICES = shapes.listing(DEVICE.shape(), 1)


def _image_of_devices(value: object, field: str) -> object:
    """Return the image among the block devices, which must be the only one: clients send it beside imageRef."""
    if not isinstance(value, list) or not all(isinstance(device, dict) for device in value):
        raise InvalidInput(f"{field} must be a list of objects")
    image_ids = [DEVICE.read(device)["uuid"] for device in value]
    if len([image for image in image_ids if image is not None]) > 1:
        raise InvalidInput(f"{field}: a server has exactly one image")
    return next((image for image in image_ids if image is not None), None)


class Hints(Body):
    """Scheduler hints, also those of reservations; filters read further ones."""

    IS_OPEN = True

    reservation = Key(as_given, {"anyOf": [shapes.text(), shapes.listing(shapes.text())]}, default=ABSENT)
    reserved = Key(validation.flag, {"anyOf": [shapes.flag(), shapes.one_of("True", "False")]}, default=False)
    lease_params = Key(as_given, shapes.text(), default=ABSENT)
    group = keys.name(default=ABSENT)
    same_host = Key(as_given, {"anyOf": [shapes.uuid(), shapes.listing(shapes.uuid())]}, default=ABSENT)
    different_host = Key(as_given, {"anyOf": [shapes.uuid(), shapes.listing(shapes.uuid())]}, default=ABSENT)
    build_near_host_ip = Key(as_given, shapes.text(64), default=ABSENT)
    cidr = Key(as_given, shapes.text(4), default=ABSENT)
    query = Key(as_given, shapes.text(), default=ABSENT)


HINTS = Hints()


def _hints(value: object, field: str) -> dict[str, object]:
    if value is not None and not isinstance(value, dict):
        raise InvalidInput("scheduler_hints must be an object")
    return value or {}


def hints_key(key: str | None = None) -> Key:
    """Return a key whose value is an object of scheduler hints, or null."""
    return Key(_hints, HINTS.shape(), key=key)


def _flavor_ref(value: object, field: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        raise InvalidInput(f"{field} must be the id of a flavor")
    return str(value)


def _disk_config(value: object, field: str) -> str:
    if value not in ("AUTO", MANUAL):
        raise InvalidInput(f"{field} must be AUTO or MANUAL, not {str(value)[:40]!r}")
    return str(value)


def disk_config_key(*, default: object) -> Key:
    """Return the key of the disk configuration of a server."""
    return Key(_disk_config, DISK_CONFIG, key="OS-DCF:diskConfig", named="OS-DCF:diskConfig", default=default)


def flavor_ref() -> Key:
    """Return the key flavorRef, whose value is the id of a flavor or its link."""
    return Key(_flavor_ref, shapes.name(), key="flavorRef", required=True)


def access(version: int, shape: shapes.Schema, *, default: object = None) -> Key:
    """Return a key whose value is an access address of that IP version, in canonical form, or nothing."""
    return Key(lambda value, _: validation.address(value, version), shape, key=f"accessIPv{version}", default=default)


def _at_least_one(value: object, field: str) -> int:
    return validation.count(value, field, 1)


def _host(value: object, field: str) -> str:
    if ":" in validation.name(value, field):
        raise InvalidInput(f"{field} must be the name of a host")
    return str(value)


def _config_drive(value: object, field: str) -> bool:
    """Return whether a config drive is requested; clients send an empty text if not."""
    return False if value in (None, "") else validation.flag(value, field)


def user_data(value: object, field: str) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_USER_DATA:
        raise InvalidInput(f"{field} must be Base64 of at most {LONGEST_USER_DATA} characters")
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput(f"{field} must be Base64") from None
    return value


def password(value: object, field: str) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_PASSWORD:
        raise InvalidInput(f"{field} must be a text of at most {LONGEST_PASSWORD} characters")
    return value


def _empty(value: object, field: str) -> None:
    if value:
        raise InvalidInput(f"server: {field} must be empty, because this cloud does not store it")


def _build_id(value: object, field: str) -> str:
    if not isinstance(value, str) or not _BUILD_ID.fullmatch(value):
        raise InvalidInput(f"{field} must be a text of 1 to 64 letters, digits, '.', '_' and '-'")
    return value


GROUP_NAMES = shapes.listing(shapes.below("name", shapes.name()), MOST_GROUPS)


def _group_names(value: object, field: str) -> tuple[str, ...]:
    """Return the names or ids of security groups."""
    if not isinstance(value, list) or len(value) > MOST_GROUPS:
        raise InvalidInput(f'{field} must be a list of at most {MOST_GROUPS} objects like {{"name": "default"}}')
    if not all(isinstance(entry, dict) and set(entry) == {"name"} for entry in value):
        raise InvalidInput(f'{field}: each must be like {{"name": "default"}}')
    return tuple(validation.name(entry["name"], f"{field}: name") for entry in value)


class ZoneBuild(Body):
    """The build of a parent zone to which a server on an offer belongs."""

    UNKNOWN = "zone_build: only {sorted} can be given, not {first!r}"
    PREFIX = "zone_build."

    id = Key(_build_id, BUILD_ID).or_null()
    launch_index = keys.count(0, MOST_AT_ONCE - 1, default=0)
    project_id = keys.name(default=ABSENT)
    user_id = keys.name(default=ABSENT)
    public_key = Key(public_key, shapes.text(keypair.LONGEST)).or_null()


class NewServer(Body):
    """New servers; some keys have no effect, but clients send them."""

    UNKNOWN = "server: {unknown} cannot be set"

    name = keys.name(required=True)
    flavor_ref = flavor_ref()
    image_ref = Key(as_given, shapes.uuid(), key="imageRef")
    device_image = Key(_image_of_devices, DEVICES, key="block_device_mapping_v2").or_null()
    min_count = Key(_at_least_one, TOGETHER, default=1)
    max_count = Key(_at_least_one, TOGETHER, default=ABSENT)
    networks = Key(_interfaces, NETWORKS, default=ABSENT)
    metadata = keys.metadata_or_empty()
    zone = keys.name(key="availability_zone").or_null()
    host = Key(_host, shapes.name()).or_null()
    hypervisor_hostname = Key(_host, shapes.name()).or_null()
    key_name = keys.name().or_null()
    user_data = Key(user_data, USER_DATA).or_null()
    config_drive = Key(_config_drive, shapes.flag())
    access_ipv4 = access(4, keys.ADDRESS)
    access_ipv6 = access(6, keys.ADDRESS_V6)
    description = keys.description()
    build_id_only = keys.flag(key="return_reservation_id", default=False)
    password = Key(password, shapes.text(), key="adminPass", default="")
    scheduler_hints = hints_key()
    os_hints = hints_key("os:scheduler_hints")
    extension_hints = hints_key("OS-SCH-HNT:scheduler_hints")
    blob = Key(as_given, shapes.text(65536))
    zone_blob = Key(as_given, shapes.text(65536))
    reservation_id = Key(_build_id, BUILD_ID, default=ABSENT).or_null()
    zone_build = part(ZoneBuild(), default=ABSENT).or_null()
    num_instances = keys.count(1, MOST_AT_ONCE, default=ABSENT)
    personality = Key(_empty, shapes.listing({"type": "object"}, 0))
    tags = Key(tag_bodies.read, tag_bodies.LIST, default=ABSENT)
    certificates = Key(_empty, shapes.listing(shapes.name(), 0), key="trusted_image_certificates")
    security_groups = Key(_group_names, GROUP_NAMES, default=ABSENT).or_null()
    disk_config = disk_config_key(default=MANUAL)
    hostname = Ignored(shapes.name())


class NewBuild(NewServer):
    """Servers of a build over zones, which may be more than one request boots in a zone."""

    min_count = keys.count(1, MOST_AT_ONCE, default=ABSENT)
    max_count = keys.count(1, MOST_AT_ONCE, default=ABSENT)


class ServerRequest(Body):
    """Body of a request for servers: hints may be beside `server` or in it."""

    UNKNOWN = "The body may have {known}, not {first!r}"

    server = part(NewServer(), required=True)
    os_hints = hints_key("os:scheduler_hints")
    extension_hints = hints_key("OS-SCH-HNT:scheduler_hints")


class BuildRequest(ServerRequest):
    """Body of a request for a build over zones."""

    server = part(NewBuild(), required=True)


class ChangedServer(Body):
    """The name, the description and the access addresses of a server; the other keys have no effect."""

    UNKNOWN = "server: only {sorted} can be changed, not {unknown!r}"

    name = keys.name(default=ABSENT)
    description = keys.description(default=ABSENT)
    access_ipv4 = access(4, keys.ADDRESS, default=ABSENT)
    access_ipv6 = access(6, keys.ADDRESS_V6, default=ABSENT)
    hostname = Ignored(shapes.name())
    disk_config = disk_config_key(default=ABSENT)


NEW, NEW_BUILD, CHANGED = ServerRequest(), BuildRequest(), Below("server", ChangedServer())
