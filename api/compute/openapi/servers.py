"""OpenAPI descriptions of servers."""

from api.compute.servers.admin.external_events import EVENTS
from api.compute.servers.attachment_bodies import META
from api.compute.servers.attachment_bodies import METADATA as METADATA_BODY
from api.compute.servers.server_bodies import CHANGED, NEW
from api.compute.servers.tag_bodies import TAGS as TAGS_BODY
from api.schema.shapes import PAGE, Operation, answer, flag, number, one_of, text
from climate.compute.models.server import STATUSES, VM_STATES
from climate.compute.store.servers.lists import ORDERS

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
    "not-tags": text(),
    "not-tags-any": text(),
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
TAGS = f"{ONE}/tags"
ACTIONS = f"{ONE}/os-instance-actions"
OPERATIONS = {
    ("GET", "/servers"): Operation({200: answer("servers", "array")}, query=LIST),
    ("GET", "/servers/detail"): Operation({200: answer("servers", "array")}, query=LIST),
    ("POST", "/servers"): Operation({202: {"type": "object", "minProperties": 1}}, NEW.shape(), refuses=(404, 409)),
    ("GET", ONE): Operation({200: answer("server")}),
    ("PUT", ONE): Operation({200: answer("server")}, CHANGED.shape(), refuses=(409,)),
    ("DELETE", ONE): Operation({204: None}, refuses=(409,)),
    ("GET", METADATA): Operation({200: answer("metadata")}),
    ("POST", METADATA): Operation({200: answer("metadata")}, METADATA_BODY.shape(), refuses=(409,)),
    ("PUT", METADATA): Operation({200: answer("metadata")}, METADATA_BODY.shape(), refuses=(409,)),
    ("GET", f"{METADATA}/<key>"): Operation({200: answer("meta")}),
    ("PUT", f"{METADATA}/<key>"): Operation({200: answer("meta")}, META.shape(), refuses=(409,)),
    ("DELETE", f"{METADATA}/<key>"): Operation({204: None}, refuses=(409,)),
    ("GET", TAGS): Operation({200: answer("tags", "array")}),
    ("PUT", TAGS): Operation({200: answer("tags", "array")}, TAGS_BODY.shape()),
    ("DELETE", TAGS): Operation({204: None}),
    ("GET", f"{TAGS}/<tag>"): Operation({204: None}),
    ("PUT", f"{TAGS}/<tag>"): Operation({201: None, 204: None}),
    ("DELETE", f"{TAGS}/<tag>"): Operation({204: None}),
    ("GET", ACTIONS): Operation(
        {200: answer("instanceActions", "array")}, query={**PAGE, "changes-since": text(40), "changes-before": text(40)}
    ),
    ("GET", f"{ACTIONS}/<request_id>"): Operation({200: answer("instanceAction")}),
    ("GET", f"{ONE}/os-server-password"): Operation({200: answer("password", "string")}),
    ("DELETE", f"{ONE}/os-server-password"): Operation({204: None}),
    ("GET", f"{ONE}/scheduling"): Operation({200: answer("scheduling")}),
    ("POST", "/os-server-external-events"): Operation(
        {200: answer("events", "array"), 207: answer("events", "array")}, EVENTS.shape()
    ),
    ("GET", f"{ONE}/diagnostics"): Operation({200: {"type": "object", "required": ["state"]}}, refuses=(409,)),
}
