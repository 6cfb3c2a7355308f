"""Volumes of a server: shown, given, taken away."""

from typing import Any

from api.body import read_object
from api.compute import asked
from api.compute.blueprint import compute_blueprint
from api.compute.servers import who
from api.current import compute
from climate.compute import attachments
from climate.compute.errors import NotFound
from climate.compute.store.volumes import Volume
from climate.domain.errors import InvalidInput

Body = dict[str, Any]

blueprint = compute_blueprint("volume-attachments")

ATTACHMENT = "volumeAttachment"
KEYS = frozenset({"volumeId", "device", "tag", "delete_on_termination"})


@blueprint.get("/servers/<server_id>/os-volume_attachments")
def listing(server_id: str) -> Body:
    """The volumes of a server."""
    return {"volumeAttachments": [view(volume) for volume in _of(server_id)]}


@blueprint.get("/servers/<server_id>/os-volume_attachments/<volume_id>")
def show(server_id: str, volume_id: str) -> Body:
    """One of them."""
    for volume in _of(server_id):
        if volume.id == volume_id.lower():
            return {ATTACHMENT: view(volume)}
    raise NotFound(f"Instance {server_id} has no volume {volume_id[:80]}")


@blueprint.post("/servers/<server_id>/os-volume_attachments")
def attach(server_id: str) -> Body:
    """Give a server a volume of its project.  The name of its disk is chosen here, whatever `device` says."""
    asked.may_write()
    given = asked.part(read_object(), ATTACHMENT)
    unknown = sorted(set(given) - KEYS)
    if unknown:
        raise InvalidInput(f"{ATTACHMENT}: {unknown[0][:60]!r} is unknown; known are {', '.join(sorted(KEYS))}")
    if asked.flag(given.get("delete_on_termination", False), "delete_on_termination"):
        raise InvalidInput("delete_on_termination cannot be true: volumes belong to their reservations, not to servers")
    for key in ("device", "tag"):
        if given.get(key) is not None:
            asked.name(given[key], key)
    volume_id = asked.uuid(given.get("volumeId"), "volumeId")
    return {ATTACHMENT: view(attachments.attach(compute(), who(server_id), volume_id))}


@blueprint.delete("/servers/<server_id>/os-volume_attachments/<volume_id>")
def detach(server_id: str, volume_id: str) -> tuple[str, int]:
    """Take a volume from a server."""
    asked.may_write()
    attachments.detach(compute(), who(server_id), asked.path_id(volume_id, "Volume"))
    return "", 202


def _of(server_id: str) -> list[Volume]:
    asked.may_read()
    return attachments.of_server(compute(), asked.path_id(server_id), asked.own_project())


def view(volume: Volume) -> Body:
    """An attachment as Nova shows it: its id is the volume's."""
    return {
        "id": volume.id,
        "volumeId": volume.id,
        "serverId": volume.server_id,
        "device": volume.path,
        "tag": None,
        "delete_on_termination": False,
    }
