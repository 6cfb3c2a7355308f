"""JSON schemas of images and their members, as clients of Image read them."""

from collections.abc import Mapping

from flask import Blueprint

from api.compute import validation
from api.image import metadef_bodies as bodies
from api.image.image_body import ATTRIBUTES, CHOSEN, NEW, READ_ONLY
from api.schema import shapes
from climate.compute.models.image_member import MEMBER_STATUSES
from climate.compute.models.metadef import OBJECTS, PROPERTIES, RESOURCE_TYPES, TAGS
from climate.domain.errors import NotFound

Schema = dict[str, object]

blueprint = Blueprint("image-schemas", __name__, url_prefix="/image/v2/schemas")

_LINKS = [{"rel": "self", "href": "{self}"}, {"rel": "enclosure", "href": "{file}"}]
_TIME: Schema = {"type": "string"}

IMAGE: Schema = {
    "name": "image",
    "properties": {
        **{name: {"type": ["null", "string"], "readOnly": True} for name in sorted(READ_ONLY - CHOSEN.keys())},
        "size": {"type": ["null", "integer"], "readOnly": True},
        "virtual_size": {"type": ["null", "integer"], "readOnly": True},
        **{name: key.shape for name, key in (*NEW.keys().items(), *ATTRIBUTES.keys().items())},
    },
    "additionalProperties": {"type": "string"},
    "links": [*_LINKS, {"rel": "describedby", "href": "{schema}"}],
}

MEMBER: Schema = {
    "name": "member",
    "properties": {
        "image_id": shapes.uuid(),
        "member_id": shapes.text(),
        "status": shapes.one_of(*MEMBER_STATUSES),
        "created_at": _TIME,
        "updated_at": _TIME,
        "schema": {"type": "string", "readOnly": True},
    },
}


def collection(one: Schema, name: str) -> Schema:
    """Return the schema of a list of things; `name`: their plural."""
    pages = {key: {"type": "string"} for key in ("first", "next", "schema")}
    links = [{"rel": key, "href": "{" + key + "}"} for key in ("first", "next")]
    links.append({"rel": "describedby", "href": "{schema}"})
    return {"name": name, "properties": {name: shapes.listing(one), **pages}, "links": links}


def _definitions() -> dict[str, Schema]:
    """Return the schemas of metadata definitions."""
    singles = {
        "namespace": ("namespace", "namespaces", bodies.NEW),
        "resource_type": ("resource_type_association", "resource_type_associations", bodies.PARTS[RESOURCE_TYPES]),
        "property": ("property", "properties", bodies.PARTS[PROPERTIES]),
        "object": ("object", "objects", bodies.PARTS[OBJECTS]),
        "tag": ("tag", "tags", bodies.PARTS[TAGS]),
    }
    schemas: dict[str, Schema] = {}
    for path, (name, plural, body) in singles.items():
        shape = body.shape()
        one = {"name": name, "properties": shape["properties"], "required": shape["required"]}
        several = "properties" if path == "property" else f"{path}s"
        schemas |= {f"metadefs/{path}": one, f"metadefs/{several}": collection(one, plural)}
    return schemas


SCHEMAS: Mapping[str, Schema] = {
    "image": IMAGE,
    "images": collection(IMAGE, "images"),
    "member": MEMBER,
    "members": collection(MEMBER, "members"),
    **_definitions(),
}


@blueprint.get("/<path:name>")
def show(name: str) -> Schema:
    """Show the schema of a thing or of a list of things."""
    validation.may_read()
    if name not in SCHEMAS:
        raise NotFound(f"There is no schema {name[:80]}: there are {', '.join(SCHEMAS)}.")
    return SCHEMAS[name]
