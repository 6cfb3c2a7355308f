"""Server actions: resize, rebuild, rescue, and images and backups of a server."""

from flask import Response, jsonify

from api.compute import validation
from api.compute.microversion import since
from api.compute.servers import request_body, view
from api.compute.servers.actions import action_bodies
from api.compute.servers.servers import behind, find, who
from api.compute.zones import routing, zone_chain
from api.request_context import caller, compute, deployment
from api.schema.body import Body, Values
from climate.compute import server_operations
from climate.compute.images import backups
from climate.compute.servers import user_data_and_actions as server_details
from climate.compute.servers.rebuild import Rebuilt
from climate.compute.zones import placed_servers
from climate.domain.errors import Forbidden

ONLY_ITS_USER = "Only the user who created the server can change its key pair."


def create_image(server_id: str, details: object) -> Response:
    """Create an image of the server."""
    validation.may_write()
    given = action_bodies.CREATE_IMAGE.read_value(details, "createImage")
    return _image_begun(server_operations.create_image(compute(), who(server_id), given["name"], given["metadata"]))


def create_backup(server_id: str, details: object) -> Response:
    """Create a backup of the server: an image; then the oldest backups of its type are deleted."""
    validation.may_write()
    given = action_bodies.BACKUP.read_value(details, "createBackup")
    properties = backups.properties(given["metadata"], given["backup_type"], given["rotation"])
    return _image_begun(server_operations.create_image(compute(), who(server_id), given["name"], properties))


def _image_begun(made: str) -> Response:
    answer = jsonify({"image_id": made}) if since(45) else Response()
    answer.status_code = 202
    answer.headers["Location"] = f"{deployment().settings.base_url}/image/v2/images/{made}"
    return answer


def resize(server_id: str, details: object) -> Response:
    """Resize the server to another flavor; the resize must be confirmed."""
    validation.may_write()
    given = action_bodies.RESIZE.read_value(details, "resize")
    server_operations.resize(compute(), who(server_id), request_body.flavor(given["flavor_ref"]))
    if "disk_config" in given:
        server_operations.describe(compute(), who(server_id), {"disk_config": given["disk_config"]})
    return Response(status=202)


def confirm(server_id: str, details: object) -> Response:
    """Confirm a resize."""
    validation.may_write()
    server_operations.confirm_resize(compute(), who(server_id))
    return Response(status=204)


def rebuild(server_id: str, details: object) -> Response:
    """Rebuild the server from an image."""
    validation.may_write()
    given = _rebuild_body().read_value(details, "rebuild")
    public_key = _public_key(server_id, given)
    find(server_id)  # in a child zone, whose images count
    wanted = Rebuilt(
        image_id=request_body.image(given["image_ref"]),
        name=given.get("name"),
        metadata=given.get("metadata"),
        description=given["description"],
        disk_config=given.get("disk_config"),
        boot_data={key: given[key] for key in ("key_name", "user_data") if key in given},
        public_key=public_key,
    )
    server_operations.rebuild(compute(), who(server_id), wanted)
    server = find(server_id)
    shown = view.rebuilt(server, behind([server]), _user_data(server_id, given) if since(57) else None)
    answer = jsonify({"server": shown | {"adminPass": view.password(given["password"])}})
    answer.status_code = 202
    answer.headers["Location"] = f"{deployment().settings.base_url}/compute/v2.1/servers/{server_id}"
    return answer


def _rebuild_body() -> Body:
    """Return the form of a rebuild at the microversion of the request."""
    if zone_chain.is_forwarded() and since(54):
        return action_bodies.REBUILD_FORWARDED
    if since(57):
        return action_bodies.REBUILD
    return action_bodies.REBUILD_54_TO_56 if since(54) else action_bodies.REBUILD_TO_53


def _public_key(server_id: str, values: Values) -> str | None:
    """Return the public key that a parent zone sent with a key_name; None: the key pair of a rebuild is one of here.

    The user who created the server must have the key pair. A child zone that has the server gets its public key.
    """
    if "key_name" not in values:
        return None
    name, public_key = values["key_name"], values.get("public_key", "")
    if zone_chain.is_forwarded():
        if name is not None and not public_key:
            raise Forbidden(ONLY_ITS_USER)
        return str(public_key)
    placed_for = placed_servers.user_of(compute(), validation.path_id(server_id), validation.own_project())
    if placed_for == caller().user_id and name is not None:
        routing.send_along("rebuild", {"public_key": request_body.public_key(name)})
    user_id = placed_for or find(server_id).user_id
    if user_id != caller().user_id:
        raise Forbidden(ONLY_ITS_USER)
    request_body.known_key(name)
    return None


def _user_data(server_id: str, values: Values) -> str | None:
    """Return the user data of a server after its rebuild; a top cell knows only what the request has."""
    if "user_data" in values:
        sent: str | None = values["user_data"]
        return sent
    return server_details.user_data(compute(), [server_id]).get(server_id)


def rescue(server_id: str, details: object) -> Response:
    """Start the server from an image, with its own disk behind; by default from the image of the server."""
    validation.may_write()
    given = action_bodies.RESCUE.read_value(details, "rescue")
    image_id = None if given["image_ref"] is None else request_body.image(given["image_ref"])
    server_operations.rescue(compute(), who(server_id), image_id)
    return jsonify({"adminPass": view.password(given["password"])})
