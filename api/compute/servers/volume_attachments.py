"""Volume attachments of a server."""

from api.body import read_object
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import since
from api.compute.servers.attachment_bodies import VOLUME
from api.compute.servers.servers import who
from api.request_context import compute
from climate.compute.errors import NotFound
from climate.compute.servers import volume_attachments
from climate.compute.store.projects.volumes import Volume

Body = dict[str, object]

blueprint = compute_blueprint("volume-attachments")

ATTACHMENT = "volumeAttachment"


@blueprint.get("/servers/<server_id>/os-volume_attachments")
def listing(server_id: str) -> Body:
    """List the volumes of a server."""
    return {"volumeAttachments": [view(volume) for volume in _of(server_id)]}


@blueprint.get("/servers/<server_id>/os-volume_attachments/<volume_id>")
def show(server_id: str, volume_id: str) -> Body:
    """Show a volume of a server."""
    for volume in _of(server_id):
        if volume.id == volume_id.lower():
            return {ATTACHMENT: view(volume)}
    raise NotFound(f"Instance {server_id} has no volume {volume_id[:80]}")


@blueprint.post("/servers/<server_id>/os-volume_attachments")
def attach(server_id: str) -> Body:
    """Attach a volume of the project to a server.  The service chooses the disk name and ignores `device`."""
    validation.may_write()
    given = VOLUME.read(read_object())
    return {ATTACHMENT: view(volume_attachments.attach(compute(), who(server_id), given["volume_id"]))}


@blueprint.delete("/servers/<server_id>/os-volume_attachments/<volume_id>")
def detach(server_id: str, volume_id: str) -> tuple[str, int]:
    """Detach a volume from a server."""
    validation.may_write()
    volume_attachments.detach(compute(), who(server_id), validation.path_id(volume_id, "Volume"))
    return "", 202


def _of(server_id: str) -> list[Volume]:
    validation.may_read()
    return volume_attachments.of_server(compute(), validation.path_id(server_id), validation.own_project())


def view(volume: Volume) -> Body:
    """Return an attachment as Nova shows it: its id is the volume's."""
    return {
        "id": volume.id,
        "volumeId": volume.id,
        "serverId": volume.server_id,
        "device": volume.path,
        **({"tag": None} if since(70) else {}),
        **({"delete_on_termination": False} if since(79) else {}),
    }
