"""OpenAPI descriptions of builds over zones."""

from api.compute.openapi.servers import BODY
from api.compute.openapi.shapes import Operation, Schema, answer, name, number, thing

OBJECT: Schema = {"type": "object"}

SPEC: Schema = {
    "type": "object",
    "description": "A request spec, as an object or as a text of JSON.",
    "properties": {
        "num_instances": number(1, 1000),
        "instance_type": {
            "type": "object",
            "properties": {
                "name": name(),
                "vcpus": number(),
                "memory_mb": number(),
                "local_gb": number(),
                "ephemeral_gb": number(),
                "swap_mb": number(),
            },
        },
        "instance_properties": {"type": "object", "properties": {"image_name": name(), "availability_zone": name()}},
        "scheduler_hints": OBJECT,
        "filter": name(),
    },
}

RESERVATION: Schema = thing(("reservation_id",), reservation_id=name(64))
BUILD = "/os-zone-builds/<reservation_id>"

OPERATIONS = {
    ("POST", "/zones/select"): Operation({200: answer("weights", "array")}, SPEC, refuses=(409,)),
    ("POST", "/zones/boot"): Operation({200: RESERVATION}, BODY, refuses=(404, 409)),
    ("GET", "/zones/builds/<build_id>"): Operation({200: answer("servers", "array")}),
    ("GET", "/os-zone-builds"): Operation({200: answer("builds", "array")}),
    ("GET", BUILD): Operation({200: answer("build")}),
}
