"""Ports, which are the interfaces of servers: created with them or by server actions, and deleted here too."""

from uuid import UUID

from flask import Blueprint, request

from api.body import read_object
from api.compute import validation
from api.compute.servers.servers import by
from api.network import bodies, views
from api.network.filters import fitting, one
from api.request_context import compute
from climate.compute import operations
from climate.compute.network.operations import networks, overview
from climate.compute.servers.interfaces.interfaces import Who
from climate.domain.errors import Forbidden, NotFound

Body = dict[str, object]

OF_SERVERS = "Ports are the interfaces of servers: Compute creates and changes them (os-interface)."

blueprint = Blueprint("network-ports", __name__, url_prefix="/network/v2.0")


@blueprint.get("/ports")
def listing() -> Body:
    """List the ports that match the query."""
    validation.may_read()
    server_id = request.args.get("device_id")
    if server_id is None:
        return {"ports": fitting(_rows())}
    return {"ports": fitting(_rows(server_id=own) if (own := _id(server_id)) else [])}


@blueprint.get("/ports/<port_id>")
def show(port_id: str) -> Body:
    """Show one port."""
    validation.may_read()
    return {"port": one(_rows(port_id=validation.path_id(port_id, "Port")), port_id, "Port")}


@blueprint.post("/ports")
def create() -> Body:
    """Refuse to create a port, which is created with a server or by a server action."""
    validation.may_read()
    network_id = bodies.PORT.read(read_object())["network_id"]
    listed = networks.listed(compute(), validation.own_project())
    own = {row.id for row in listed.inside} | {row.id for row in listed.outlines}
    if network_id not in own | {pool.id for pool in listed.pools}:
        raise NotFound("The network of the port could not be found.")
    raise Forbidden(OF_SERVERS)


@blueprint.put("/ports/<port_id>")
def change(port_id: str) -> Body:
    """Refuse to change a port, which server actions change."""
    show(port_id)
    raise Forbidden(OF_SERVERS)


@blueprint.delete("/ports/<port_id>")
def delete(port_id: str) -> tuple[str, int]:
    """Delete a port: its server loses the interface, with its addresses."""
    validation.may_read()
    port = one(_rows(port_id=validation.path_id(port_id, "Port")), port_id, "Port")
    validation.may_write()
    operations.detach(compute(), Who(str(port["device_id"]), validation.own_project(), by()), str(port["id"]))
    return "", 204


def _id(text: str) -> str | None:
    """Return the id of a server; None if it is not an id, so that nothing matches."""
    try:
        return str(UUID(text))
    except ValueError:
        return None


def _rows(**wanted: str) -> list[Body]:
    return [views.port(row) for row in overview.ports(compute(), validation.own_project(), **wanted)]
