"""Bodies of the Network API: networks, subnets, floating IPs and quotas."""

from api.compute import common_body_keys as keys
from api.compute import validation
from api.compute.networks import ip_validation
from api.network import views
from api.request_context import caller
from api.schema import shapes
from api.schema.body import ABSENT, Below, Body, Ignored, Key, Values, as_given
from climate.domain.errors import Forbidden, InvalidInput

TYPE, SEGMENT, PHYSICAL = "provider:network_type", "provider:segmentation_id", "provider:physical_network"
OUTSIDE = "router:external"
TYPES = (views.FLAT_TYPE, views.VLAN_TYPE)

MOST_ENTRIES = 100
ANYTHING: shapes.Schema = {}
DESCRIPTION = shapes.or_null(shapes.text(pattern=r"^[^\x00-\x1f\x7f\x85\u2028\u2029]*$"))
STRETCH = 'allocation_pools must be like [{"start": "203.0.113.10", "end": "203.0.113.20"}]'

ROUTE = 'host_routes must be like [{"destination": "10.9.0.0/24", "nexthop": "10.1.0.9"}]'
MOST_ROUTES = 20
TEXT = shapes.text(255, pattern=r"^[^\x00-\x1f\x7f\x85\u2028\u2029]*$")

Stretches = tuple[tuple[object, object], ...]


def _entries(value: object, field: str) -> list[object]:
    if not isinstance(value, list) or len(value) > MOST_ENTRIES:
        raise InvalidInput(f"{field} must be a list of at most {MOST_ENTRIES} entries")
    return value


def _project(value: object, field: str) -> str | None:
    return None if value in (None, "") else validation.name(value, field)


def project_key() -> Key:
    """Return a key whose value is a project, or null."""
    return Key(_project, shapes.or_null(shapes.name()))


def _description(value: object, field: str) -> str:
    return validation.description(value, field) or ""


def one_line(value: object, field: str) -> str:
    """Return a text of one line, which may be empty; InvalidInput."""
    if value is not None and (not isinstance(value, str) or "\n" in value):
        raise InvalidInput(f"{field} must be a text of at most 255 characters in one line")
    return validation.description(value, field) or ""


def _up(value: object, field: str) -> bool:
    if not validation.flag(value, field):
        raise InvalidInput(f"{field} cannot be false: networks are always up")
    return True


def _type(value: object, field: str) -> str:
    if not isinstance(value, str) or value not in TYPES:
        raise InvalidInput(f"{field} must be {' or '.join(TYPES)}, not {str(value)[:40]!r}")
    return value


def _text_address(value: object, field: str) -> str:
    return str(ip_validation.address(value, field))


def _addresses(value: object, field: str) -> tuple[object, ...]:
    return tuple(ip_validation.address(entry, field) for entry in _entries(value, field))


def _version(value: object, field: str) -> int:
    if value not in (4, "4"):
        raise InvalidInput(f"{field} must be 4; CLIMATE_USE_IPV6 adds IPv6 prefixes")
    return 4


def _cidr(value: object, field: str) -> object:
    network = ip_validation.cidr(value, field)
    if network.prefixlen > 30:
        raise InvalidInput(f"{field} {network} has no room for a gateway and a server")
    return network


class Stretch(Body):
    """First and last address of an allocation range."""

    UNKNOWN = MISSING = STRETCH.replace("{", "{{").replace("}", "}}")
    PREFIX = "allocation_pools."

    start = keys.address(required=True)
    end = keys.address(required=True)


RANGE = Stretch()


def _stretches(value: object, field: str) -> Stretches:
    return tuple(_stretch(entry) for entry in _entries(value or [], field))


def _stretch(entry: object) -> tuple[object, object]:
    if not isinstance(entry, dict):
        raise InvalidInput(STRETCH)
    addresses = RANGE.read(entry)
    if addresses["start"] > addresses["end"]:
        raise InvalidInput(f"allocation_pools: {addresses['start']} comes after {addresses['end']}")
    return addresses["start"], addresses["end"]


STRETCHES = shapes.listing(RANGE.shape(), MOST_ENTRIES)


class NewNetwork(Body):
    """Network of servers, or an external network; some keys have no effect."""

    UNKNOWN = "network: {first!r} cannot be set; there are {sorted}"

    name = keys.name(required=True)
    is_external = keys.flag(key=OUTSIDE, default=False)
    type = Key(_type, shapes.one_of(*TYPES), key=TYPE).or_null()
    shared = keys.flag().or_null()
    segment = keys.count(1, 4094, key=SEGMENT).or_null()
    physical = keys.interface(key=PHYSICAL).or_null()
    project_id = project_key()
    tenant_id = project_key()
    admin_state_up = Ignored(ANYTHING)
    port_security_enabled = Ignored(ANYTHING)
    is_default = Ignored(ANYTHING)
    description = Ignored(ANYTHING)
    availability_zone_hints = Ignored(ANYTHING)


class ChangedNetwork(Body):
    """Name of a network, and whether it is external; some keys have no effect."""

    UNKNOWN = "network: {first!r} cannot be set; there are {sorted}"

    name = keys.name(default=ABSENT)
    is_external = keys.flag(key=OUTSIDE, default=ABSENT)
    admin_state_up = Key(_up, {"type": "boolean", "enum": [True]}, default=ABSENT)
    description = Ignored(ANYTHING)
    port_security_enabled = Ignored(ANYTHING)


