"""Networks of servers, and external networks, which are pools of floating IPs."""

from flask import Blueprint

from api.body import read_object
from api.compute import validation as asked
from api.network import bodies, views
from api.network.filters import fitting, one, shown
from api.request_context import compute
from api.schema.body import Values
from climate.compute.errors import Conflict
from climate.compute.network.models import FLAT_DHCP, VLAN
from climate.compute.network.operations import networks
from climate.compute.network.pending_networks import Drawn
from climate.domain.errors import InvalidInput

Body = dict[str, object]

blueprint = Blueprint("network-networks", __name__, url_prefix="/network/v2.0")


@blueprint.get("/networks")
def listing() -> Body:
    """List the networks that match the query."""
    return {"networks": fitting(_all())}


@blueprint.get("/networks/<network_id>")
def show(network_id: str) -> Body:
    """Show one network by its id; names are not accepted."""
    return {"network": shown(one(_all(), network_id, "Network"))}


@blueprint.post("/networks")
def create() -> tuple[Body, int]:
    """Create a network or a pool of floating IPs without addresses; servers can use it after it has a subnet."""
    asked.may_administer()
    drawn = _drawn(bodies.NETWORK.read(read_object()))
    return {"network": views.outline(networks.create_outline(compute(), drawn))}, 201


@blueprint.put("/networks/<network_id>")
def change(network_id: str) -> Body:
    """Refuse to change a network, whose properties are fixed when it is created."""
    one(_all(), network_id, "Network")
    asked.may_administer()
    raise Conflict(f"Network {network_id} cannot be changed: delete it, and create another")


@blueprint.delete("/networks/<network_id>")
def delete(network_id: str) -> tuple[str, int]:
    """Delete an unused network with its subnet."""
    one(_all(), network_id, "Network")
    asked.may_administer()
    networks.delete_any(compute(), asked.path_id(network_id, "Network"))
    return "", 204


def _all() -> list[Body]:
    """Return all networks that the caller may see; networks without a subnet only for administrators."""
    asked.may_read()
    listed = networks.listed(compute(), asked.own_project())
    outside = [*map(views.pool, listed.pools), *map(views.outline, listed.outlines)]
    return [*map(views.network, listed.inside), *outside]


def _drawn(given: Values) -> Drawn:
    manager = None if given["is_external"] else _manager(given["type"])
    if manager is None and given["type"] not in (None, views.FLAT_TYPE):
        raise InvalidInput(f"{bodies.TYPE} of an external network must be {views.FLAT_TYPE}")
    if given["shared"] is not None and given["shared"] != _shared(manager):
        right = "everybody's" if _shared(manager) else "one project's" if manager == VLAN else "nobody's to boot in"
        raise InvalidInput(f"shared: a network of this type must be {right}")
    return Drawn(given["name"], manager, given["physical"], given["segment"], bodies.project(given))


def _shared(manager: str | None) -> bool:
    return manager is not None and manager != VLAN


def _manager(kind: str | None) -> str:
    """Return the manager of a network type; for flat networks the deployment's manager, if it is a flat one."""
    ours = compute().network.manager
    if kind is None:
        return ours
    if kind == views.VLAN_TYPE:
        return VLAN
    return FLAT_DHCP if ours == VLAN else ours
