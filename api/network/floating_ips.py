"""Floating addresses: taken from a pool, let to stand for a server's, given back."""

from ipaddress import IPv4Address
from typing import Any

from flask import Blueprint
from sqlalchemy import Connection

from api.body import read_object
from api.compute import validation as asked
from api.compute.networks import ip_validation
from api.network import validation as given
from api.network import views
from api.network.filters import fitting, one
from api.request_context import caller, compute
from climate.compute.errors import Conflict, NotFound, QuotaExceeded
from climate.compute.network import floating_ips
from climate.compute.network.managers import MANAGERS
from climate.compute.store.networks import floating_ips as rows
from climate.compute.store.networks import floating_pools
from climate.compute.store.networks.floating_ips import Fixed, Floating
from climate.connections import reading
from climate.domain.errors import InvalidInput

Body = dict[str, Any]

blueprint = Blueprint("network-floating", __name__, url_prefix="/network/v2.0")

NEW = frozenset(
    {"floating_network_id", "subnet_id", "floating_ip_address", "port_id", "fixed_ip_address", "description"}
)
WHOSE = frozenset({"project_id", "tenant_id"})
CHANGED = frozenset({"port_id", "fixed_ip_address", "description"})
NAMES = frozenset({"dns_name", "dns_domain", "qos_policy_id"})
"""What clients send, empty, and what changes nothing here."""


@blueprint.get("/floatingips")
def listing() -> Body:
    """The floating addresses that fit the query."""
    return {"floatingips": fitting(_all())}


@blueprint.get("/floatingips/<floating_id>")
def show(floating_id: str) -> Body:
    """One floating address."""
    return {"floatingip": one(_all(), floating_id, "Floating IP")}


@blueprint.post("/floatingips")
def create() -> tuple[Body, int]:
    """Take a floating address from a pool, any or this one, and let it stand for a server's if one is named.

    To administrators any address of the pool's network is given that nobody has.
    """
    asked.may_write()
    body = given.thing("floatingip", NEW | WHOSE, NAMES)
    project_id = given.project(body) or caller().project_id
    address = body.get("floating_ip_address")
    exact = None if address is None else str(ip_validation.address(address, "floating_ip_address"))
    if exact is not None:
        floating_ips.check_not_own(compute().network, IPv4Address(exact))
    said = given.description(body.get("description"))
    with compute().engine.begin() as conn:
        now = compute().now(conn)
        pool_id = _pool(conn, body)
        fixed = _fixed(conn, body, project_id)
        try:
            if exact is not None and caller().is_admin:
                made = floating_ips.allocate_this(conn, project_id, pool_id, now, address=exact, description=said)
            else:
                made = floating_ips.allocate(conn, project_id, pool_id, now, address=exact, description=said)
        except QuotaExceeded as refusal:
            raise Conflict(str(refusal)) from None
        if fixed is not None:
            floating_ips.associate(conn, made, fixed, now, compute().tell_network)
        return {"floatingip": views.floating(floating_ips.get(conn, made.id))}, 201


@blueprint.put("/floatingips/<floating_id>")
def change(floating_id: str) -> Body:
    """Let a floating address stand for another port, or with null for none; or describe it anew."""
    asked.may_write()
    body = given.thing("floatingip", CHANGED, NAMES | WHOSE)
    own = asked.path_id(floating_id, "Floating IP")
    with compute().engine.begin() as conn:
        fixed = _fixed(conn, body, asked.own_project())
        there = floating_ips.get(conn, own, asked.own_project())
        if "description" in body:
            rows.describe(conn, own, given.description(body["description"]))
        if fixed is None and body.get("fixed_ip_address") is not None:
            fixed = _fixed(conn, {**body, "port_id": _port(there)}, there.project_id)
        if "port_id" in body or fixed is not None:
            _move(conn, there, fixed)
        return {"floatingip": views.floating(floating_ips.get(conn, own))}


@blueprint.put("/floatingips/<floating_id>/tags")
def tag(floating_id: str) -> Body:
    """Let a floating address have these tags and no others."""
    asked.may_write()
    own = asked.path_id(floating_id, "Floating IP")
    body = read_object()
    if set(body) != {"tags"}:
        raise InvalidInput('The body must be {"tags": […]}')
    tags = [asked.name(each, "tags") for each in given.listing(body["tags"], "tags")]
    with compute().engine.begin() as conn:
        floating_ips.get(conn, own, asked.own_project())
        rows.tag(conn, own, sorted(set(tags)))
    return {"tags": sorted(set(tags))}


@blueprint.delete("/floatingips/<floating_id>")
def delete(floating_id: str) -> tuple[str, int]:
    """Give a floating address back to its pool."""
    asked.may_write()
    own = asked.path_id(floating_id, "Floating IP")
    with compute().engine.begin() as conn:
        there = floating_ips.get(conn, own, asked.own_project())
        floating_ips.release(conn, there, compute().now(conn), compute().tell_network)
    return "", 204


def _all() -> list[Body]:
    asked.may_read()
    with reading(compute().engine) as conn:
        return [views.floating(row) for row in rows.listed(conn, asked.own_project())]


def _pool(conn: Connection, body: Body) -> str:
    """The pool that a body names by its network, and perhaps by its subnet as well."""
    network_id = asked.uuid(body.get("floating_network_id"), "floating_network_id")
    found = next((pool for pool in floating_pools.pools(conn) if pool["id"] == network_id), None)
    if found is None:
        raise NotFound(f"Network {network_id} could not be found, or is no external one")
    if body.get("subnet_id") not in (None, found["subnet_id"]):
        raise InvalidInput(f"subnet_id must be the subnet of the external network, {found['subnet_id']}")
    return str(found["id"])


def _fixed(conn: Connection, body: Body, project_id: str | None) -> Fixed | None:
    """The address of the port that a body names; None: it names none.  NotFound."""
    if body.get("port_id") is None:
        return None
    port_id = asked.uuid(body["port_id"], "port_id")
    address = body.get("fixed_ip_address")
    exact = None if address is None else str(ip_validation.address(address, "fixed_ip_address"))
    found = floating_ips.fixed(conn, project_id, port_id=port_id, address=exact)
    if not MANAGERS[found.manager].FLOATING:
        raise NotFound(f"The network of port {port_id} has no floating addresses: its manager is {found.manager}")
    return found


def _port(there: Floating) -> str:
    if there.port_id is None:
        raise InvalidInput("fixed_ip_address needs port_id: the floating address stands for no port")
    return there.port_id


def _move(conn: Connection, there: Floating, fixed: Fixed | None) -> None:
    now = compute().now(conn)
    stands_for = (there.fixed_network_id, there.fixed_address)
    if fixed is not None and stands_for == (fixed.network_id, fixed.address):
        return
    if there.fixed_address is not None:
        floating_ips.disassociate(conn, there, now, compute().tell_network)
    if fixed is not None:
        floating_ips.associate(conn, floating_ips.get(conn, there.id), fixed, now, compute().tell_network)
