"""OpenAPI descriptions of servers."""

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
    texts,
    thing,
    uuid,
)
from climate.compute.models.server import STATUSES, VM_STATES
from climate.compute.store.servers.lists import ORDERS

NETWORK: Schema = thing(("uuid",), uuid=uuid(), fixed_ip={"type": "string", "format": "ipv4"})
NETWORKS: Schema = {"anyOf": [one_of("auto", "none"), listing(NETWORK, 16)]}
DEVICE: Schema = {
    "type": "object",
    "properties": {"uuid": uuid(), "source_type": one_of("image"), "destination_type": one_of("local")},
    "required": ["source_type"],
}

ADDRESSES: Schema = {
    "accessIPv4": {"type": "string", "format": "ipv4"},
    "accessIPv6": {"type": "string", "format": "ipv6"},
}

DISK_CONFIG: Schema = {"OS-DCF:diskConfig": one_of("AUTO", "MANUAL")}

UNHEEDED: Schema = {
    **DISK_CONFIG,
    "adminPass": text(),
    "config_drive": flag(),
    "hostname": name(),
    "personality": listing({"type": "object"}, 0),
    "security_groups": listing(below("name", name()), 4),
    "tags": listing(name(60), 0),
    "trusted_image_certificates": listing(name(), 0),
}
"""Keys that clients send and that have no effect."""

HINTS: Schema = {
    "type": "object",
    "description": "Scheduler hints, also those of reservations.",
    "properties": {
        "reservation": {"anyOf": [text(), listing(text())]},
        "reserved": {"anyOf": [flag(), one_of("True", "False")]},
        "lease_params": text(),
        "group": name(),
        "same_host": {"anyOf": [uuid(), listing(uuid())]},
        "different_host": {"anyOf": [uuid(), listing(uuid())]},
        "build_near_host_ip": text(64),
        "cidr": text(4),
        "query": text(),
    },
}

BUILD: Schema = thing(
    id={"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
    launch_index=number(0, 999),
    project_id=name(),
    user_id=name(),
)
"""The build of a parent zone to which a server on an offer belongs."""

OF_ZONES: Schema = {
    "blob": text(65536),
    "zone_blob": text(65536),
    "reservation_id": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
    "zone_build": BUILD,
    "num_instances": number(1, 1000),
}
"""Keys of zones: the offer on which a server is built, and the number of servers of a build."""

NEW = thing(
    ("name", "flavorRef"),
    name=name(),
    imageRef=uuid(),
    flavorRef=name(),
    min_count=number(1, 100),
    max_count=number(1, 100),
    networks=NETWORKS,
    block_device_mapping_v2=listing(DEVICE, 1),
    metadata=texts(),
    availability_zone=name(),
    host=name(),
    hypervisor_hostname=name(),
    key_name=name(),
    user_data={"type": "string", "contentEncoding": "base64", "maxLength": 65535},
    description=or_null(text()),
    return_reservation_id=flag(),
    scheduler_hints=HINTS,
    **ADDRESSES,
    **OF_ZONES,
    **UNHEEDED,
)

BODY: Schema = {
    "type": "object",
    "properties": {"server": NEW, "os:scheduler_hints": HINTS, "OS-SCH-HNT:scheduler_hints": HINTS},
    "required": ["server"],
    "additionalProperties": False,
}

LIST = {
    **PAGE,
    "all_tenants": flag(),
    "project_id": text(64),
    "user_id": text(64),
    "name": text(64),
    "tenant_id": text(64),
    "status": one_of(*STATUSES),
    "vm_state": one_of(*sorted(set(VM_STATES.values()))),
    "task_state": text(40),
    "power_state": number(0, 7),
    "flavor": text(),
    "image": text(),
    "key_name": text(),
    "uuid": text(64),
    "description": text(),
    "availability_zone": text(),
    "host": text(),
    "node": text(),
    "tags": text(),
    "tags-any": text(),
    "ip": text(64),
    "reservation_id": text(40),
    "recurse_zones": flag(),
    "changes-since": text(40),
    "changes-before": text(40),
    "deleted": flag(),
    "locked": flag(),
    "sort_key": one_of(*ORDERS),
    "sort_dir": one_of("asc", "desc"),
}

ONE = "/servers/<server_id>"
METADATA = f"{ONE}/metadata"
ACTIONS = f"{ONE}/os-instance-actions"
CHANGE = thing(name=name(), description=or_null(text()), hostname=name(), **ADDRESSES, **DISK_CONFIG) | {
    "minProperties": 1
}

OPERATIONS = {
    ("GET", "/servers"): Operation({200: answer("servers", "array")}, query=LIST),
    ("GET", "/servers/detail"): Operation({200: answer("servers", "array")}, query=LIST),
    ("POST", "/servers"): Operation({202: {"type": "object", "minProperties": 1}}, BODY, refuses=(404, 409)),
    ("GET", ONE): Operation({200: answer("server")}),
    ("PUT", ONE): Operation({200: answer("server")}, below("server", CHANGE), refuses=(409,)),
    ("DELETE", ONE): Operation({204: None}, refuses=(409,)),
    ("GET", METADATA): Operation({200: answer("metadata")}),
    ("POST", METADATA): Operation({200: answer("metadata")}, below("metadata", texts()), refuses=(409,)),
    ("PUT", METADATA): Operation({200: answer("metadata")}, below("metadata", texts()), refuses=(409,)),
    ("GET", f"{METADATA}/<key>"): Operation({200: answer("meta")}),
    ("PUT", f"{METADATA}/<key>"): Operation({200: answer("meta")}, below("meta", texts(1)), refuses=(409,)),
    ("DELETE", f"{METADATA}/<key>"): Operation({204: None}, refuses=(409,)),
    ("GET", ACTIONS): Operation(
        {200: answer("instanceActions", "array")}, query={**PAGE, "changes-since": text(40), "changes-before": text(40)}
    ),
    ("GET", f"{ACTIONS}/<request_id>"): Operation({200: answer("instanceAction")}),
    ("GET", f"{ONE}/scheduling"): Operation({200: answer("scheduling")}),
    ("GET", f"{ONE}/diagnostics"): Operation({200: {"type": "object", "required": ["state", "node", "member"]}}),
}
