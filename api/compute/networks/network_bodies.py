"""Bodies of networks and floating IPs, as nova-network has them."""

from api.compute import common_body_keys as keys
from api.compute import validation
from api.compute.networks import ip_validation
from api.schema import shapes
from api.schema.body import Below, Body, Choice, Key, Values
from climate.compute.network.creation_request import CreationRequest
from climate.compute.network.operations.floating_pools import PoolFields
from climate.domain.errors import InvalidInput

ACTION = 'The body must be {"associate": {"project_id": …}} or {"disassociate": null}'
ADD = 'The body must be {{"id": the network\'s, or null}} and perhaps "project_id"'


class NewNetworks(Body):
    """Networks out of a range of addresses."""

    UNKNOWN = "network: {first!r} cannot be set; there are {sorted}"

    label = keys.name(required=True)
    cidr = keys.cidr(required=True)
    count = keys.count(1, 1024, key="num_networks", default=1).or_null()
    size = Key(
        lambda value, field: validation.count(value, field, 1, 1 << 16),
        shapes.number(8, 1 << 16),
        key="network_size",
    ).or_null()
    cidr_v6 = Key(ip_validation.cidr_v6, keys.RANGE_V6).or_null()
    gateway_v6 = Key(ip_validation.address_v6, keys.ADDRESS_V6).or_null()
    bridge = keys.interface().or_null()
    bridge_interface = keys.interface().or_null()
    vlan = keys.count(1, 4094).or_null()
    vlan_start = keys.count(1, 4094).or_null()
    vpn_start = keys.count(1, 65535).or_null()
    project_id = keys.name().or_null()
    dns1 = keys.address().or_null()
    dns2 = keys.address().or_null()
    manager = Key(validation.name, shapes.one_of("flat", "flat_dhcp", "vlan")).or_null()


class Owner(Body):
    """Project that gets a network."""

    UNKNOWN = "associate: {first!r} cannot be set; known is {sorted}"

    project_id = keys.name(required=True)


def _name_if_any(value: object, field: str) -> str | None:
    return validation.name(value, field) if value else None


class AddedNetwork(Body):
    """Network that a project gets; null: the first free one."""

    UNKNOWN = MISSING = ADD

    id = keys.uuid(required=True).or_null()
    project_id = Key(
        lambda value, field: validation.name(value, field) if value else None, shapes.or_null(shapes.name())
    )


class AllocatedFloatingIp(Body):
    """Pool of a floating IP; null: the default pool."""

    UNKNOWN = "{first!r} cannot be set; the only key is pool"

    pool = keys.name().or_null()


class Association(Body):
    """Fixed IP to which a floating IP leads."""

    UNKNOWN = "associate_address: {first!r} cannot be set; known is {sorted}"

    fixed_ip = keys.address(required=True)


def _range_and_text(value: object, field: str) -> tuple[object, str]:
    return ip_validation.stretch(value, field), str(value)


class NewFloatingIps(Body):
    """Range of floating IPs in a pool."""

    UNKNOWN = "floating_ips_bulk_create: {first!r} cannot be set; there are {sorted}"

    ip_range = Key(_range_and_text, keys.STRETCH, required=True)
    pool = Key(_name_if_any, shapes.or_null(shapes.name()))
    interface = Key(lambda value, field: ip_validation.interface(value or None, field), shapes.or_null(keys.INTERFACE))
    cidr = keys.cidr().or_null()
    gateway = keys.address().or_null()


class DroppedFloatingIps(Body):
    """Range of floating IPs that are deleted."""

    UNKNOWN = "The body must have the key {sorted} alone, not {first!r}"

    ip_range = Key(_range_and_text, keys.STRETCH, required=True)


NETWORK, ADDED, ACTIONS = (
    Below("network", NewNetworks()),
    AddedNetwork(),
    Choice({"associate": Owner(), "disassociate": None}, ACTION),
)
ALLOCATED, ASSOCIATION = AllocatedFloatingIp(), Below("associate_address", Association())
BULK, DROPPED = Below("floating_ips_bulk_create", NewFloatingIps()), DroppedFloatingIps()


def networks(body: Values) -> tuple[CreationRequest, str | None]:
    """Return the requested networks and their manager; None: the deployment's."""
    given = NETWORK.read(body)
    if given["vlan"] is not None and given["vlan_start"] is not None:
        raise InvalidInput("network: vlan and vlan_start mean the same; give one of them")
    if given["gateway_v6"] is not None and given["cidr_v6"] is None:
        raise InvalidInput("network: gateway_v6 needs cidr_v6")
    same = ("label", "cidr", "size", "cidr_v6", "gateway_v6", "bridge", "bridge_interface", "vpn_start", "project_id")
    wanted = CreationRequest(
        **{name: given[name] for name in same},
        count=1 if given["count"] is None else given["count"],
        dns=tuple(given[key] for key in ("dns1", "dns2") if given[key] is not None) or None,
        vlan_start=given["vlan_start"] if given["vlan"] is None else given["vlan"],
    )
    return wanted, given["manager"]


def pool_fields(values: Values) -> PoolFields:
    """Return the fields of a pool to which a range is added."""
    return PoolFields(values["cidr"], values["gateway"], values["interface"])
