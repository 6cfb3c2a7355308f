"""Images: list, show, create, upload, update and delete."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from flask import Blueprint, Response, request, send_file
from werkzeug.exceptions import UnsupportedMediaType

from api.body import read_json, read_object
from api.compute import validation
from api.image import image_body, image_query, upload_slots
from api.image.access import find, own
from api.image.image_view import view
from api.image.imports import METHOD
from api.paging import next_links, page, unknown_marker
from api.request_checks import answers
from api.request_context import caller, compute, deployment, here
from climate.compute.errors import NotFound
from climate.compute.images import image_catalog, image_data
from climate.compute.models.image import ACTIVE, DEACTIVATED
from climate.domain.errors import Forbidden

Body = dict[str, object]

blueprint = Blueprint("image-images", __name__, url_prefix="/image/v2")

OCTETS = "application/octet-stream"
PATCH = "application/openstack-images-v2.1-json-patch"
OLD_PATCH = "application/openstack-images-v2.0-json-patch"
"""Patches whose changes are like {"replace": "/name", "value": "…"}."""
_BLOCK, _MB = 1 << 16, 1 << 20


@blueprint.get("/images", strict_slashes=True)
def listing() -> Body:
    """List the images that the caller may see and that match the query; the default order is newest first."""
    validation.may_read()
    wanted, query = page(), image_query.read_query()
    try:
        result = image_catalog.listed(compute(), replace(query, marker=wanted.marker), validation.own_project())
    except NotFound:
        raise unknown_marker(str(wanted.marker)) from None
    more, result = len(result) > wanted.limit, result[: wanted.limit]
    body: Body = {"images": [view(image) for image in result], "schema": "/v2/schemas/images", "first": "/v2/images"}
    return body | ({"next": next_links(here(), result[-1].id, wanted)[0]["href"]} if more else {})


@blueprint.post("/images", strict_slashes=True)
def create() -> tuple[Body, int, dict[str, str]]:
    """Create an image without content; a later upload or import adds it."""
    validation.may_write()
    made = image_catalog.register(compute(), image_body.new(read_object()))
    return view(made), 201, {"OpenStack-image-import-methods": METHOD}


@blueprint.get("/info/usage")
def usage() -> Body:
    """Show the project's limits and usage of images; sizes in MiB, -1 for no limit."""
    validation.may_read()
    limits = compute().image_limits
    used = image_catalog.used(compute(), caller().project_id)
    figures = {
        "image_count_total": (limits.count, used.images),
        "image_size_total": (limits.size_mb, -(-used.size // _MB)),
        "image_count_uploading": (-1, used.saving),
    }
    return {"usage": {name: {"limit": limit, "usage": number} for name, (limit, number) in figures.items()}}


@blueprint.get("/images/<image_id>")
def show(image_id: str) -> Body:
    """Show one image by its id; names are not accepted."""
    return view(find(image_id))


@blueprint.patch("/images/<image_id>")
def change(image_id: str) -> Body:
    """Update an image or its properties."""
    own(image_id)
    operations = read_json((PATCH, OLD_PATCH))
    if request.mimetype == OLD_PATCH:
        operations = image_body.of_old_patch(operations)
    image_catalog.change(compute(), image_id, partial(image_body.changed, operations=operations))
    return show(image_id)


@blueprint.delete("/images/<image_id>")
def delete(image_id: str) -> tuple[str, int]:
    """Delete an image and its content; refused if it is protected, or if a shelved server needs it."""
    own(image_id)
    image_catalog.delete(compute(), image_id)
    return "", 204


@blueprint.put("/images/<image_id>/tags/<tag>")
def add_tag(image_id: str, tag: str) -> tuple[str, int]:
    """Add a tag to an image."""
    own(image_id)
    image_catalog.change_tags(compute(), image_id, partial(image_body.tagged, text=tag))
    return "", 204


@blueprint.delete("/images/<image_id>/tags/<tag>")
def drop_tag(image_id: str, tag: str) -> tuple[str, int]:
    """Remove a tag from an image."""
    own(image_id)
    image_catalog.delete_tag(compute(), image_id, tag)
    return "", 204


@blueprint.put("/images/<image_id>/file")
def upload(image_id: str) -> tuple[str, int]:
    """Upload the content of an image."""
    image = own(image_id)
    with upload_slots.slots().one_of(caller().project_id, request.content_length):
        image_data.upload(compute(), image.id, _content(), request.content_length or 0)
    return "", 204


@blueprint.put("/images/<image_id>/stage")
def stage(image_id: str) -> tuple[str, int]:
    """Upload the content of an image for a later import."""
    image = own(image_id)
    with upload_slots.slots().one_of(caller().project_id, request.content_length):
        image_data.stage(compute(), image.id, _content(), request.content_length or 0)
    return "", 204


@blueprint.get("/images/<image_id>/file")
@answers(OCTETS, "application/json")
def download(image_id: str) -> Response:
    """Return the content of an active image."""
    image = find(image_id)
    path = image_data.content_file(compute(), image.id)
    if image.status == DEACTIVATED and not caller().is_admin:
        raise Forbidden("The requested image has been deactivated. Image data download is forbidden.")
    if image.status not in (ACTIVE, DEACTIVATED) or not path.exists():
        return Response(status=204)
    return send_file(path, mimetype=OCTETS)


def _content() -> Iterator[bytes]:
    """Return the blocks of the body; UnsupportedMediaType for another type than octets."""
    if request.mimetype not in (OCTETS, ""):
        raise UnsupportedMediaType(f"Content-Type must be {OCTETS}")
    request.max_content_length = deployment().settings.max_image_mb * _MB
    return _blocks()


def _blocks() -> Iterator[bytes]:
    while block := request.stream.read(_BLOCK):
        yield block
