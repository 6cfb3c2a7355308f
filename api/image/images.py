"""Images: listed, shown, made, filled, changed and deleted."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

from flask import Blueprint, Response, request, send_file

from api.body import read_json, read_object
from api.compute import asked
from api.current import caller, deployment
from api.image.image_view import view
from api.negotiation import answers
from api.paging import next_links, page, unknown_marker
from climate.compute import Compute, images
from climate.compute.image import ACTIVE, QUEUED, Image
from climate.compute.store import images as store
from climate.domain.errors import Conflict, Forbidden, InvalidInput, NotFound

Body = dict[str, Any]

blueprint = Blueprint("image-images", __name__, url_prefix="/image/v2")

FORMATS = ("raw", "qcow2", "vhd", "vhdx", "vmdk", "vdi", "iso", "ploop", "aki", "ari", "ami")
CONTAINERS = ("bare", "ovf", "ova", "aki", "ari", "ami", "docker", "compressed")
VISIBILITIES = ("public", "private", "shared", "community")
OWN = frozenset(
    {"id", "name", "visibility", "disk_format", "container_format", "owner", "tags", "protected"}
) | frozenset({"min_disk", "min_ram", "os_hidden"})
"""Keys with a meaning; every other one with a text is a property."""

LARGEST = 1 << 30
"""Bytes of an upload."""

PATCH = "application/openstack-images-v2.1-json-patch"
_BLOCK = 1 << 16


def compute() -> Compute:
    return deployment().compute


@blueprint.get("/images")
def listing() -> Body:
    """The images that the caller sees, newest first."""
    asked.may_read()
    wanted = page()
    with compute().engine.connect() as conn:
        if wanted.marker is not None and not _seen(store.get(conn, wanted.marker)):
            raise unknown_marker(wanted.marker)
        filters = {"name": request.args.get("name"), "status": request.args.get("status"), "marker": wanted.marker}
        found = store.listed(conn, asked.own_project(), filters, _ids(), wanted.limit + 1)
    more, found = len(found) > wanted.limit, found[: wanted.limit]
    body: Body = {"images": [view(image) for image in found], "schema": "/v2/schemas/images", "first": "/v2/images"}
    url = f"{deployment().settings.base_url}{request.path}"
    return body | ({"next": next_links(url, found[-1].id, wanted)[0]["href"]} if more else {})


@blueprint.post("/images")
def create() -> tuple[Body, int]:
    """Register an image; its content comes later."""
    asked.may_write()
    body = read_object()
    visibility = _one_of(body, "visibility", VISIBILITIES) or "shared"
    _check_visibility(visibility)
    image = Image(
        id=asked.uuid(body["id"], "id") if body.get("id") else str(uuid4()),
        name=asked.name(body["name"]) if body.get("name") is not None else "",
        project_id=caller().project_id,
        status=QUEUED,
        visibility=visibility,
        disk_format=_one_of(body, "disk_format", FORMATS),
        container_format=_one_of(body, "container_format", CONTAINERS),
        size=None,
        sha512=None,
        properties=_properties(body),
    )
    with compute().engine.begin() as conn:
        made = store.insert(conn, image)
    if made is None:
        raise Conflict(f"Image ID {image.id} already exists!")
    return view(made), 201


@blueprint.get("/images/<image_id>")
def show(image_id: str) -> Body:
    """One image, by its id; a name is nobody's."""
    return view(_find(image_id))


@blueprint.patch("/images/<image_id>")
def change(image_id: str) -> Body:
    """Change the name, the visibility or properties of an image."""
    image = _own(image_id)
    operations = read_json((PATCH,))
    if not isinstance(operations, list) or len(operations) > 100:
        raise InvalidInput("The body must be a list of at most 100 changes")
    for operation in operations:
        image = _changed(image, operation)
    with compute().engine.begin() as conn:
        store.edit(conn, image, compute().now(conn))
    return show(image_id)


@blueprint.delete("/images/<image_id>")
def delete(image_id: str) -> tuple[str, int]:
    """Forget an image and its content."""
    image = _own(image_id)
    with compute().engine.begin() as conn:
        store.delete(conn, image.id)
    images.place(compute(), image.id).unlink(missing_ok=True)
    return "", 204


@blueprint.put("/images/<image_id>/file")
def upload(image_id: str) -> tuple[str, int]:
    """Fill an image that was registered."""
    image = _own(image_id)
    if image.status != QUEUED:
        raise Conflict(f"Image status transition from {image.status} to saving is not allowed")
    request.max_content_length = LARGEST
    content = images.store(compute(), image.id, _blocks())
    with compute().engine.begin() as conn:
        store.settle(conn, image.id, ACTIVE, compute().now(conn), content)
    return "", 204


@blueprint.get("/images/<image_id>/file")
@answers("application/octet-stream", "application/json")
def download(image_id: str) -> Response:
    """The content of an image."""
    image = _find(image_id)
    path = images.place(compute(), image.id)
    if not path.exists():
        return Response(status=204)
    return send_file(path, mimetype="application/octet-stream")


def _find(image_id: str) -> Image:
    asked.may_read()
    with compute().engine.connect() as conn:
        found = store.get(conn, image_id)
    if found is None or not _seen(found):
        raise NotFound(f"No image found with ID {image_id[:80]}")
    return found


def _seen(image: Image | None) -> bool:
    return image is not None and (caller().is_admin or image.seen_by(caller().project_id))


def _own(image_id: str) -> Image:
    """An image that the caller may change."""
    asked.may_write()
    image = _find(image_id)
    if image.project_id != caller().project_id and not caller().is_admin:
        raise Forbidden(f"You are not permitted to change image {image.id}.")
    return image


def _ids() -> list[str] | None:
    wanted = request.args.get("id")
    return None if wanted is None else wanted.removeprefix("in:").split(",")


def _blocks() -> Iterator[bytes]:
    while block := request.stream.read(_BLOCK):
        yield block


def _one_of(body: Body, key: str, known: tuple[str, ...]) -> str | None:
    value = body.get(key)
    if value is not None and value not in known:
        raise InvalidInput(f"{key} must be one of {', '.join(known)}")
    return value


def _check_visibility(visibility: str) -> None:
    if visibility == "public" and not caller().is_admin:
        raise Forbidden("Only administrators make images public.")


def _properties(body: Body) -> Body:
    found = {key: value for key, value in body.items() if key not in OWN}
    for key, value in found.items():
        if not isinstance(value, str) or len(value) > 65535 or len(key) > asked.NAME_LENGTH:
            raise InvalidInput(f"{key[:80]} must be a text")
    return found


def _changed(image: Image, operation: Any) -> Image:
    path = operation.get("path") if isinstance(operation, dict) else None
    if not isinstance(path, str) or operation.get("op") not in ("add", "replace", "remove"):
        raise InvalidInput('Each change must be like {"op": "add|replace|remove", "path": "/key", "value": "…"}')
    key, value = path.removeprefix("/"), operation.get("value")
    if key == "name":
        return replace(image, name=asked.name(value))
    if key == "visibility":
        wanted = _one_of({key: value}, key, VISIBILITIES) or image.visibility
        _check_visibility(wanted)
        return replace(image, visibility=wanted)
    if key in OWN:
        raise Forbidden(f"Attribute '{key}' is read-only.")
    kept = {name: text for name, text in image.properties.items() if name != key}
    return replace(image, properties=kept if operation["op"] == "remove" else kept | _properties({key: value}))
