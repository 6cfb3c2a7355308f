"""Server actions: resize, rebuild, shelve, lock, reset state, and create an image."""

from typing import Any

from flask import Response, jsonify

from api.compute import validation
from api.compute.microversion import since
from api.compute.servers import action_bodies, request_body, view
from api.compute.servers.servers import find, who
from api.request_context import compute, deployment
from climate.compute import operations
from climate.compute.errors import Conflict
from climate.compute.models.server import SHELVED_OFFLOADED, VM_STATES
from climate.compute.servers.rebuild import Rebuilt


def create_image(server_id: str, details: Any) -> Response:
    """Create an image of the server."""
    validation.may_write()
    given = action_bodies.CREATE_IMAGE.read_value(details, "createImage")
    made = operations.create_image(compute(), who(server_id), given["name"], given["metadata"])
    answer = jsonify({"image_id": made}) if since(45) else Response()
    answer.status_code = 202
    answer.headers["Location"] = f"{deployment().settings.base_url}/image/v2/images/{made}"
    return answer


def resize(server_id: str, details: Any) -> Response:
    """Resize the server to another flavor; the resize must be confirmed."""
    validation.may_write()
    given = action_bodies.RESIZE.read_value(details, "resize")
    operations.resize(compute(), who(server_id), request_body.flavor(given["flavor_ref"]))
    return Response(status=202)


def confirm(server_id: str, details: Any) -> Response:
    """Confirm a resize."""
    validation.may_write()
    operations.confirm_resize(compute(), who(server_id))
    return Response(status=204)


def rebuild(server_id: str, details: Any) -> Response:
    """Rebuild the server from an image."""
    validation.may_write()
    given = action_bodies.REBUILD.read_value(details, "rebuild")
    wanted = Rebuilt(
        image_id=request_body.image(given["image_ref"]),
        name=given.get("name"),
        metadata=given.get("metadata"),
        description=given["description"],
    )
    operations.rebuild(compute(), who(server_id), wanted)
    answer = jsonify({"server": view.changed(find(server_id)) | {"adminPass": view.password(given["password"])}})
    answer.status_code = 202
    answer.headers["Location"] = f"{deployment().settings.base_url}/compute/v2.1/servers/{server_id}"
    return answer


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
