"""OpenAPI descriptions of all routes below /network/v2.0."""

from api.compute.openapi import Face
from api.compute.openapi.shapes import (
    PAGE,
    Operation,
    Schema,
    answer,
    below,
    flag,
    listing,
    name,
    number,
    one_of,
    or_null,
    text,
    thing,
    uuid,
)
from api.network import networks, views

PREFIX = "/network/v2.0"

ADDRESS: Schema = {"type": "string", "format": "ipv4"}
RANGE = text(64, pattern=r"^[0-9]{1,3}([.][0-9]{1,3}){3}/[0-9]{1,2}$")
INTERFACE = text(15, pattern=r"^[A-Za-z0-9_.:-]+$") | {"minLength": 1}
ANYTHING: Schema = {}
STRETCHES = listing(thing(("start", "end"), start=ADDRESS, end=ADDRESS), 100)

NETWORK: Schema = thing(
    ("name",),
    **{
        "name": name(),
        "shared": flag(),
        networks.OUTSIDE: flag(),
        networks.TYPE: one_of(views.FLAT_TYPE, views.VLAN_TYPE),
        networks.SEGMENT: number(1, 4094),
        networks.PHYSICAL: or_null(INTERFACE),
        "project_id": or_null(name()),
        "tenant_id": or_null(name()),
    },
    **dict.fromkeys(sorted(networks.IGNORED), ANYTHING),
)

SUBNET: Schema = thing(
    ("network_id", "cidr"),
    network_id=uuid(),
    cidr=RANGE,
    ip_version={"type": "integer", "enum": [4]},
    gateway_ip=or_null(ADDRESS),
    enable_dhcp=or_null(flag()),
    dns_nameservers=or_null(listing(ADDRESS, 100)),
    allocation_pools=or_null(STRETCHES),
    **dict.fromkeys(("name", "description", "project_id", "tenant_id"), ANYTHING),
)

NAMES = dict.fromkeys(("dns_name", "dns_domain", "qos_policy_id"), ANYTHING)
FLOATING: Schema = thing(
    ("floating_network_id",),
    floating_network_id=uuid(),
    subnet_id=or_null(uuid()),
    floating_ip_address=or_null(ADDRESS),
    port_id=or_null(uuid()),
    fixed_ip_address=or_null(ADDRESS),
    description=or_null(text(pattern=r"^[^\x00-\x1f\x7f\x85\u2028\u2029]*$")),
    project_id=or_null(name()),
    tenant_id=or_null(name()),
    **NAMES,
)
CHANGE: Schema = thing(
    port_id=or_null(uuid()),
    fixed_ip_address=or_null(ADDRESS),
    description=or_null(text(pattern=r"^[^\x00-\x1f\x7f\x85\u2028\u2029]*$")),
    project_id=ANYTHING,
    tenant_id=ANYTHING,
    **NAMES,
)
QUOTA: Schema = thing(floatingip=number(-1), force=flag(), check_limit=flag(), project_id=ANYTHING, tenant_id=ANYTHING)

REFUSAL: Schema = {
    "type": "object",
    "properties": {
        "NeutronError": {
            "type": "object",
            "properties": {key: {"type": "string"} for key in ("type", "message", "detail")},
            "required": ["type", "message", "detail"],
        },
        "error": {"type": "object", "description": "If the token is missing or invalid."},
    },
    "minProperties": 1,
}


def _looked_at(path: str, many: str, one: str, key: str) -> dict[tuple[str, str], Operation]:
    """Return the operations of a list and of one of its entries."""
    return {
        ("GET", path): Operation({200: answer(many, "array")}, query=PAGE),
        ("GET", f"{path}/<{key}>"): Operation({200: answer(one)}),
    }


QUOTAS = "/quotas/<project_id>"

OPERATIONS = {
    **_looked_at("/networks", "networks", "network", "network_id"),
    ("POST", "/networks"): Operation({201: answer("network")}, below("network", NETWORK), refuses=(409,)),
    ("DELETE", "/networks/<network_id>"): Operation({204: None}, refuses=(409,)),
    **_looked_at("/subnets", "subnets", "subnet", "subnet_id"),
    ("POST", "/subnets"): Operation({201: answer("subnet")}, below("subnet", SUBNET), refuses=(404, 409)),
    ("PUT", "/subnets/<subnet_id>"): Operation(
        {200: answer("subnet")},
        below("subnet", thing(allocation_pools=STRETCHES, name=ANYTHING, description=ANYTHING)),
        refuses=(409,),
    ),
    ("DELETE", "/subnets/<subnet_id>"): Operation({}, refuses=(409,)),
    **_looked_at("/ports", "ports", "port", "port_id"),
    **_looked_at("/floatingips", "floatingips", "floatingip", "floating_id"),
    ("POST", "/floatingips"): Operation({201: answer("floatingip")}, below("floatingip", FLOATING), refuses=(404, 409)),
    ("PUT", "/floatingips/<floating_id>"): Operation(
        {200: answer("floatingip")}, below("floatingip", CHANGE), refuses=(409,)
    ),
    ("PUT", "/floatingips/<floating_id>/tags"): Operation(
        {200: answer("tags", "array")}, thing(("tags",), tags=listing(name(), 100))
    ),
    ("DELETE", "/floatingips/<floating_id>"): Operation({204: None}, refuses=(409,)),
    ("GET", QUOTAS): Operation({200: answer("quota")}),
    ("GET", f"{QUOTAS}/default"): Operation({200: answer("quota")}),
    ("GET", f"{QUOTAS}/details"): Operation({200: answer("quota")}),
    ("GET", f"{QUOTAS}/details.json"): Operation({200: answer("quota")}),
    ("PUT", QUOTAS): Operation({200: answer("quota")}, below("quota", QUOTA)),
    ("DELETE", QUOTAS): Operation({204: None}),
    **_looked_at("/security-groups", "security_groups", "security_group", "group_id"),
    **_looked_at("/security-group-rules", "security_group_rules", "security_group_rule", "rule_id"),
    **_looked_at("/network-ip-availabilities", "network_ip_availabilities", "network_ip_availability", "network_id"),
    **_looked_at("/agents", "agents", "agent", "agent_id"),
    ("GET", "/extensions"): Operation({200: answer("extensions", "array")}),
    ("GET", "/extensions/<alias>"): Operation({200: answer("extension")}),
}

FACE = Face("climate: network", "2.0", PREFIX, OPERATIONS, REFUSAL, (400,))
