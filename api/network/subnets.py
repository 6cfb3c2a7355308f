"""Subnets: each network has exactly one once it can be used."""

from flask import Blueprint

from api.body import read_object
from api.compute import validation
from api.network import bodies, views
from api.network.bulk import entries
from api.network.filters import fitting, one, selected_fields
from api.request_context import caller, compute
from api.schema.body import Values
from climate.compute.errors import Conflict
from climate.compute.network.networks_without_subnet import Range, Stretch
from climate.compute.network.operations import subnets
from climate.compute.network.operations.subnets import Subnets
from climate.compute.network.project_networks import Subnet
from climate.domain.errors import InvalidInput

Body = dict[str, object]

blueprint = Blueprint("network-subnets", __name__, url_prefix="/network/v2.0")


FIELDS = {
    "name": "name",
    "gateway_ip": "gateway",
    "dns_nameservers": "dns",
    "host_routes": "routes",
    "allocation_pools": "ranges",
}
"""Keys of a body, and the fields of a subnet."""


@blueprint.get("/subnets")
def listing() -> Body:
    """List the subnets that match the query."""
    return {"subnets": fitting(_all())}


@blueprint.get("/subnets/<subnet_id>")
def show(subnet_id: str) -> Body:
    """One subnet."""
    return {"subnet": selected_fields(one(_all(), subnet_id, "Subnet"))}


@blueprint.post("/subnets")
def create() -> tuple[Body, int]:
    """Create the subnet of a network, and with it the network's bridge and addresses.

    Several below `subnets` are created all or none, if projects created their networks.
    """
    validation.may_write()
    given, many = entries(read_object(), "subnet", bodies.SUBNET)
    of_projects = subnets.is_by_project(compute(), [one["network_id"] for one in given])
    if of_projects or not caller().is_admin:
        wanted = [(one["network_id"], _of_project(one)) for one in given]
        made = [views.subnet(row) for row in subnets.create_for_project(compute(), wanted, validation.own_project())]
    else:
        made = [_created(one) for one in given]
    return ({"subnets": made} if many else {"subnet": made[0]}), 201


def _created(values: Values) -> Body:
    network_id = values["network_id"]
    if values.get("host_routes"):
        raise InvalidInput("host_routes are only supported for networks that projects create")
    rows = _views(subnets.create(compute(), network_id, _range(values), dhcp=values["enable_dhcp"]))
    return next(row for row in rows if row["network_id"] == network_id)


def _of_project(values: Values) -> Subnet:
    if values["enable_dhcp"] is False:
        raise InvalidInput("enable_dhcp cannot be false: networks of projects are served by DHCP")
    cidr = values["cidr"]
    return Subnet(
        cidr=cidr,
        gateway=values.get("gateway_ip", cidr[1]),
        name=values.get("name"),
        dns=values["dns_nameservers"] or (),
        ranges=values["allocation_pools"],
        routes=values.get("host_routes", ()),
    )


@blueprint.put("/subnets/<subnet_id>")
def change(subnet_id: str) -> Body:
    """Update the subnet of a network that a project created, or the allocation ranges of an external network."""
    before = one(_all(), subnet_id, "Subnet")
    validation.may_write()
    given = bodies.CHANGED_SUBNET.read(read_object())
    if given.get("enable_dhcp") is False and before["enable_dhcp"]:
        raise Conflict(f"Subnet {subnet_id} is served by DHCP, which cannot be disabled")
    own = subnets.change_of_project(compute(), subnet_id, validation.own_project(), _changes(given))
    return {"subnet": _reshaped(subnet_id, given) if own is None else views.subnet(own)}


def _changes(values: Values) -> Body:
    return {field: values[key] for key, field in FIELDS.items() if key in values}


def _reshaped(subnet_id: str, values: Values) -> Body:
    """Update the allocation ranges of an external network; other subnets cannot be changed."""
    fixed = next((key for key in ("gateway_ip", "dns_nameservers", "host_routes") if key in values), None)
    if fixed is not None:
        raise Conflict(f"{fixed} of subnet {subnet_id} cannot be changed: no project created its network")
    stretches = values.get("allocation_pools")
    changed = subnets.reshape(compute(), subnet_id, stretches)
    view = one(_views(changed), subnet_id, "Subnet")
    is_pool = any(pool.subnet_id == subnet_id for pool in changed.pools)
    if stretches is not None and not is_pool and _shown(stretches) != view["allocation_pools"]:
        raise Conflict(f"Subnet {subnet_id} belongs to a network of servers, whose addresses cannot be changed")
    return view


@blueprint.delete("/subnets/<subnet_id>")
def delete(subnet_id: str) -> tuple[str, int]:
    """Delete the subnet of a network that a project created; another is deleted with its network."""
    view = one(_all(), subnet_id, "Subnet")
    validation.may_write()
    if subnets.delete_of_project(compute(), subnet_id, validation.own_project()):
        return "", 204
    raise Conflict(f"Subnet {subnet_id} is deleted with its network: delete network {view['network_id']}")


def _all() -> list[Body]:
    validation.may_read()
    return _views(subnets.listed(compute(), validation.own_project()))


def _views(networks: Subnets) -> list[Body]:
    outside = [views.pool_subnet(pool, networks.ranges) for pool in networks.pools]
    return [*map(views.subnet, networks.inside), *outside]


def _range(values: Values) -> Range:
    """Return the range of a subnet; its gateway is the first address, unless the body names another or none (null)."""
    cidr = values["cidr"]
    return Range(cidr, values.get("gateway_ip", cidr[1]), values["dns_nameservers"], values["allocation_pools"])


def _shown(stretches: tuple[Stretch, ...]) -> list[dict[str, str]]:
    return [{"start": str(first), "end": str(last)} for first, last in stretches]
