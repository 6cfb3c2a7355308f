"""OpenAPI descriptions of child zones."""

from api.compute.openapi.shapes import Operation, answer, below, flag, number
from api.compute.openapi.zone_bodies import ZONE as CHILD

CHANGE = {**CHILD.shape(), "required": []}
PART = {"offset": number(), "limit": number()}
ZONE = "/zones/<zone_id>"

OPERATIONS = {
    ("GET", "/zones"): Operation({200: answer("zones", "array")}, query=PART),
    ("GET", "/zones/detail"): Operation({200: answer("zones", "array")}, query=PART),
    ("GET", "/zones/info"): Operation({200: answer("zone")}),
    ("POST", "/zones"): Operation({200: answer("zone")}, below("zone", CHILD.shape()), refuses=(409,)),
    ("GET", ZONE): Operation({200: answer("zone")}),
    ("PUT", ZONE): Operation({200: answer("zone")}, below("zone", CHANGE), refuses=(409,)),
    ("DELETE", ZONE): Operation({200: {"type": "object", "maxProperties": 0}}, query={"force": flag()}, refuses=(409,)),
}
