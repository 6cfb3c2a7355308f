"""Floating IPs: allocate, associate and release."""

from ipaddress import IPv4Address

from flask import Blueprint

from api.body import read_object
from api.compute import validation
from api.network import bodies, views
from api.network.filters import fitting, one
from api.request_context import caller, compute
from api.schema.body import Values
from climate.compute.network import floating_ips as floating
from climate.compute.network.operations import floating_ips
from climate.compute.network.operations.floating_ips import ChangedFloating, NewFloating, PortAddress

Body = dict[str, object]

blueprint = Blueprint("network-floating", __name__, url_prefix="/network/v2.0")


@blueprint.get("/floatingips")
def listing() -> Body:
    """List the floating IPs that match the query."""
    return {"floatingips": fitting(_all())}


@blueprint.get("/floatingips/<floating_id>")
def show(floating_id: str) -> Body:
    """Show one floating IP."""
    return {"floatingip": one(_all(), floating_id, "Floating IP")}


@blueprint.post("/floatingips")
def create() -> tuple[Body, int]:
    """Allocate a floating IP from a pool, and associate it with a server's port if one is named.

    Administrators may name any free address of the pool's network.
    """
    validation.may_write()
    given = bodies.FLOATING.read(read_object())
    project_id = bodies.project(given) or caller().project_id
    exact = given["floating_ip_address"]
    if exact is not None:
        floating.check_not_own(compute().network, IPv4Address(exact))
    wanted = NewFloating(
        project_id=project_id,
        network_id=given["floating_network_id"],
        subnet_id=given["subnet_id"],
        address=exact,
        is_any_allowed=caller().is_admin,
        description=given.get("description", ""),
        port=_port(given),
    )
    return {"floatingip": views.floating(floating_ips.create(compute(), wanted))}, 201


@blueprint.put("/floatingips/<floating_id>")
def change(floating_id: str) -> Body:
    """Associate a floating IP with another port, or with null disassociate it; or update its description."""
    validation.may_write()
    given = bodies.CHANGED_FLOATING.read(read_object())
    own = validation.path_id(floating_id, "Floating IP")
    wanted = ChangedFloating(
        is_moved="port_id" in given,
        port=_port(given),
        address=given["fixed_ip_address"],
        description=given.get("description"),
    )
    return {"floatingip": views.floating(floating_ips.change(compute(), own, validation.own_project(), wanted))}


@blueprint.put("/floatingips/<floating_id>/tags")
def tag(floating_id: str) -> Body:
    """Replace the tags of a floating IP."""
    validation.may_write()
    own = validation.path_id(floating_id, "Floating IP")
    tags = bodies.TAGS.read(read_object())["tags"]
    floating_ips.set_tags(compute(), own, validation.own_project(), tags)
    return {"tags": tags}


@blueprint.delete("/floatingips/<floating_id>")
def delete(floating_id: str) -> tuple[str, int]:
    """Release a floating IP to its pool."""
    validation.may_write()
    own = validation.path_id(floating_id, "Floating IP")
    floating_ips.release(compute(), own, validation.own_project())
    return "", 204


def _all() -> list[Body]:
    validation.may_read()
    return [views.floating(row) for row in floating_ips.listed(compute(), validation.own_project())]


def _port(values: Values) -> PortAddress | None:
    """Return the port in the body and its fixed IP; None if there is none."""
    port_id = values.get("port_id")
    return None if port_id is None else PortAddress(port_id, values["fixed_ip_address"])
