"""Images as Compute showed them before microversion 2.36; the Image API has all of them."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from flask import request

from api.body import read_object
from api.compute import metadata_keys, validation
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import proxied, since
from api.compute.servers import view as server_view
from api.compute.servers.attachment_bodies import METADATA
from api.compute.servers.list_query import moment
from api.image import image_body
from api.image.access import find, own
from api.paging import next_links, page, unknown_marker
from api.request_context import compute, deployment, here
from climate.compute.errors import NotFound
from climate.compute.images import image_catalog
from climate.compute.models.image import ACTIVE, DEACTIVATED, KILLED, QUEUED, SAVING, STAGED, Image
from climate.compute.store.projects.images import ImageQuery
from climate.domain.errors import NotFound as NoSuch

Body = dict[str, object]

blueprint = compute_blueprint("images")

STATUS = {
    QUEUED: "SAVING",
    SAVING: "SAVING",
    STAGED: "SAVING",
    ACTIVE: "ACTIVE",
    DEACTIVATED: "UNKNOWN",
    KILLED: "ERROR",
}
PROGRESS = {QUEUED: 25, SAVING: 50, STAGED: 50, ACTIVE: 100, DEACTIVATED: 100, KILLED: 0}
SERVER = "instance_uuid"
"""Property that names the server of a snapshot."""


@blueprint.before_request
def _is_there() -> None:
    """Return 404 where the microversion has no images: from 2.36 on, and from 2.39 on for their metadata."""
    if request.path.partition("/images/")[2].partition("/")[2]:
        if since(39):
            raise NoSuch("The resource could not be found: since 2.39 use the Image API.")
        return
    proxied()


@blueprint.get("/images", strict_slashes=True)
def listing() -> Body:
    """List images by name and id only."""
    return _listed(lambda image: {"id": image.id, "name": image.name, "links": _links(image)})


@blueprint.get("/images/detail")
def detailed() -> Body:
    """List images with all details."""
    return _listed(_view)


@blueprint.get("/images/<image_id>")
def show(image_id: str) -> Body:
    """Show one image."""
    return {"image": _view(find(image_id))}


@blueprint.delete("/images/<image_id>")
def delete(image_id: str) -> tuple[str, int]:
    """Delete an image; refused if it is protected, or if a shelved server needs it."""
    image_catalog.delete(compute(), own(image_id).id)
    return "", 204


@blueprint.get("/images/<image_id>/metadata")
def metadata(image_id: str) -> Body:
    """Show the metadata of an image."""
    return {"metadata": dict(find(image_id).properties)}


@blueprint.post("/images/<image_id>/metadata")
def add_metadata(image_id: str) -> Body:
    """Create or update keys of the metadata of an image."""
    given = METADATA.read(read_object())["metadata"]
    return {"metadata": _changed(image_id, lambda there: {**there, **given})}


@blueprint.put("/images/<image_id>/metadata")
def replace_metadata(image_id: str) -> Body:
    """Replace the metadata of an image."""
    given = METADATA.read(read_object())["metadata"]
    return {"metadata": _changed(image_id, lambda there: given)}


@blueprint.get("/images/<image_id>/metadata/<key>")
def show_key(image_id: str, key: str) -> Body:
    """Show one key of the metadata of an image."""
    return {"meta": metadata_keys.item(find(image_id).properties, key)}


@blueprint.put("/images/<image_id>/metadata/<key>")
def set_key(image_id: str, key: str) -> Body:
    """Set one key of the metadata of an image."""
    given = metadata_keys.read_one(key)
    _changed(image_id, lambda there: {**there, **given})
    return {"meta": given}


@blueprint.delete("/images/<image_id>/metadata/<key>")
def drop_key(image_id: str, key: str) -> tuple[str, int]:
    """Delete one key of the metadata of an image."""
    _changed(image_id, lambda there: metadata_keys.without(there, key))
    return "", 204


def _changed(image_id: str, change: Callable[[Mapping[str, str]], Mapping[str, str]]) -> Body:
    """Store the changed properties of an image, and return them."""

    def changed(image: Image) -> Image:
        properties = validation.metadata(change(image.properties))
        image_body.check_properties(properties.keys() - image.properties.keys())
        return replace(image, properties=properties)

    image_catalog.change(compute(), own(image_id).id, changed)
    return dict(find(image_id).properties)


def _listed(shape: Callable[[Image], Body]) -> Body:
    validation.may_read()
    wanted = page(may_be_empty=True)
    query = replace(_query(), marker=wanted.marker, limit=wanted.limit + 1)
    try:
        result = image_catalog.listed(compute(), query, validation.own_project())
    except NotFound:
        raise unknown_marker(str(wanted.marker)) from None
    shown = result[: wanted.limit]
    more: Body = {"images_links": next_links(here(), shown[-1].id, wanted)} if 0 < wanted.limit < len(result) else {}
    return {"images": [shape(image) for image in shown]} | more


def _query() -> ImageQuery:
    """Return the query for the store; keys that Nova does not know are ignored."""
    given = request.args
    properties = {}
    if "server" in given:  # the id or the link of a server
        properties[SERVER] = given["server"].rpartition("/")[2]
    if "type" in given:
        properties["image_type"] = given["type"]
    statuses = [own for own, shown in STATUS.items() if shown == given.get("status", "").upper()]
    return ImageQuery(
        project_id=validation.own_project(),
        names=[given["name"]] if "name" in given else None,
        statuses=statuses if "status" in given else None,
        changed_since=moment("changes-since") if "changes-since" in given else None,
        min_disk=_number("minDisk"),
        min_ram=_number("minRam"),
        properties=properties,
    )


def _number(key: str) -> int | None:
    return validation.count(request.args[key], key) if key in request.args else None


def _view(image: Image) -> Body:
    body = {
        "id": image.id,
        "name": image.name,
        "status": STATUS[image.status],
        "progress": PROGRESS[image.status],
        "created": f"{image.created_at:%Y-%m-%dT%H:%M:%SZ}",
        "updated": f"{image.updated_at:%Y-%m-%dT%H:%M:%SZ}",
        "minDisk": image.min_disk_gb,
        "minRam": image.min_ram_mb,
        "metadata": dict(image.properties),
        "OS-EXT-IMG-SIZE:size": image.size,
        "links": _links(image),
    }
    server_id = image.properties.get(SERVER)
    if not server_id:
        return body
    return body | {"server": {"id": server_id, "links": server_view.links(f"servers/{server_id}")}}


def _links(image: Image) -> list[dict[str, str]]:
    alternate = {
        "rel": "alternate",
        "type": "application/vnd.openstack.image",
        "href": f"{deployment().settings.base_url}/image/v2/images/{image.id}",
    }
    return [*server_view.links(f"images/{image.id}"), alternate]
