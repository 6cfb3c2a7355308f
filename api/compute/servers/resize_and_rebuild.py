"""Server actions: resize, rebuild, shelve, lock, reset state, and create an image."""

from typing import Any

from flask import Response, jsonify

from api.compute import validation
from api.compute.microversion import since
from api.compute.servers import request_body, view
from api.compute.servers.servers import find, who
from api.request_context import compute, deployment
from climate.compute import operations
from climate.compute.errors import Conflict
from climate.compute.models.server import ACTIVE, ERROR, SHELVED_OFFLOADED, VM_STATES
from climate.compute.servers.rebuild import Rebuilt
from climate.domain.errors import InvalidInput

REBUILD_KEYS = frozenset(
    {"imageRef", "name", "metadata", "description", "adminPass", "preserve_ephemeral", "OS-DCF:diskConfig"}
)
"""Keys below `rebuild`; the last three have no effect, but clients send them."""

STATES = {"active": ACTIVE, "error": ERROR}


def create_image(server_id: str, details: Any) -> Response:
    """Create an image of the server."""
    validation.may_write()
    given = validation.details("createImage", details)
    name = validation.name(given.get("name"), "createImage.name")
    metadata = validation.metadata(given.get("metadata") or {}, "createImage.metadata")
    made = operations.create_image(compute(), who(server_id), name, metadata)
    answer = jsonify({"image_id": made}) if since(45) else Response()
    answer.status_code = 202
    answer.headers["Location"] = f"{deployment().settings.base_url}/image/v2/images/{made}"
    return answer


def resize(server_id: str, details: Any) -> Response:
    """Resize the server to another flavor; the resize must be confirmed."""
    validation.may_write()
    flavor = request_body.flavor(validation.details("resize", details).get("flavorRef"))
    operations.resize(compute(), who(server_id), flavor)
    return Response(status=202)


def confirm(server_id: str, details: Any) -> Response:
    """Confirm a resize."""
    validation.may_write()
    operations.confirm_resize(compute(), who(server_id))
    return Response(status=204)


def rebuild(server_id: str, details: Any) -> Response:
    """Rebuild the server from an image."""
    validation.may_write()
    given = validation.details("rebuild", details)
    unknown = sorted(set(given) - REBUILD_KEYS)
    if unknown:
        raise InvalidInput(f"rebuild: {', '.join(unknown)[:200]} cannot be set")
    wanted = Rebuilt(
        image_id=request_body.image(given.get("imageRef")),
        name=validation.name(given["name"], "rebuild.name") if "name" in given else None,
        metadata=validation.metadata(given["metadata"], "rebuild.metadata") if "metadata" in given else None,
        description=validation.description(given.get("description")),
    )
    operations.rebuild(compute(), who(server_id), wanted)
    answer = jsonify({"server": view.full(find(server_id))})
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
    given = {} if details is None else validation.details("unshelve", details)
    if set(given) - {"availability_zone"}:
        raise InvalidInput('unshelve must be null or like {"availability_zone": "nova"}')
    zone = given.get("availability_zone")
    wanted = None if zone is None else validation.zone_name(zone)
    operations.unshelve(compute(), who(server_id), wanted)
    return Response(status=202)


def lock(server_id: str, details: Any) -> Response:
    """Lock the server, so that only administrators can change it."""
    validation.may_write()
    given = {} if details is None else validation.details("lock", details)
    reason = given.get("locked_reason")
    if set(given) - {"locked_reason"}:
        raise InvalidInput('lock must be null or like {"locked_reason": "why"}')
    why = None if reason is None else validation.name(reason, "lock.locked_reason")
    operations.lock(compute(), who(server_id), why)
    return Response(status=202)


def unlock(server_id: str, details: Any) -> Response:
    """Unlock the server."""
    validation.may_write()
    operations.unlock(compute(), who(server_id))
    return Response(status=202)


def reset(server_id: str, details: Any) -> Response:
    """Reset the state of the server (administrator)."""
    validation.may_administer()
    state = validation.details("os-resetState", details).get("state")
    if state not in STATES:
        raise InvalidInput(f"os-resetState: state must be {' or '.join(STATES)}")
    operations.reset_state(compute(), who(server_id), STATES[state])
    return Response(status=202)
