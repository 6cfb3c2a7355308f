"""Password that a guest has posted to its metadata service: none, because that service accepts no posts."""

from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.servers.servers import find

blueprint = compute_blueprint("server-password")


@blueprint.get("/servers/<server_id>/os-server-password")
def show(server_id: str) -> dict[str, str]:
    """Show the password of a server, encrypted with its key; it is empty while no guest has posted one."""
    find(server_id)
    return {"password": ""}


@blueprint.delete("/servers/<server_id>/os-server-password")
def clear(server_id: str) -> tuple[str, int]:
    """Delete the password of a server from the cloud, not from the guest."""
    validation.may_write()
    find(server_id)
    return "", 204
