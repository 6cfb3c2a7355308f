"""Volumes: list and show them, and delete them after their reservations."""

from flask import Blueprint, request

from api.compute import validation
from api.paging import cut, next_links, page
from api.request_context import caller, compute, deployment, here
from climate.compute import volumes
from climate.compute.store.projects.volumes import Volume

Body = dict[str, object]

blueprint = Blueprint("volume-volumes", __name__, url_prefix="/volume/v3")


@blueprint.get("/volumes")
@blueprint.get("/volumes/detail")
def listing() -> Body:
    """List the volumes of the project; administrators list all with `all_tenants`.  Filters: `name` and `status`."""
    validation.may_read()
    everywhere = validation.own_project() is None and validation.flag(
        request.args.get("all_tenants", "0"), "all_tenants"
    )
    result = volumes.listed(compute(), None if everywhere else caller().project_id)
    name, status = request.args.get("name"), request.args.get("status")
    result = [one for one in result if name in (None, one.name) and status in (None, one.state)]
    wanted_page = page()
    rows, more = cut(result, wanted_page, lambda one: one.id)
    body: Body = {"volumes": [view(one) for one in rows]}
    if more and wanted_page.asked:
        body["volumes_links"] = next_links(here(), rows[-1].id, wanted_page)
    return body


@blueprint.get("/volumes/<volume_id>")
def show(volume_id: str) -> Body:
    """One volume."""
    validation.may_read()
    return {"volume": view(volumes.get(compute(), volume_id, validation.own_project()))}


@blueprint.delete("/volumes/<volume_id>")
def delete(volume_id: str) -> tuple[str, int]:
    """Delete a volume that was kept after its reservation."""
    validation.may_write()
    volumes.delete(compute(), volume_id, validation.own_project())
    return "", 202


def view(volume: Volume) -> Body:
    """Return a volume as Cinder shows it; its metadata name the reservation that created it."""
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
        "description": None,
        "size": volume.size_gb,
        "status": volume.state,
        "volume_type": volume.storage_class,
        "attachments": [attachment] if volume.server_id is not None else [],
        "metadata": {"reservation_id": volume.pool, "kept": str(volume.kept).lower()},
        "availability_zone": "nova",
        "bootable": "false",
        "encrypted": False,
        "multiattach": False,
        "snapshot_id": None,
        "source_volid": None,
        "consistencygroup_id": None,
        "replication_status": None,
        "user_id": "",
        "os-vol-tenant-attr:tenant_id": volume.project_id,
        "created_at": f"{volume.created_at:%Y-%m-%dT%H:%M:%S.%f}",
        "updated_at": f"{volume.updated_at:%Y-%m-%dT%H:%M:%S.%f}",
        "links": [{"rel": "self", "href": f"{deployment().settings.base_url}/volume/v3/volumes/{volume.id}"}],
    }
