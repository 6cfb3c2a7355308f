"""Bulk creation and deletion of floating IPs, for administrators; below microversion 2.36."""

from api.body import read_object
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import proxied
from api.compute.networks import network_bodies
from api.request_context import compute
from climate.compute.network.operations import floating_ips, floating_pools
from climate.compute.store.networks.floating_ips import Floating
from climate.domain.errors import NotFound

Body = dict[str, object]

blueprint = compute_blueprint("floating-bulk")
blueprint.before_request(proxied)

CREATE, DELETE = "floating_ips_bulk_create", "floating_ips_bulk_delete"


@blueprint.get("/os-floating-ips-bulk")
def listing() -> Body:
    """List the floating IPs of all pools with their projects."""
    return {"floating_ip_info": [_view(row) for row in _rows()]}


@blueprint.get("/os-floating-ips-bulk/<host>")
def of_host(host: str) -> Body:
    """List the floating IPs that a network service serves."""
    views = [_view(row) for row in _rows() if row.host == host]
    if not views:
        raise NotFound(f"No floating addresses are served by host {host[:80]}.")
    return {"floating_ip_info": views}


@blueprint.post("/os-floating-ips-bulk")
def create() -> Body:
    """Create a range of floating IPs in a pool; the pool is created if it does not exist."""
    validation.may_administer()
    given = network_bodies.BULK.read(read_object())
    stretch, shown = given["ip_range"]
    name = given["pool"] or validation.name(compute().network.floating_pool, "pool")
    interface = floating_pools.add_range(compute(), name, stretch, network_bodies.pool_fields(given))
    return {CREATE: {"ip_range": shown, "pool": name, "interface": interface}}


@blueprint.put("/os-floating-ips-bulk/delete")
def delete() -> Body:
    """Delete a range of floating IPs, none of which a project has."""
    validation.may_administer()
    (first, last), shown = network_bodies.DROPPED.read(read_object())["ip_range"]
    floating_pools.remove_range(compute(), first, last)
    return {DELETE: shown}


def _rows() -> list[Floating]:
    validation.may_administer()
    return floating_ips.listed(compute(), None, free=True)


def _view(row: Floating) -> Body:
    return {
        "address": row.address,
        "pool": row.pool,
        "interface": row.interface,
        "project_id": row.project_id,
        "instance_uuid": row.server_id,
        "fixed_ip": row.fixed_address,
    }