class HostRoute(Body):
    """A route that DHCP offers."""

    UNKNOWN = MISSING = ROUTE.replace("{", "{{").replace("}", "}}")
    PREFIX = "host_routes."

    destination = Key(ip_validation.cidr, keys.RANGE, required=True)
    nexthop = keys.address(required=True)


ONE_ROUTE = HostRoute()


def _routes(value: object, field: str) -> tuple[tuple[object, object], ...]:
    entries = [] if value is None else value
    if (
        not isinstance(entries, list)
        or len(entries) > MOST_ROUTES
        or not all(isinstance(entry, dict) for entry in entries)
    ):
        raise InvalidInput(f"{ROUTE}, with at most {MOST_ROUTES} entries")
    routes = [ONE_ROUTE.read(entry) for entry in entries]
    return tuple((route["destination"], route["nexthop"]) for route in routes)


class ChangedSubnet(Body):
    """Properties of a subnet; one of a network that no project created has its name, and only allocation ranges."""

    UNKNOWN = "subnet: {first!r} cannot be set; there are {sorted}"

    allocation_pools = Key(_stretches, STRETCHES, default=ABSENT)
    name = Key(one_line, TEXT, default=ABSENT)
    gateway_ip = keys.address(default=ABSENT).or_null()
    dns_nameservers = Key(_addresses, shapes.listing(keys.ADDRESS, MOST_ENTRIES), default=ABSENT)
    host_routes = Key(_routes, shapes.listing(ONE_ROUTE.shape(), MOST_ROUTES), default=ABSENT)
    enable_dhcp = keys.flag(default=ABSENT)
    description = Ignored(ANYTHING)
    project_id = Ignored(ANYTHING)
    tenant_id = Ignored(ANYTHING)


class NewSubnet(ChangedSubnet):
    """Subnet of a network; one of a network that no project created has the name of the network."""

    allocation_pools = Key(_stretches, shapes.or_null(STRETCHES))
    network_id = keys.uuid(required=True)
    enable_dhcp = keys.flag().or_null()
    ip_version = Key(_version, {"type": "integer", "enum": [4]}, default=4)
    cidr = Key(_cidr, keys.RANGE, required=True)
    dns_nameservers = Key(_addresses, shapes.listing(keys.ADDRESS, MOST_ENTRIES)).or_null()


class ChangedFloatingIp(Body):
    """Port and fixed IP to which a floating IP leads, and its description; some keys have no effect."""

    UNKNOWN = "floatingip: {first!r} cannot be set; there are {sorted}"

    port_id = keys.uuid(default=ABSENT).or_null()
    fixed_ip_address = Key(_text_address, keys.ADDRESS).or_null()
    description = Key(_description, DESCRIPTION, default=ABSENT)
    project_id: Key = Ignored(ANYTHING)
    tenant_id: Key = Ignored(ANYTHING)
    dns_name = Ignored(ANYTHING)
    dns_domain = Ignored(ANYTHING)
    qos_policy_id = Ignored(ANYTHING)


class NewFloatingIp(ChangedFloatingIp):
    """Floating IP of a pool, and the port to which it leads."""

    project_id = project_key()
    tenant_id = project_key()
    floating_ip_address = Key(_text_address, keys.ADDRESS).or_null()
    floating_network_id = keys.uuid(required=True)
    subnet_id = Key(as_given, shapes.or_null(shapes.uuid()))


def _tags(value: object, field: str) -> list[str]:
    return sorted({validation.name(entry, field) for entry in _entries(value, field)})


class Tags(Body):
    """Tags of a floating IP."""

    UNKNOWN = MISSING = 'The body must be {{"tags": […]}}'

    tags = Key(_tags, shapes.listing(shapes.name(), MOST_ENTRIES), required=True)


class Quota(Body):
    """Limits of floating IPs, networks and ports of a project; -1: no limit."""

    UNKNOWN = "quota: {first!r} cannot be set; there are {sorted}"
    PREFIX = "quota: "

    force = keys.flag(named="force", default=False)
    check_limit = keys.flag(named="check_limit", default=False)
    floating_ips = keys.limit(key="floatingip", default=ABSENT)
    ports = keys.limit(key="port", default=ABSENT)
    networks = keys.limit(key="network", default=ABSENT)
    project_id = Ignored(ANYTHING)
    tenant_id = Ignored(ANYTHING)


def _below(key: str, content: Body) -> Below:
    """Return a body in which, as in Neutron, other keys beside the resource are ignored."""
    return Below(key, content, is_open=True)


CHANGED_NETWORK = _below("network", ChangedNetwork())
NETWORK, SUBNET = _below("network", NewNetwork()), _below("subnet", NewSubnet())
CHANGED_SUBNET, QUOTA = _below("subnet", ChangedSubnet()), _below("quota", Quota())
FLOATING, CHANGED_FLOATING = _below("floatingip", NewFloatingIp()), _below("floatingip", ChangedFloatingIp())
TAGS = Tags()


def project(values: Values) -> str | None:
    """Return the project in a body; other users than administrators may name only their own."""
    named = {values[key] for key in ("project_id", "tenant_id") if values[key] is not None}
    if len(named) > 1:
        raise InvalidInput("project_id and tenant_id mean the same; give one of them")
    if named - {caller().project_id} and not caller().is_admin:
        raise Forbidden("Only administrators may act for other projects.")
    return next(iter(named), None)
