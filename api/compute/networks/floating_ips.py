"""Floating IPs of Compute, below microversion 2.36; strict clients refuse keys that Nova does not have."""

from flask import request

from api.body import read_object
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import proxied
from api.compute.networks.network_bodies import ALLOCATED, ASSOCIATION
from api.request_context import caller, compute
from climate.compute.errors import NoMoreFloatingAddresses
from climate.compute.network.operations import floating_ips, floating_pools
from climate.compute.store.networks.floating_ips import Floating
from climate.domain.errors import NotFound

Body = dict[str, object]

blueprint = compute_blueprint("floating-ips")
blueprint.before_request(proxied)


@blueprint.get("/os-floating-ip-pools")
def pools() -> Body:
    """List the floating IP pools."""
    validation.may_read()
    return {"floating_ip_pools": [{"name": pool.name} for pool in floating_pools.listed(compute())]}


@blueprint.get("/os-floating-ips")
def listing() -> Body:
    """List the floating IPs of the caller's project."""
    validation.may_read()
    addresses = floating_ips.listed(compute(), caller().project_id)
    return {"floating_ips": [_view(row) for row in addresses]}


@blueprint.get("/os-floating-ips/<floating_id>")
def show(floating_id: str) -> Body:
    """Show a floating IP."""
    validation.may_read()
    own = validation.path_id(floating_id, "Floating IP")
    return {"floating_ip": _view(floating_ips.get(compute(), own, validation.own_project()))}


@blueprint.post("/os-floating-ips")
def allocate() -> Body:
    """Allocate a floating IP from the named pool, or from the default pool."""
    validation.may_write()
    name = ALLOCATED.read(read_object() if request.get_data(cache=True) else {})["pool"]
    try:
        made = floating_ips.allocate(compute(), caller().project_id, name)
    except NoMoreFloatingAddresses as refusal:
        raise NotFound(str(refusal)) from None
    return {"floating_ip": _view(made)}


@blueprint.delete("/os-floating-ips/<floating_id>")
def release(floating_id: str) -> tuple[str, int]:
    """Release a floating IP to its pool."""
    validation.may_write()
    own = validation.path_id(floating_id, "Floating IP")
    floating_ips.release(compute(), own, validation.own_project())
    return "", 202


@blueprint.post("/os-floating-ips/<floating_id>/associate")
def associate(floating_id: str) -> Body:
    """Associate a floating IP with a fixed IP of one of the project's servers."""
    validation.may_write()
    fixed_ip = str(ASSOCIATION.read(read_object())["fixed_ip"])
    own = validation.path_id(floating_id, "Floating IP")
    there = floating_ips.associate(compute(), own, validation.own_project(), fixed_ip)
    return {"associated": {"floating_ip_id": there.id, "floating_ip": there.address, "fixed_ip": fixed_ip}}


@blueprint.post("/os-floating-ips/<floating_id>/disassociate")
def disassociate(floating_id: str) -> Body:
    """Disassociate a floating IP from its server."""
    validation.may_write()
    own = validation.path_id(floating_id, "Floating IP")
    there = floating_ips.disassociate(compute(), own, validation.own_project())
    return {"disassociated": {"floating_ip": there.address, "fixed_ip": there.fixed_address}}


def _view(row: Floating) -> Body:
    return {
        "id": row.id,
        "ip": row.address,
        "fixed_ip": row.fixed_address,
        "instance_id": row.server_id,
        "pool": row.pool,
    }
