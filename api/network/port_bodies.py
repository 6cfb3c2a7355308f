"""Bodies of ports in the Network API."""

import re

from api.compute import common_body_keys as keys
from api.compute import validation
from api.compute.networks import ip_validation
from api.network.bodies import ANYTHING, DESCRIPTION, TEXT, one_line, project_key
from api.request_context import caller
from api.schema import shapes
from api.schema.body import ABSENT, Below, Body, Ignored, Key, Values
from climate.compute.network.ports import FixedIp
from climate.domain.errors import Forbidden, InvalidInput

MOST_ADDRESSES, MOST_GROUPS = 5, 100
MAC = r"^[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}$"
HOST, PROFILE, VNIC = "binding:host_id", "binding:profile", "binding:vnic_type"
FIXED = 'fixed_ips must be like [{"subnet_id": "…", "ip_address": "10.0.0.3"}]'
OF_NETWORK = "network:"
"""Beginning of the owners that only services of the network have."""

PROPERTIES = ("name", "description", "admin_up", "device_id", "device_owner", "named_host")


def _mac(value: object, field: str) -> str:
    if not isinstance(value, str) or not re.match(MAC, value):
        raise InvalidInput(f"{field} must be like 02:16:3e:00:00:01")
    mac = value.lower()
    if int(mac[:2], 16) & 1 or mac == "00:00:00:00:00:00":
        raise InvalidInput(f"{field} must be the MAC address of one interface, not {mac}")
    return mac


class FixedAddress(Body):
    """An address of a port."""

    UNKNOWN = "fixed_ips: {first!r} cannot be set; there are {sorted}"
    PREFIX = "fixed_ips."

    subnet_id = keys.uuid().or_null()
    ip_address = Key(ip_validation.address, keys.ADDRESS).or_null()


ENTRY = FixedAddress()


def _fixed_ips(value: object, field: str) -> tuple[FixedIp, ...]:
    if not isinstance(value, list) or len(value) > MOST_ADDRESSES or not all(isinstance(one, dict) for one in value):
        raise InvalidInput(f"{FIXED}, with at most {MOST_ADDRESSES} entries")
    return tuple(_fixed_ip(ENTRY.read(one)) for one in value)


def _fixed_ip(entry: Values) -> FixedIp:
    if entry["subnet_id"] is None and entry["ip_address"] is None:
        raise InvalidInput(FIXED)
    return FixedIp(entry["subnet_id"], None if entry["ip_address"] is None else str(entry["ip_address"]))


def _groups(value: object, field: str) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MOST_GROUPS:
        raise InvalidInput(f"{field} must be a list of ids of security groups")
    return tuple(dict.fromkeys(validation.uuid(one, field) for one in value))


def _nothing(value: object, field: str) -> None:
    if value not in (None, [], {}):
        raise InvalidInput(f"{field} is not supported")


def _secure(value: object, field: str) -> None:
    if value is not None and not validation.flag(value, field):
        raise InvalidInput(f"{field} cannot be false: the source addresses of all ports are checked")


def _normal(value: object, field: str) -> None:
    if value not in (None, "normal"):
        raise InvalidInput(f"{field} must be normal")


class ChangedPort(Body):
    """Addresses, security groups and properties of a port."""

    UNKNOWN = "port: {first!r} cannot be set; there are {sorted}"

    name = Key(one_line, TEXT, default=ABSENT)
    description = Key(validation.description, DESCRIPTION, default=ABSENT)
    admin_up = keys.flag(key="admin_state_up", default=ABSENT)
    fixed_ips = Key(_fixed_ips, shapes.listing(ENTRY.shape(), MOST_ADDRESSES), default=ABSENT)
    security_groups = Key(_groups, shapes.listing(shapes.uuid(), MOST_GROUPS), default=ABSENT)
    device_id = Key(one_line, TEXT, default=ABSENT)
    device_owner = Key(one_line, TEXT, default=ABSENT)
    named_host = Key(one_line, TEXT, key=HOST, default=ABSENT)
    profile = Key(_nothing, {"type": "object", "maxProperties": 0}, key=PROFILE)
    vnic_type = Key(_normal, shapes.or_null(shapes.one_of("normal")), key=VNIC)
    port_security_enabled = Key(_secure, {"type": "boolean", "enum": [True]})
    allowed_address_pairs = Key(_nothing, shapes.listing(ANYTHING, 0))
    extra_dhcp_opts = Key(_nothing, shapes.listing(ANYTHING, 0))
    qos_policy_id = Key(_nothing, {"type": "null"})
    dns_name = Ignored(ANYTHING)
    dns_domain = Ignored(ANYTHING)


class NewPort(ChangedPort):
    """Network of a port, its addresses, security groups and properties."""

    network_id = keys.uuid(required=True)
    mac_address = Key(_mac, shapes.text(17, pattern=MAC)).or_null()
    project_id = project_key()
    tenant_id = project_key()


NEW = NewPort()
PORT, CHANGED_PORT = Below("port", NEW, is_open=True), Below("port", ChangedPort(), is_open=True)


def properties(values: Values) -> Values:
    """Return the columns of a port in a body; others than administrators may not bind it to a host. Forbidden."""
    is_admin = caller().is_admin
    if values.get("named_host") and not is_admin:
        raise Forbidden(f"Only administrators set {HOST}.")
    if str(values.get("device_owner", "")).startswith(OF_NETWORK) and not is_admin:
        raise Forbidden(f"Only administrators set a device_owner that begins with {OF_NETWORK}")
    return {name: "" if values[name] is None else values[name] for name in PROPERTIES if name in values}
