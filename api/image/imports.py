"""Import of staged contents, deactivation of images, and the tasks of an image."""

from flask import Blueprint

from api.body import read_object
from api.compute import validation
from api.image.access import find, own
from api.request_context import compute
from api.schema import shapes
from api.schema.body import Body, Ignored, Key, part
from climate.compute.images import image_catalog, image_data
from climate.domain.errors import InvalidInput

blueprint = Blueprint("image-imports", __name__, url_prefix="/image/v2")

METHOD = "glance-direct"
"""The only method of import: a staged content. Nothing is fetched from elsewhere."""


def _method(value: object, field: str) -> str:
    if value != METHOD:
        raise InvalidInput(f"{field} must be {METHOD}, got {str(value)[:40]!r}: no other method is enabled")
    return METHOD


class Method(Body):
    """Method of an import."""

    UNKNOWN = "Unknown key {first} in method: an import has {known}"
    PREFIX = "method."

    name = Key(_method, shapes.one_of(METHOD), required=True)


class Import(Body):
    """An import; there is one store, which every import goes to."""

    UNKNOWN = "Unknown key {first}: an import has {known}"

    method = part(Method(), required=True)
    all_stores = Ignored(shapes.flag())
    all_stores_must_succeed = Ignored(shapes.flag())


IMPORT = Import()


@blueprint.get("/info/import")
def methods() -> dict[str, object]:
    """List the methods of import."""
    validation.may_read()
    return {"import-methods": {"description": "Import methods available.", "type": "array", "value": [METHOD]}}


@blueprint.post("/images/<image_id>/import")
def start(image_id: str) -> tuple[str, int]:
    """Import the staged content of an image; the image is active afterwards."""
    image = own(image_id)
    IMPORT.read(read_object())
    image_data.import_staged(compute(), image.id)
    return "", 202


@blueprint.get("/images/<image_id>/tasks")
def tasks(image_id: str) -> dict[str, object]:
    """List the tasks of an image: none, because an import ends with its request."""
    find(image_id)
    return {"tasks": []}


@blueprint.post("/images/<image_id>/actions/deactivate")
def deactivate(image_id: str) -> tuple[str, int]:
    """Stop giving out the content of an image."""
    image_catalog.deactivate(compute(), own(image_id).id)
    return "", 204


@blueprint.post("/images/<image_id>/actions/reactivate")
def reactivate(image_id: str) -> tuple[str, int]:
    """Give out the content of an image again."""
    image_catalog.reactivate(compute(), own(image_id).id)
    return "", 204
