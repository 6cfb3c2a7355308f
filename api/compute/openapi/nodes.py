"""OpenAPI descriptions of aggregates, hypervisors, services, hosts and zones."""

from api.compute.nodes.aggregate_bodies import AGGREGATE_ACTIONS, CHANGED, NEW
from api.compute.nodes.service_bodies import HOST_FORMS, SERVICE_FORMS
from api.schema.shapes import PAGE, Operation, answer, flag, text

AGGREGATE = "/os-aggregates/<aggregate_id>"

AGGREGATES = {
    ("GET", "/os-aggregates"): Operation({200: answer("aggregates", "array")}),
    ("POST", "/os-aggregates"): Operation({200: answer("aggregate")}, NEW.shape(), refuses=(409,)),
    ("GET", AGGREGATE): Operation({200: answer("aggregate")}),
    ("PUT", AGGREGATE): Operation({200: answer("aggregate")}, CHANGED.shape(), refuses=(409,)),
    ("DELETE", AGGREGATE): Operation({200: None}, refuses=(409,)),
    ("POST", f"{AGGREGATE}/action"): Operation({200: answer("aggregate")}, AGGREGATE_ACTIONS.shape(), refuses=(409,)),
}

HYPERVISOR = "/os-hypervisors/<node_id>"
MATCHING = "/os-hypervisors/<pattern>"
LIST = {**PAGE, "hypervisor_hostname_pattern": text(), "with_servers": flag()}

HYPERVISORS = {
    ("GET", "/os-hypervisors"): Operation({200: answer("hypervisors", "array")}, query=LIST, refuses=(404,)),
    ("GET", "/os-hypervisors/detail"): Operation({200: answer("hypervisors", "array")}, query=LIST, refuses=(404,)),
    ("GET", "/os-hypervisors/statistics"): Operation({200: answer("hypervisor_statistics")}),
    ("GET", HYPERVISOR): Operation({200: answer("hypervisor")}, query={"with_servers": flag()}),
    ("GET", f"{HYPERVISOR}/uptime"): Operation({200: answer("hypervisor")}),
    ("GET", f"{MATCHING}/search"): Operation({200: answer("hypervisors", "array")}),
    ("GET", f"{MATCHING}/servers"): Operation({200: answer("hypervisors", "array")}),
}

SERVICE = "/os-services/<service_id>"
AUDITS = "/os-instance_usage_audit_log"
SWITCHES = ("reboot", "shutdown", "startup")
SERVICE_CHANGE = {"anyOf": [form.shape() for form in SERVICE_FORMS]}
"""By id since 2.53; before that by host and binary, with the action in the path."""

SERVICES = {
    ("GET", "/os-services"): Operation({200: answer("services", "array")}, query={"binary": text(), "host": text()}),
    ("PUT", SERVICE): Operation({200: answer("service")}, SERVICE_CHANGE),
    ("DELETE", SERVICE): Operation({204: None}, refuses=(409,)),
    ("GET", "/os-hosts"): Operation({200: answer("hosts", "array")}, query={"zone": text()}, refuses=(404,)),
    ("GET", "/os-hosts/<name>"): Operation({200: answer("host", "array")}),
    ("PUT", "/os-hosts/<name>"): Operation(
        {200: answer("host", "string")},
        {"anyOf": [form.shape() for form in HOST_FORMS]},
        refuses=(409,),
    ),
    **{("GET", f"/os-hosts/<name>/{verb}"): Operation({}, refuses=(501,)) for verb in SWITCHES},
    ("GET", AUDITS): Operation({200: answer("instance_usage_audit_logs")}),
    ("GET", f"{AUDITS}/<before>"): Operation({200: answer("instance_usage_audit_log")}),
}

PLACES = {
    ("GET", "/os-availability-zone"): Operation({200: answer("availabilityZoneInfo", "array")}),
    ("GET", "/os-availability-zone/detail"): Operation({200: answer("availabilityZoneInfo", "array")}),
}

OPERATIONS = AGGREGATES | HYPERVISORS | SERVICES | PLACES
