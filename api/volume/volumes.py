"""Volumes: create them without a reservation, list and show them, and delete those that no reservation has."""

from collections.abc import Callable

from flask import Blueprint, request

from api.body import read_object
from api.compute import validation
from api.paging import cut, next_links, page
from api.request_context import caller, compute, deployment, here
from api.volume.bodies import VOLUME
from climate.compute import volumes
from climate.compute.store.projects.volumes import Volume
from climate.compute.volumes import NewVolume

Body = dict[str, object]

blueprint = Blueprint("volume-volumes", __name__, url_prefix="/volume/v3")


@blueprint.get("/volumes")
def listing() -> Body:
    """List ids and names of volumes, with the parameters of `details`."""
    return _listed(_short)


@blueprint.get("/volumes/detail")
def details() -> Body:
    """List the volumes of the project; administrators list all with `all_tenants`.  Filters: `name` and `status`."""
    return _listed(_with_project)


def _listed(view_of: Callable[[Volume], Body]) -> Body:
    validation.may_read()
    everywhere = validation.own_project() is None and validation.flag(
        request.args.get("all_tenants", "0"), "all_tenants"
    )
    result = volumes.listed(compute(), None if everywhere else caller().project_id)
    name, status = request.args.get("name"), request.args.get("status")
    result = [one for one in result if name in (None, one.name) and status in (None, one.state)]
    wanted_page = page()
    rows, more = cut(result, wanted_page, lambda one: one.id)
    body: Body = {"volumes": [view_of(row) for row in rows]}
    if more and wanted_page.asked:
        body["volumes_links"] = next_links(here(), rows[-1].id, wanted_page)
    return body


@blueprint.post("/volumes")
def create() -> tuple[Body, int]:
    """Create a volume without a reservation."""
    validation.may_write()
    given = VOLUME.read(read_object())
    new = NewVolume(
        project_id=caller().project_id,
        user_id=caller().user_id,
        size_gb=given["size"],
        name=given["name"] or "",
        description=given["description"],
        metadata=given["metadata"] or {},
    )
    return {"volume": _view(volumes.create(compute(), new))}, 202


@blueprint.get("/volumes/<volume_id>")
def show(volume_id: str) -> Body:
    """One volume."""
    validation.may_read()
    return {"volume": _with_project(volumes.get(compute(), volume_id, validation.own_project()))}


@blueprint.delete("/volumes/<volume_id>")
def delete(volume_id: str) -> tuple[str, int]:
    """Delete a volume that has no reservation, or was kept after it."""
    validation.may_write()
    volumes.delete(compute(), volume_id, validation.own_project())
    return "", 202


def _view(volume: Volume) -> Body:
    """Return a volume as Cinder shows it; the metadata of one of a lease name the reservation that created it."""
    attachment = {
        "id": volume.id,
        "attachment_id": volume.id,
        "volume_id": volume.id,
        "server_id": volume.server_id,
        "device": volume.path,
        "host_name": None,
        "attached_at": f"{volume.updated_at:%Y-%m-%dT%H:%M:%S.%f}",
    }
    return {
        "id": volume.id,
        "name": volume.name,
        "description": volume.description,
        "size": volume.size_gb,
        "status": volume.state,
        "volume_type": volume.storage_class,
        "attachments": [attachment] if volume.server_id is not None else [],
        "metadata": _metadata(volume),
        "availability_zone": "nova",
        "bootable": "false",
        "encrypted": False,
        "multiattach": False,
        "snapshot_id": None,
        "source_volid": None,
        "consistencygroup_id": None,
        "replication_status": None,
        "user_id": volume.user_id or "",
        "created_at": f"{volume.created_at:%Y-%m-%dT%H:%M:%S.%f}",
        "updated_at": f"{volume.updated_at:%Y-%m-%dT%H:%M:%S.%f}",
        "links": _links(volume),
    }


def _short(volume: Volume) -> Body:
    return {"id": volume.id, "name": volume.name, "links": _links(volume)}


def _with_project(volume: Volume) -> Body:
    return _view(volume) | {"os-vol-tenant-attr:tenant_id": volume.project_id}


def _links(volume: Volume) -> list[dict[str, str]]:
    return [{"rel": "self", "href": f"{deployment().settings.base_url}/volume/v3/volumes/{volume.id}"}]


def _metadata(volume: Volume) -> dict[str, str]:
    own = dict(volume.metadata)
    return own if volume.pool is None else {**own, "reservation_id": volume.pool, "kept": str(volume.kept).lower()}
