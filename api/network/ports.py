"""Ports, which are the interfaces of servers; server actions create and delete them."""

from uuid import UUID

from flask import Blueprint, request

from api.compute import validation
from api.network import views
from api.network.filters import fitting, one
from api.request_context import compute
from climate.compute.network.operations import overview

Body = dict[str, object]

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


def _id(text: str) -> str | None:
    """Return the id of a server; None if it is not an id, so that nothing matches."""
    try:
        return str(UUID(text))
    except ValueError:
        return None


def _rows(**wanted: str) -> list[Body]:
    return [views.port(row) for row in overview.ports(compute(), validation.own_project(), **wanted)]
