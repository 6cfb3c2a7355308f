"""OpenAPI descriptions of child zones."""

from api.compute.zones.zone_bodies import CHANGED
from api.compute.zones.zone_bodies import ZONE as CHILD
from api.schema.shapes import Operation, answer, flag, number

PART = {"offset": number(), "limit": number()}
ZONE = "/zones/<zone_id>"

OPERATIONS = {
    ("GET", "/zones"): Operation({200: answer("zones", "array")}, query=PART),
    ("GET", "/zones/detail"): Operation({200: answer("zones", "array")}, query=PART),
    ("GET", "/zones/info"): Operation({200: answer("zone")}),
    ("POST", "/zones"): Operation({200: answer("zone")}, CHILD.shape(), refuses=(409,)),
    ("GET", ZONE): Operation({200: answer("zone")}),
    ("PUT", ZONE): Operation({200: answer("zone")}, CHANGED.shape(), refuses=(409,)),
    ("DELETE", ZONE): Operation({200: {"type": "object", "maxProperties": 0}}, query={"force": flag()}, refuses=(409,)),
}
