"""OpenAPI descriptions of all routes below /network/v2.0."""

from api.compute.openapi import DocumentedApi
from api.network import bulk
from api.network.bodies import CHANGED_FLOATING, CHANGED_NETWORK, CHANGED_SUBNET, FLOATING, NETWORK, QUOTA, SUBNET, TAGS
from api.network.port_bodies import CHANGED_PORT, PORT
from api.network.security_group_bodies import CHANGED_GROUP, GROUP, RULE
from api.schema.shapes import PAGE, Operation, Schema, answer

PREFIX = "/network/v2.0"

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
    ("POST", "/networks"): Operation({201: answer("network")}, bulk.shape("network", NETWORK), refuses=(409,)),
    ("PUT", "/networks/<network_id>"): Operation({200: answer("network")}, CHANGED_NETWORK.shape(), refuses=(409,)),
    ("DELETE", "/networks/<network_id>"): Operation({204: None}, refuses=(409,)),
    **_looked_at("/subnets", "subnets", "subnet", "subnet_id"),
    ("POST", "/subnets"): Operation({201: answer("subnet")}, bulk.shape("subnet", SUBNET), refuses=(404, 409)),
    ("PUT", "/subnets/<subnet_id>"): Operation(
        {200: answer("subnet")},
        CHANGED_SUBNET.shape(),
        refuses=(409,),
    ),
    ("DELETE", "/subnets/<subnet_id>"): Operation({204: None}, refuses=(409,)),
    **_looked_at("/ports", "ports", "port", "port_id"),
    ("POST", "/ports"): Operation({201: answer("port")}, bulk.shape("port", PORT), refuses=(404, 409)),
    ("PUT", "/ports/<port_id>"): Operation({200: answer("port")}, CHANGED_PORT.shape(), refuses=(409,)),
    ("DELETE", "/ports/<port_id>"): Operation({204: None}, refuses=(409,)),
    **_looked_at("/floatingips", "floatingips", "floatingip", "floating_id"),
    ("POST", "/floatingips"): Operation({201: answer("floatingip")}, FLOATING.shape(), refuses=(404, 409)),
    ("PUT", "/floatingips/<floating_id>"): Operation(
        {200: answer("floatingip")}, CHANGED_FLOATING.shape(), refuses=(409,)
    ),
    ("PUT", "/floatingips/<floating_id>/tags"): Operation({200: answer("tags", "array")}, TAGS.shape()),
    ("DELETE", "/floatingips/<floating_id>"): Operation({204: None}, refuses=(409,)),
    ("GET", QUOTAS): Operation({200: answer("quota")}),
    ("GET", f"{QUOTAS}/default"): Operation({200: answer("quota")}),
    ("GET", f"{QUOTAS}/details"): Operation({200: answer("quota")}),
    ("GET", f"{QUOTAS}/details.json"): Operation({200: answer("quota")}),
    ("PUT", QUOTAS): Operation({200: answer("quota")}, QUOTA.shape()),
    ("DELETE", QUOTAS): Operation({204: None}),
    **_looked_at("/security-groups", "security_groups", "security_group", "group_id"),
    ("POST", "/security-groups"): Operation({201: answer("security_group")}, GROUP.shape(), refuses=(409,)),
    ("PUT", "/security-groups/<group_id>"): Operation(
        {200: answer("security_group")}, CHANGED_GROUP.shape(), refuses=(409,)
    ),
    ("DELETE", "/security-groups/<group_id>"): Operation({204: None}, refuses=(409,)),
    **_looked_at("/security-group-rules", "security_group_rules", "security_group_rule", "rule_id"),
    ("POST", "/security-group-rules"): Operation(
        {201: answer("security_group_rule")}, RULE.shape(), refuses=(404, 409)
    ),
    ("DELETE", "/security-group-rules/<rule_id>"): Operation({204: None}),
    **_looked_at("/network-ip-availabilities", "network_ip_availabilities", "network_ip_availability", "network_id"),
    **_looked_at("/agents", "agents", "agent", "agent_id"),
    ("GET", "/extensions"): Operation({200: answer("extensions", "array")}),
    ("GET", "/extensions/<alias>"): Operation({200: answer("extension")}),
}

NETWORK_API = DocumentedApi("climate: network", "2.0", PREFIX, OPERATIONS, REFUSAL, (400,))
