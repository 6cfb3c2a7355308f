"""Subnets: each network has exactly one once it can be used."""

from typing import Any

from flask import Blueprint

from api.body import read_object
from api.compute import validation as asked
from api.network import bodies, views
from api.network.filters import fitting, one, shown
from api.request_context import compute
from climate.compute.errors import Conflict
from climate.compute.network.operations import subnets
from climate.compute.network.operations.subnets import Subnets
from climate.compute.network.pending_networks import Range, Stretch

Body = dict[str, Any]

blueprint = Blueprint("network-subnets", __name__, url_prefix="/network/v2.0")


@blueprint.get("/subnets")
def listing() -> Body:
    """List the subnets that match the query."""
    return {"subnets": fitting(_all())}


@blueprint.get("/subnets/<subnet_id>")
def show(subnet_id: str) -> Body:
    """One subnet."""
    return {"subnet": shown(one(_all(), subnet_id, "Subnet"))}


@blueprint.post("/subnets")
def create() -> tuple[Body, int]:
    """Create the subnet of a network, and with it the network's bridge and addresses."""
    asked.may_administer()
    given = bodies.SUBNET.read(read_object())
    network_id = given["network_id"]
    views = _views(subnets.create(compute(), network_id, _range(given), dhcp=given["enable_dhcp"]))
    return {"subnet": next(row for row in views if row["network_id"] == network_id)}, 201


@blueprint.put("/subnets/<subnet_id>")
def change(subnet_id: str) -> Body:
    """Update the allocation ranges of an external network; other subnets cannot be changed."""
    one(_all(), subnet_id, "Subnet")
    asked.may_administer()
    stretches = bodies.CHANGED_SUBNET.read(read_object()).get("allocation_pools")
    changed = subnets.reshape(compute(), subnet_id, stretches)
    view = one(_views(changed), subnet_id, "Subnet")
    is_pool = any(pool.subnet_id == subnet_id for pool in changed.pools)
    if stretches is not None and not is_pool and _shown(stretches) != view["allocation_pools"]:
        raise Conflict(f"Subnet {subnet_id} belongs to a network of servers, whose addresses cannot be changed")
    return {"subnet": view}


@blueprint.delete("/subnets/<subnet_id>")
def delete(subnet_id: str) -> tuple[str, int]:
    """Refuse to delete a subnet, which is deleted with its network."""
    view = one(_all(), subnet_id, "Subnet")
    asked.may_administer()
    raise Conflict(f"Subnet {subnet_id} is deleted with its network: delete network {view['network_id']}")


def _all() -> list[Body]:
    asked.may_read()
    return _views(subnets.listed(compute(), asked.own_project()))


def _views(networks: Subnets) -> list[Body]:
    outside = [views.pool_subnet(pool, networks.ranges) for pool in networks.pools]
    return [*map(views.subnet, networks.inside), *outside]


def _range(given: Body) -> Range:
    """Return the range of a subnet; its gateway is the first address, unless the body names another or none (null)."""
    cidr = given["cidr"]
    return Range(cidr, given.get("gateway_ip", cidr[1]), given["dns_nameservers"], given["allocation_pools"])


def _shown(stretches: tuple[Stretch, ...]) -> list[dict[str, str]]:
    return [{"start": str(first), "end": str(last)} for first, last in stretches]
