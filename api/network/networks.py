"""Networks of servers, and external networks, which are pools of floating IPs."""

from typing import Any

from flask import Blueprint

from api.compute import validation as asked
from api.compute.networks import ip_validation
from api.network import validation as given
from api.network import views
from api.network.filters import fitting, one
from api.request_context import compute
from climate.compute.network.models import FLAT_DHCP, VLAN
from climate.compute.network.operations import networks
from climate.compute.network.pending_networks import Drawn
from climate.domain.errors import InvalidInput

Body = dict[str, Any]

blueprint = Blueprint("network-networks", __name__, url_prefix="/network/v2.0")

TYPE, SEGMENT, PHYSICAL = "provider:network_type", "provider:segmentation_id", "provider:physical_network"
OUTSIDE = "router:external"

KNOWN = frozenset({"name", "shared", OUTSIDE, TYPE, SEGMENT, PHYSICAL, "project_id", "tenant_id"})
IGNORED = frozenset({"admin_state_up", "port_security_enabled", "is_default", "description", "availability_zone_hints"})
"""Keys that clients send and that have no effect."""


@blueprint.get("/networks")
def listing() -> Body:
    """List the networks that match the query."""
    return {"networks": fitting(_all())}


@blueprint.get("/networks/<network_id>")
def show(network_id: str) -> Body:
    """Show one network by its id; names are not accepted."""
    return {"network": one(_all(), network_id, "Network")}


@blueprint.post("/networks")
def create() -> tuple[Body, int]:
    """Create a network or a pool of floating IPs without addresses; servers can use it after it has a subnet."""
    asked.may_administer()
    drawn = _drawn(given.thing("network", KNOWN, IGNORED))
    return {"network": views.outline(networks.create_outline(compute(), drawn))}, 201


@blueprint.delete("/networks/<network_id>")
def delete(network_id: str) -> tuple[str, int]:
    """Delete an unused network with its subnet."""
    asked.may_administer()
    networks.delete_any(compute(), asked.path_id(network_id, "Network"))
    return "", 204


def _all() -> list[Body]:
    """Return all networks that the caller may see; networks without a subnet only for administrators."""
    asked.may_read()
    found = networks.listed(compute(), asked.own_project())
    outside = [*map(views.pool, found.pools), *map(views.outline, found.outlines)]
    return [*map(views.network, found.inside), *outside]


def _drawn(body: Body) -> Drawn:
    name = asked.name(body.get("name"))
    manager = None if asked.flag(body.get(OUTSIDE, False), OUTSIDE) else _manager(body.get(TYPE))
    if manager is None and body.get(TYPE) not in (None, views.FLAT_TYPE):
        raise InvalidInput(f"{TYPE} of an external network must be {views.FLAT_TYPE}")
    if body.get("shared") is not None and asked.flag(body["shared"], "shared") != _shared(manager):
        right = "everybody's" if _shared(manager) else "one project's" if manager == VLAN else "nobody's to boot in"
        raise InvalidInput(f"shared: a network of this type must be {right}")
    segment = body.get(SEGMENT)
    vlan = None if segment is None else asked.count(segment, SEGMENT, 1, 4094)
    return Drawn(name, manager, ip_validation.interface(body.get(PHYSICAL), PHYSICAL), vlan, given.project(body))


def _shared(manager: str | None) -> bool:
    return manager is not None and manager != VLAN


def _manager(kind: Any) -> str:
    """Return the manager of a network type; for flat networks the deployment's manager, if it is a flat one."""
    ours = compute().network.manager
    if kind is None:
        return ours
    if kind == views.VLAN_TYPE:
        return VLAN
    if kind == views.FLAT_TYPE:
        return FLAT_DHCP if ours == VLAN else ours
    raise InvalidInput(f"{TYPE} must be {views.FLAT_TYPE} or {views.VLAN_TYPE}, not {str(kind)[:40]!r}")
