"""Subnets: each network has exactly one once it can be used."""

from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network
from typing import Any, TypeVar

from flask import Blueprint

from api.compute import validation as asked
from api.compute.networks import ip_validation
from api.network import validation as given
from api.network import views
from api.network.filters import fitting, one
from api.request_context import compute
from climate.compute.errors import Conflict
from climate.compute.network.operations import subnets
from climate.compute.network.operations.subnets import Subnets
from climate.compute.network.pending_networks import Range, Stretch
from climate.domain.errors import InvalidInput

Body = dict[str, Any]
T = TypeVar("T")

blueprint = Blueprint("network-subnets", __name__, url_prefix="/network/v2.0")

KNOWN = frozenset(
    {"network_id", "cidr", "ip_version", "gateway_ip", "enable_dhcp", "dns_nameservers", "allocation_pools"}
)
IGNORED = frozenset({"name", "description", "project_id", "tenant_id"})
"""A subnet has the name and the project of its network."""


@blueprint.get("/subnets")
def listing() -> Body:
    """List the subnets that match the query."""
    return {"subnets": fitting(_all())}


@blueprint.get("/subnets/<subnet_id>")
def show(subnet_id: str) -> Body:
    """One subnet."""
    return {"subnet": one(_all(), subnet_id, "Subnet")}


@blueprint.post("/subnets")
def create() -> tuple[Body, int]:
    """Create the subnet of a network, and with it the network's bridge and addresses."""
    asked.may_administer()
    body = given.thing("subnet", KNOWN, IGNORED)
    network_id = asked.uuid(body.get("network_id"), "network_id")
    dhcp = _maybe(body, "enable_dhcp", lambda value: asked.flag(value, "enable_dhcp"), None)
    found = _views(subnets.create(compute(), network_id, _range(body), dhcp=dhcp))
    return {"subnet": next(row for row in found if row["network_id"] == network_id)}, 201


@blueprint.put("/subnets/<subnet_id>")
def change(subnet_id: str) -> Body:
    """Update the allocation ranges of an external network; other subnets cannot be changed."""
    asked.may_administer()
    body = given.thing("subnet", {"allocation_pools"}, IGNORED)
    stretches = _stretches(body) if "allocation_pools" in body else None
    changed = subnets.reshape(compute(), subnet_id, stretches)
    found = one(_views(changed), subnet_id, "Subnet")
    is_pool = any(pool["subnet_id"] == subnet_id for pool in changed.pools)
    if stretches is not None and not is_pool and body["allocation_pools"] != found["allocation_pools"]:
        raise Conflict(f"Subnet {subnet_id} belongs to a network of servers, whose addresses cannot be changed")
    return {"subnet": found}


@blueprint.delete("/subnets/<subnet_id>")
def delete(subnet_id: str) -> tuple[str, int]:
    """Refuse to delete a subnet, which is deleted with its network."""
    asked.may_administer()
    found = one(_views(subnets.listed(compute(), None)), subnet_id, "Subnet")
    raise Conflict(f"Subnet {subnet_id} is deleted with its network: delete network {found['network_id']}")


def _all() -> list[Body]:
    asked.may_read()
    return _views(subnets.listed(compute(), asked.own_project()))


def _views(found: Subnets) -> list[Body]:
    outside = [views.pool_subnet(pool, found.ranges) for pool in found.pools]
    return [*map(views.subnet, found.inside), *outside]


def _range(body: Body) -> Range:
    if body.get("ip_version", 4) not in (4, "4"):
        raise InvalidInput("ip_version must be 4; CLIMATE_USE_IPV6 adds IPv6 prefixes")
    cidr = ip_validation.cidr(body.get("cidr"), "cidr")
    if cidr.prefixlen > 30:
        raise InvalidInput(f"cidr {cidr} has no room for a gateway and a server")
    stretches = _stretches(body)
    dns = _maybe(body, "dns_nameservers", lambda value: given.listing(value, "dns_nameservers"), None)
    servers = None if dns is None else tuple(ip_validation.address(entry, "dns_nameservers") for entry in dns)
    return Range(cidr, _gateway(body, cidr), servers, stretches)


def _gateway(body: Body, cidr: IPv4Network) -> IPv4Address | None:
    """Return the gateway: the first address of the range, unless the body names another one or none (null)."""
    value = body.get("gateway_ip", str(cidr[1]))
    return None if value is None else ip_validation.address(value, "gateway_ip")


def _maybe(body: Body, key: str, read: Callable[[Any], T], otherwise: T) -> T:
    return otherwise if body.get(key) is None else read(body[key])


def _stretches(body: Body) -> tuple[Stretch, ...]:
    entries = given.listing(body.get("allocation_pools") or [], "allocation_pools")
    return tuple(_stretch(entry) for entry in entries)


def _stretch(entry: Any) -> Stretch:
    if not isinstance(entry, dict) or set(entry) != {"start", "end"}:
        raise InvalidInput('allocation_pools must be like [{"start": "203.0.113.10", "end": "203.0.113.20"}]')
    first = ip_validation.address(entry["start"], "allocation_pools.start")
    last = ip_validation.address(entry["end"], "allocation_pools.end")
    if first > last:
        raise InvalidInput(f"allocation_pools: {first} comes after {last}")
    return first, last
