"""Bodies of security groups and their rules."""

from api.compute import common_body_keys as keys
from api.compute import validation
from api.compute.networks import security_rule_validation
from api.schema import shapes
from api.schema.body import ABSENT, Below, Body, Ignored, Key, Values
from climate.compute.models.security_group import DIRECTIONS, VERSIONS, SecurityRule
from climate.domain.errors import InvalidInput

ANYTHING: shapes.Schema = {}
HIGHEST_PORT = 65535


def _description(value: object, field: str) -> str:
    return validation.description(value, field) or ""


def _direction(value: object, field: str) -> str:
    if value not in DIRECTIONS:
        raise InvalidInput(f"{field} must be {' or '.join(DIRECTIONS)}, not {str(value)[:40]!r}")
    return str(value)


def _version(value: object, field: str) -> int:
    if not isinstance(value, str) or value not in VERSIONS:
        raise InvalidInput(f"{field} must be {' or '.join(VERSIONS)}, not {str(value)[:40]!r}")
    return VERSIONS[value]


def _number(value: object, field: str) -> int:
    try:
        return validation.count(value, field, -1, HIGHEST_PORT)
    except InvalidInput as refusal:
        raise InvalidInput(f"Invalid value for port {str(value)[:40]}: {refusal}") from None


def _remote_group(value: object, field: str) -> str:
    return validation.path_id(str(value), "Security group")


class ChangedGroup(Body):
    """Name and description of a security group."""

    UNKNOWN = "security_group: {first!r} cannot be set; there are {sorted}"

    name = keys.name(default=ABSENT)
    description = Key(_description, shapes.or_null(shapes.text()), default=ABSENT)
    stateful = Ignored(ANYTHING)


class NewGroup(ChangedGroup):
    """Security group of a project."""

    name = keys.name(required=True)
    project_id = Key(lambda value, field: value or None, shapes.or_null(shapes.name()))
    tenant_id = Key(lambda value, field: value or None, shapes.or_null(shapes.name()))


class NewRule(Body):
    """Traffic that a security group allows."""

    UNKNOWN = "security_group_rule: {first!r} cannot be set; there are {sorted}"

    group_id = keys.uuid(key="security_group_id", required=True)
    direction = Key(_direction, shapes.one_of(*DIRECTIONS), required=True)
    version = Key(_version, shapes.one_of(*VERSIONS), key="ethertype", default="IPv4")
    protocol = Key(security_rule_validation.protocol, shapes.or_null(shapes.text(12)))
    first = Key(_number, shapes.number(-1, HIGHEST_PORT), key="port_range_min").or_null()
    last = Key(_number, shapes.number(-1, HIGHEST_PORT), key="port_range_max").or_null()
    remote_cidr = Key(security_rule_validation.cidr, shapes.or_null(shapes.text(64)), key="remote_ip_prefix")
    # As in Neutron, a group that cannot exist is one that is not found.
    remote_group_id = Key(_remote_group, shapes.uuid()).or_null()
    description = Key(_description, shapes.or_null(shapes.text()), default=ABSENT)
    project_id = Ignored(ANYTHING)
    tenant_id = Ignored(ANYTHING)


def rule(values: Values) -> SecurityRule:
    """Return the rule of a body; InvalidInput for values that do not fit together."""
    keys_of_rule = ("group_id", "direction", "version", "protocol", "first", "last", "remote_cidr", "remote_group_id")
    wanted = {key: values[key] for key in keys_of_rule}
    return security_rule_validation.checked(SecurityRule("", **wanted, description=values.get("description", "")))


GROUP = Below("security_group", NewGroup(), is_open=True)
CHANGED_GROUP = Below("security_group", ChangedGroup(), is_open=True)
RULE = Below("security_group_rule", NewRule(), is_open=True)
