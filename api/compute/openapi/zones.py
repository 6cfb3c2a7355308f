"""Routes of child zones, described."""

from api.compute.openapi.shapes import Operation, answer, below, flag, name, number, thing

WEIGHT = {"type": "number", "minimum": -1e9, "maximum": 1e9}
FIELDS = {
    "api_url": {"type": "string", "minLength": 1, "maxLength": 255, "format": "uri"},
    "username": name(),
    "password": {"type": "string", "minLength": 1, "maxLength": 1024},
    "weight_offset": WEIGHT,
    "weight_scale": WEIGHT,
}
PART = {"offset": number(), "limit": number()}
ZONE = "/zones/<zone_id>"

OPERATIONS = {
    ("GET", "/zones"): Operation({200: answer("zones", "array")}, query=PART),
    ("GET", "/zones/detail"): Operation({200: answer("zones", "array")}, query=PART),
    ("GET", "/zones/info"): Operation({200: answer("zone")}),
    ("POST", "/zones"): Operation(
        {200: answer("zone")}, below("zone", thing(("api_url", "username", "password"), **FIELDS)), refuses=(409,)
    ),
    ("GET", ZONE): Operation({200: answer("zone")}),
    ("PUT", ZONE): Operation({200: answer("zone")}, below("zone", thing(**FIELDS)), refuses=(409,)),
    ("DELETE", ZONE): Operation({200: {"type": "object", "maxProperties": 0}}, query={"force": flag()}, refuses=(409,)),
}
