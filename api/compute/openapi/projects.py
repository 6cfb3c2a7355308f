"""OpenAPI descriptions of limits, quotas and server groups."""

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
)

QUOTA = "/os-quota-sets/<project_id>"
OF_NETWORKS = ("fixed_ips", "floating_ips")
"""Until 2.36."""

LIMITS = ("instances", "cores", "ram", "key_pairs", "server_groups", "server_group_members", *OF_NETWORKS)
LIMIT = number(-1)
CHANGE: Schema = {
    "type": "object",
    "properties": {**dict.fromkeys(LIMITS, LIMIT), "force": flag(), "tenant_id": text()},
    "additionalProperties": False,
}

POLICY = one_of("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity")
GROUP = {
    "anyOf": [
        thing(("name", "policies"), name=name(), policies=listing(POLICY, 1) | {"minItems": 1}),
        thing(("name", "policy"), name=name(), policy=POLICY, rules=or_null(thing(max_server_per_host=number(1)))),
    ]
}

OPERATIONS = {
    ("GET", "/limits"): Operation({200: answer("limits")}, query={"tenant_id": text(), "reserved": flag()}),
    ("GET", QUOTA): Operation({200: answer("quota_set")}),
    ("GET", f"{QUOTA}/defaults"): Operation({200: answer("quota_set")}),
    ("GET", f"{QUOTA}/detail"): Operation({200: answer("quota_set")}),
    ("PUT", QUOTA): Operation({200: answer("quota_set")}, below("quota_set", CHANGE), refuses=(409,)),
    ("DELETE", QUOTA): Operation({202: None}),
    ("GET", "/os-server-groups"): Operation(
        {200: answer("server_groups", "array")}, query={**PAGE, "offset": number(), "all_projects": flag()}
    ),
    ("POST", "/os-server-groups"): Operation({200: answer("server_group")}, below("server_group", GROUP)),
    ("GET", "/os-server-groups/<group_id>"): Operation({200: answer("server_group")}),
    ("DELETE", "/os-server-groups/<group_id>"): Operation({204: None}, refuses=(409,)),
}
