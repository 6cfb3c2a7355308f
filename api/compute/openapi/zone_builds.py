"""OpenAPI descriptions of builds over zones."""

from api.compute.servers.server_bodies import NEW_BUILD
from api.compute.zones.build_bodies import SPEC
from api.schema.shapes import Operation, Schema, answer, name, thing

RESERVATION: Schema = thing(("reservation_id",), reservation_id=name(64))
BUILD = "/os-zone-builds/<reservation_id>"

OPERATIONS = {
    ("POST", "/zones/select"): Operation({200: answer("weights", "array")}, SPEC.shape(), refuses=(409,)),
    ("POST", "/zones/boot"): Operation({200: RESERVATION}, NEW_BUILD.shape(), refuses=(404, 409)),
    ("GET", "/zones/builds/<build_id>"): Operation({200: answer("servers", "array")}),
    ("GET", "/os-zone-builds"): Operation({200: answer("builds", "array")}),
    ("GET", BUILD): Operation({200: answer("build")}),
}
