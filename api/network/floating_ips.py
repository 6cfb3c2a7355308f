"""Floating IPs: allocate, associate and release."""

from ipaddress import IPv4Address
from typing import Any

from flask import Blueprint

from api.body import read_object
from api.compute import validation as asked
from api.compute.networks import ip_validation
from api.network import validation as given
from api.network import views
from api.network.filters import fitting, one
from api.request_context import caller, compute
from climate.compute.errors import Conflict, QuotaExceeded
from climate.compute.network import floating_ips as floating
from climate.compute.network.operations import floating_ips
from climate.compute.network.operations.floating_ips import ChangedFloating, NewFloating, PortAddress
from climate.domain.errors import InvalidInput

Body = dict[str, Any]

blueprint = Blueprint("network-floating", __name__, url_prefix="/network/v2.0")

NEW = frozenset(
    {"floating_network_id", "subnet_id", "floating_ip_address", "port_id", "fixed_ip_address", "description"}
)
WHOSE = frozenset({"project_id", "tenant_id"})
CHANGED = frozenset({"port_id", "fixed_ip_address", "description"})
NAMES = frozenset({"dns_name", "dns_domain", "qos_policy_id"})
"""Keys that clients send empty and that have no effect."""


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
    asked.may_write()
    body = given.thing("floatingip", NEW | WHOSE, NAMES)
    project_id = given.project(body) or caller().project_id
    exact = _address(body, "floating_ip_address")
    if exact is not None:
        floating.check_not_own(compute().network, IPv4Address(exact))
    wanted = NewFloating(
        project_id=project_id,
        network_id=asked.uuid(body.get("floating_network_id"), "floating_network_id"),
        subnet_id=body.get("subnet_id"),
        address=exact,
        is_any_allowed=caller().is_admin,
        description=given.description(body.get("description")),
        port=_port(body),
    )
    try:
        return {"floatingip": views.floating(floating_ips.create(compute(), wanted))}, 201
    except QuotaExceeded as refusal:
        raise Conflict(str(refusal)) from None


@blueprint.put("/floatingips/<floating_id>")
def change(floating_id: str) -> Body:
    """Associate a floating IP with another port, or with null disassociate it; or update its description."""
    asked.may_write()
    body = given.thing("floatingip", CHANGED, NAMES | WHOSE)
    own = asked.path_id(floating_id, "Floating IP")
    wanted = ChangedFloating(
        is_moved="port_id" in body,
        port=_port(body),
        address=_address(body, "fixed_ip_address"),
        description=given.description(body["description"]) if "description" in body else None,
    )
    return {"floatingip": views.floating(floating_ips.change(compute(), own, asked.own_project(), wanted))}


@blueprint.put("/floatingips/<floating_id>/tags")
def tag(floating_id: str) -> Body:
    """Replace the tags of a floating IP."""
    asked.may_write()
    own = asked.path_id(floating_id, "Floating IP")
    body = read_object()
    if set(body) != {"tags"}:
        raise InvalidInput('The body must be {"tags": […]}')
    tags = [asked.name(each, "tags") for each in given.listing(body["tags"], "tags")]
    floating_ips.set_tags(compute(), own, asked.own_project(), sorted(set(tags)))
    return {"tags": sorted(set(tags))}


@blueprint.delete("/floatingips/<floating_id>")
def delete(floating_id: str) -> tuple[str, int]:
    """Release a floating IP to its pool."""
    asked.may_write()
    own = asked.path_id(floating_id, "Floating IP")
    floating_ips.release(compute(), own, asked.own_project())
    return "", 204


def _all() -> list[Body]:
    asked.may_read()
    return [views.floating(row) for row in floating_ips.listed(compute(), asked.own_project())]


def _port(body: Body) -> PortAddress | None:
    """Return the port in the body and its fixed IP; None if there is none."""
    if body.get("port_id") is None:
        return None
    return PortAddress(asked.uuid(body["port_id"], "port_id"), _address(body, "fixed_ip_address"))


def _address(body: Body, key: str) -> str | None:
    return None if body.get(key) is None else str(ip_validation.address(body[key], key))
