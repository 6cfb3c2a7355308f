"""Server actions: resize, rebuild, rescue, shelve, lock, reset state, and create an image."""

from collections.abc import Mapping
from typing import Any

from flask import Response, jsonify

from api.compute import validation
from api.compute.microversion import since
from api.compute.servers import request_body, view
from api.compute.servers.actions import action_bodies
from api.compute.servers.servers import behind, find, who
from api.request_context import caller, compute, deployment
from api.schema.body import Body
from climate.compute import operations
from climate.compute.errors import Conflict
from climate.compute.images import backups
from climate.compute.models.server import SHELVED_OFFLOADED, VM_STATES
from climate.compute.servers import details as server_details
from climate.compute.servers.rebuild import Rebuilt
from climate.domain.errors import Forbidden


def create_image(server_id: str, details: Any) -> Response:
    """Create an image of the server."""
    validation.may_write()
    given = action_bodies.CREATE_IMAGE.read_value(details, "createImage")
    return _image_begun(operations.create_image(compute(), who(server_id), given["name"], given["metadata"]))


def create_backup(server_id: str, details: Any) -> Response:
    """Create a backup of the server: an image; then the oldest backups of its type are deleted."""
    validation.may_write()
    given = action_bodies.BACKUP.read_value(details, "createBackup")
    properties = backups.properties(given["metadata"], given["backup_type"], given["rotation"])
    return _image_begun(operations.create_image(compute(), who(server_id), given["name"], properties))


def _image_begun(made: str) -> Response:
    answer = jsonify({"image_id": made}) if since(45) else Response()
    answer.status_code = 202
    answer.headers["Location"] = f"{deployment().settings.base_url}/image/v2/images/{made}"
    return answer


def resize(server_id: str, details: Any) -> Response:
    """Resize the server to another flavor; the resize must be confirmed."""
    validation.may_write()
    given = action_bodies.RESIZE.read_value(details, "resize")
    operations.resize(compute(), who(server_id), request_body.flavor(given["flavor_ref"]))
    if "disk_config" in given:
        operations.describe(compute(), who(server_id), {"disk_config": given["disk_config"]})
    return Response(status=202)


def confirm(server_id: str, details: Any) -> Response:
    """Confirm a resize."""
    validation.may_write()
    operations.confirm_resize(compute(), who(server_id))
    return Response(status=204)


def rebuild(server_id: str, details: Any) -> Response:
    """Rebuild the server from an image."""
    validation.may_write()
    given = _rebuild_body().read_value(details, "rebuild")
    boot_data: dict[str, str | None] = {key: given[key] for key in ("key_name", "user_data") if key in given}
    _check_key(server_id, boot_data)
    wanted = Rebuilt(
        image_id=request_body.image(given["image_ref"]),
        name=given.get("name"),
        metadata=given.get("metadata"),
        description=given["description"],
        disk_config=given.get("disk_config"),
        boot_data=boot_data,
    )
    operations.rebuild(compute(), who(server_id), wanted)
    server = find(server_id)
    data = server_details.user_data(compute(), [server_id]).get(server_id) if since(57) else None
    shown = view.rebuilt(server, behind([server]), data)
    answer = jsonify({"server": shown | {"adminPass": view.password(given["password"])}})
    answer.status_code = 202
    answer.headers["Location"] = f"{deployment().settings.base_url}/compute/v2.1/servers/{server_id}"
    return answer


def _rebuild_body() -> Body:
    """Return the form of a rebuild at the microversion of the request."""
    if since(57):
        return action_bodies.REBUILD
    return action_bodies.REBUILD_54_TO_56 if since(54) else action_bodies.REBUILD_TO_53


def _check_key(server_id: str, boot_data: Mapping[str, str | None]) -> None:
    """Check the key pair of a rebuild, which the user who created the server must have."""
    if "key_name" not in boot_data:
        return
    if find(server_id).user_id != caller().user_id:
        raise Forbidden("Only the user who created the server can change its key pair.")
    request_body.known_key(boot_data["key_name"])


def rescue(server_id: str, details: Any) -> Response:
    """Start the server from an image, with its own disk behind; by default from the image of the server."""
    validation.may_write()
    given = action_bodies.RESCUE.read_value(details, "rescue")
    image_id = None if given["image_ref"] is None else request_body.image(given["image_ref"])
    operations.rescue(compute(), who(server_id), image_id)
    return jsonify({"adminPass": view.password(given["password"])})


def shelve(server_id: str, details: Any) -> Response:
    """Shelve the server into an image and remove it from its host."""
    validation.may_write()
    operations.shelve(compute(), who(server_id))
    return Response(status=202)


def offload(server_id: str, details: Any) -> Response:
    """Accept the offload of a shelved server, which is on no host already."""
    validation.may_administer()
    server = find(server_id)
    if server.status != SHELVED_OFFLOADED:
        state = VM_STATES[server.status]
        raise Conflict(f"Cannot 'shelveOffload' instance {server.id} while it is in vm_state {state}")
    return Response(status=202)


def unshelve(server_id: str, details: Any) -> Response:
    """Unshelve the server onto a host."""
    validation.may_write()
    given = action_bodies.UNSHELVE.read_value(details, "unshelve")
    operations.unshelve(compute(), who(server_id), given["zone"])
    return Response(status=202)


def lock(server_id: str, details: Any) -> Response:
    """Lock the server, so that only administrators can change it."""
    validation.may_write()
    given = action_bodies.LOCK.read_value(details, "lock")
    operations.lock(compute(), who(server_id), given["reason"])
    return Response(status=202)


def unlock(server_id: str, details: Any) -> Response:
    """Unlock the server."""
    validation.may_write()
    operations.unlock(compute(), who(server_id))
    return Response(status=202)


def reset(server_id: str, details: Any) -> Response:
    """Reset the state of the server (administrator)."""
    validation.may_administer()
    given = action_bodies.RESET_STATE.read_value(details, "os-resetState")
    operations.reset_state(compute(), who(server_id), given["state"])
    return Response(status=202)
