"""Ports: those that projects create, and the interfaces of servers."""

from uuid import UUID

from flask import Blueprint, request

from api.body import read_object
from api.compute import validation
from api.compute.servers.servers import by
from api.network import bodies, port_bodies, views
from api.network.bulk import entries
from api.network.filters import fitting, one, selected_fields
from api.request_context import caller, compute
from api.schema.body import Values
from climate.compute.models.security_group import default_id
from climate.compute.network.operations import ports
from climate.compute.network.operations.ports import ChangedPort
from climate.compute.network.ports import NewPort

Body = dict[str, object]

blueprint = Blueprint("network-ports", __name__, url_prefix="/network/v2.0")


@blueprint.get("/ports")
def listing() -> Body:
    """List the ports that match the query."""
    validation.may_read()
    server_id = _id(request.args.get("device_id"))
    of_server = _rows(server_id=server_id) if server_id is not None else []
    return {"ports": fitting(of_server or _rows())}


@blueprint.get("/ports/<port_id>")
def show(port_id: str) -> Body:
    """Show one port."""
    validation.may_read()
    return {"port": selected_fields(one(_rows(port_id=validation.path_id(port_id, "Port")), port_id, "Port"))}


@blueprint.post("/ports")
def create() -> tuple[Body, int]:
    """Create a port, or several below `ports`, all or none."""
    validation.may_write()
    given, many = entries(read_object(), "port", port_bodies.PORT)
    wanted = [_new_port(one) for one in given]
    made = [views.port(row) for row in ports.create(compute(), wanted, validation.own_project())]
    return ({"ports": made} if many else {"port": made[0]}), 201


@blueprint.put("/ports/<port_id>")
def change(port_id: str) -> Body:
    """Update a port: its addresses and security groups reach the server that has it."""
    validation.may_read()
    own = validation.path_id(port_id, "Port")
    one(_rows(port_id=own), port_id, "Port")
    validation.may_write()
    given = port_bodies.CHANGED_PORT.read(read_object())
    wanted = ChangedPort(given.get("fixed_ips"), given.get("security_groups"), port_bodies.properties(given))
    return {"port": views.port(ports.change(compute(), own, (validation.own_project(), by()), wanted))}


@blueprint.delete("/ports/<port_id>")
def delete(port_id: str) -> tuple[str, int]:
    """Delete a port with its addresses; a server that has it loses the interface."""
    validation.may_read()
    own = validation.path_id(port_id, "Port")
    one(_rows(port_id=own), port_id, "Port")
    validation.may_write()
    ports.delete(compute(), own, (validation.own_project(), by()))
    return "", 204


def _new_port(values: Values) -> NewPort:
    project_id = bodies.project(values) or caller().project_id
    groups = values.get("security_groups")
    return NewPort(
        project_id=project_id,
        network_id=values["network_id"],
        fixed_ips=values.get("fixed_ips"),
        mac=values["mac_address"],
        security_groups=(default_id(project_id),) if groups is None else groups,
        properties=port_bodies.properties(values),
    )


def _id(text: str | None) -> str | None:
    """Return the id of a server; None if it is not an id."""
    try:
        return None if text is None else str(UUID(text))
    except ValueError:
        return None


def _rows(**wanted: str) -> list[Body]:
    return [views.port(row) for row in ports.listed(compute(), validation.own_project(), **wanted)]
