"""Ports, which are the interfaces of servers: made and dropped with those, or by actions on them."""

from typing import Any
from uuid import UUID

from flask import Blueprint, request

from api.compute import asked
from api.current import compute
from api.network import shown
from api.network.picking import fitting, one
from climate.compute.store import addresses
from climate.connections import reading

Body = dict[str, Any]

blueprint = Blueprint("network-ports", __name__, url_prefix="/network/v2.0")


@blueprint.get("/ports")
def listing() -> Body:
    """The interfaces that fit the query."""
    asked.may_read()
    server_id = request.args.get("device_id")
    if server_id is None:
        return {"ports": fitting(_rows())}
    return {"ports": fitting(_rows(server_id=own) if (own := _id(server_id)) else [])}


@blueprint.get("/ports/<port_id>")
def show(port_id: str) -> Body:
    """One interface."""
    asked.may_read()
    return {"port": one(_rows(port_id=asked.path_id(port_id, "Port")), port_id, "Port")}


def _id(text: str) -> str | None:
    """The id of a server; None: it is none, and nothing is there."""
    try:
        return str(UUID(text))
    except ValueError:
        return None


def _rows(**wanted: str) -> list[Body]:
    with reading(compute().engine) as conn:
        rows = addresses.ports(conn, {**wanted, "project_id": asked.own_project()})
        return [shown.port(row) for row in rows]
