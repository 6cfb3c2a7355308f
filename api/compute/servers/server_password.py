"""Password that a guest has posted to its metadata service."""

from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.servers.servers import find
from api.request_context import compute
from climate.compute.metadata import guest_password

blueprint = compute_blueprint("server-password")


@blueprint.get("/servers/<server_id>/os-server-password")
def show(server_id: str) -> dict[str, str]:
    """Show the password of a server, encrypted with its key; it is empty while no guest has posted one."""
    return {"password": guest_password.of_server(compute(), find(server_id).id)}


@blueprint.delete("/servers/<server_id>/os-server-password")
def clear(server_id: str) -> tuple[str, int]:
    """Delete the password of a server from the cloud, not from the guest."""
    validation.may_write()
    guest_password.delete(compute(), find(server_id).id)
    return "", 204
