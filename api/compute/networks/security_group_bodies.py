"""Bodies of security groups as Compute had them below 2.36."""

from api.compute import common_body_keys as keys
from api.compute import validation
from api.compute.networks.security_rule_validation import checked, cidr, protocol
from api.schema import shapes
from api.schema.body import Below, Body, Key, Values
from climate.compute.models.security_group import INGRESS, SecurityRule
from climate.compute.network.render.port_filter import ICMP
from climate.domain.errors import InvalidInput
from climate.whole_numbers import whole_number


def _name(value: object, field: str) -> str:
    """Return a name as it was given: spaces at its ends belong to it, as in Nova."""
    validation.name(value, field)
    return str(value)


def _description(value: object, field: str) -> str:
    return validation.description(value, field) or ""


def _port(value: object, field: str) -> int:
    text = str(value)
    number = -1 if text == "-1" else whole_number(text)
    if isinstance(value, bool) or number is None:
        raise InvalidInput(f"{field} must be a number, not {text[:40]!r}")
    return validation.count(number, field, -1, 65535)


PORT = {"anyOf": [shapes.number(-1, 65535), shapes.text(6, pattern="^-?[0-9]+$")]}


class Group(Body):
    """Name and description of a security group."""

    UNKNOWN = "security_group: {first!r} cannot be set; there are {sorted}"

    name = Key(_name, shapes.name(), required=True)
    description = Key(_description, shapes.or_null(shapes.text()), default="")


class Rule(Body):
    """Incoming traffic that a security group allows."""

    UNKNOWN = "security_group_rule: {first!r} cannot be set; there are {sorted}"

    parent_group_id = keys.uuid(required=True)
    protocol = Key(protocol, shapes.or_null(shapes.text(12)), key="ip_protocol")
    first = Key(_port, PORT, key="from_port").or_null()
    last = Key(_port, PORT, key="to_port").or_null()
    cidr = Key(cidr, shapes.or_null(shapes.text(64)))
    group_id = keys.uuid().or_null()


GROUP, RULE = Below("security_group", Group()), Below("security_group_rule", Rule())


def rule(values: Values) -> SecurityRule:
    """Return the rule of a body: of IPv6 if its range is; InvalidInput as the Network API."""
    if values["protocol"] is None and values["group_id"] is None:
        raise InvalidInput("ip_protocol must be tcp, udp or icmp, or group_id must name a group")
    remote = values["cidr"] if values["group_id"] is None else None
    is_icmp = values["protocol"] in ("icmp", str(ICMP))
    ports = {key: None if is_icmp and values[key] == -1 else values[key] for key in ("first", "last")}
    if values["protocol"] is None:
        ports = {"first": None, "last": None}
    return checked(
        SecurityRule(
            "",
            values["parent_group_id"],
            INGRESS,
            6 if remote is not None and ":" in remote else 4,
            values["protocol"],
            ports["first"],
            ports["last"],
            remote,
            values["group_id"],
        )
    )
