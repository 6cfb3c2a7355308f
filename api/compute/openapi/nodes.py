"""OpenAPI descriptions of aggregates, hypervisors, services, hosts and zones."""

from api.compute.openapi.aggregate_bodies import CHANGED, NEW
from api.compute.openapi.shapes import PAGE, Operation, answer, below, flag, name, one_of, or_null, text, thing

ENABLING = one_of("enable", "disable")

METADATA = {
    "type": "object",
    "additionalProperties": or_null(text()),
    "propertyNames": {"minLength": 1, "maxLength": 255},
    "maxProperties": 128,
}

ACTION = {
    "anyOf": [
        below("add_host", below("host", name())),
        below("remove_host", below("host", name())),
        below("set_metadata", below("metadata", METADATA)),
    ]
}

AGGREGATE = "/os-aggregates/<aggregate_id>"

AGGREGATES = {
    ("GET", "/os-aggregates"): Operation({200: answer("aggregates", "array")}),
    ("POST", "/os-aggregates"): Operation({200: answer("aggregate")}, below("aggregate", NEW.shape()), refuses=(409,)),
    ("GET", AGGREGATE): Operation({200: answer("aggregate")}),
    ("PUT", AGGREGATE): Operation(
        {200: answer("aggregate")}, below("aggregate", CHANGED.shape() | {"minProperties": 1}), refuses=(409,)
    ),
    ("DELETE", AGGREGATE): Operation({200: None}, refuses=(409,)),
    ("POST", f"{AGGREGATE}/action"): Operation({200: answer("aggregate")}, ACTION, refuses=(409,)),
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
SERVICE_CHANGE = {
    "anyOf": [
        thing(("status",), status=one_of("disabled"), disabled_reason=or_null(name()), forced_down=flag()),
        thing(("status",), status=one_of("enabled"), forced_down=flag()),
        thing(("forced_down",), forced_down=flag()),
        thing(
            ("host", "binary"),
            host=name(),
            binary=one_of("nova-compute"),
            disabled_reason=name(),
            forced_down=flag(),
        ),
    ]
}
"""By id since 2.53; before that by host and binary, with the action in the path."""

HOST_CHANGE = {
    "anyOf": [
        thing(("maintenance_mode",), maintenance_mode=one_of("enable"), reason=name(), status=ENABLING),
        thing(("maintenance_mode",), maintenance_mode=one_of("disable"), status=ENABLING),
        thing(("status",), status=ENABLING),
    ]
}

SERVICES = {
    ("GET", "/os-services"): Operation({200: answer("services", "array")}, query={"binary": text(), "host": text()}),
    ("PUT", SERVICE): Operation({200: answer("service")}, SERVICE_CHANGE),
    ("DELETE", SERVICE): Operation({204: None}, refuses=(409,)),
    ("GET", "/os-hosts"): Operation({200: answer("hosts", "array")}, query={"zone": text()}, refuses=(404,)),
    ("GET", "/os-hosts/<name>"): Operation({200: answer("host", "array")}),
    ("PUT", "/os-hosts/<name>"): Operation(
        {200: answer("host", "string")},
        HOST_CHANGE,
        refuses=(409,),
    ),
}

PLACES = {
    ("GET", "/os-availability-zone"): Operation({200: answer("availabilityZoneInfo", "array")}),
    ("GET", "/os-availability-zone/detail"): Operation({200: answer("availabilityZoneInfo", "array")}),
}

OPERATIONS = AGGREGATES | HYPERVISORS | SERVICES | PLACES
