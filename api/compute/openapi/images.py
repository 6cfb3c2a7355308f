"""OpenAPI descriptions of the image proxy."""

from api.compute.servers.attachment_bodies import META, METADATA
from api.schema.shapes import PAGE, Operation, answer, number, text

LIST = {
    **PAGE,
    "name": text(),
    "status": text(40),
    "server": text(),
    "type": text(40),
    "changes-since": text(40),
    "minDisk": number(),
    "minRam": number(),
}
ONE = "/images/<image_id>"
ALL = f"{ONE}/metadata"
KEY = f"{ALL}/<key>"

OPERATIONS = {
    ("GET", "/images"): Operation({200: answer("images", "array")}, query=LIST, refuses=(404,)),
    ("GET", "/images/detail"): Operation({200: answer("images", "array")}, query=LIST, refuses=(404,)),
    ("GET", ONE): Operation({200: answer("image")}),
    ("DELETE", ONE): Operation({204: None}, refuses=(409,)),
    ("GET", ALL): Operation({200: answer("metadata")}),
    ("POST", ALL): Operation({200: answer("metadata")}, METADATA.shape()),
    ("PUT", ALL): Operation({200: answer("metadata")}, METADATA.shape()),
    ("GET", KEY): Operation({200: answer("meta")}),
    ("PUT", KEY): Operation({200: answer("meta")}, META.shape()),
    ("DELETE", KEY): Operation({204: None}),
}
