"""OpenAPI descriptions of limits, quotas and server groups."""

from api.compute.projects.project_bodies import GROUP, GROUP_TO_63, QUOTA_CLASS
from api.compute.projects.project_bodies import QUOTA as QUOTA_BODY
from api.schema.shapes import PAGE, Operation, answer, flag, number, text

QUOTA = "/os-quota-sets/<project_id>"
CLASS = "/os-quota-class-sets/<name>"
GROUPS = {"anyOf": [form.shape() for form in (GROUP_TO_63, GROUP)]}

USAGE = "/os-simple-tenant-usage"
PERIOD = {**PAGE, "start": text(40), "end": text(40)}

OPERATIONS = {
    ("GET", USAGE): Operation({200: answer("tenant_usages", "array")}, query={**PERIOD, "detailed": text(1)}),
    ("GET", f"{USAGE}/<project_id>"): Operation({200: answer("tenant_usage")}, query=PERIOD),
    ("GET", "/extensions"): Operation({200: answer("extensions", "array")}),
    ("GET", "/extensions/<alias>"): Operation({200: answer("extension")}),
    ("GET", "/limits"): Operation({200: answer("limits")}, query={"tenant_id": text(), "reserved": flag()}),
    ("GET", QUOTA): Operation({200: answer("quota_set")}),
    ("GET", f"{QUOTA}/defaults"): Operation({200: answer("quota_set")}),
    ("GET", f"{QUOTA}/detail"): Operation({200: answer("quota_set")}),
    ("PUT", QUOTA): Operation({200: answer("quota_set")}, QUOTA_BODY.shape(), refuses=(409,)),
    ("DELETE", QUOTA): Operation({202: None}),
    ("GET", CLASS): Operation({200: answer("quota_class_set")}),
    ("PUT", CLASS): Operation({200: answer("quota_class_set")}, QUOTA_CLASS.shape()),
    ("GET", "/os-server-groups"): Operation(
        {200: answer("server_groups", "array")}, query={**PAGE, "offset": number(), "all_projects": flag()}
    ),
    ("POST", "/os-server-groups"): Operation({200: answer("server_group")}, GROUPS),
    ("GET", "/os-server-groups/<group_id>"): Operation({200: answer("server_group")}),
    ("DELETE", "/os-server-groups/<group_id>"): Operation({204: None}, refuses=(409,)),
}
