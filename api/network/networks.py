"""Networks of servers, and external networks, which are pools of floating IPs."""

from collections.abc import Sequence

from flask import Blueprint

from api.body import read_object
from api.compute import validation
from api.network import bodies, views
from api.network.bulk import entries
from api.network.filters import fitting, one, selected_fields
from api.request_context import caller, compute
from api.schema.body import Values
from climate.compute.errors import Forbidden
from climate.compute.network.models import FLAT_DHCP, VLAN
from climate.compute.network.networks_without_subnet import NetworkFields
from climate.compute.network.operations import networks
from climate.compute.store.networks.networks_without_subnet import Outline
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
    return {"network": selected_fields(one(_all(), network_id, "Network"))}


@blueprint.post("/networks")
def create() -> tuple[Body, int]:
    """Create a network or a pool of floating IPs without addresses; servers can use it after it has a subnet.

    Several below `networks` are created all or none. Members create networks if there are VLANs for them.
    """
    if compute().network.project_vlans:
        validation.may_write()
    else:
        validation.may_administer()
    given, many = entries(read_object(), "network", bodies.NETWORK)
    made = [views.outline(row) for row in _created(given)]
    return ({"networks": made} if many else {"network": made[0]}), 201


def _created(values: Sequence[Values]) -> list[Outline]:
    if caller().is_admin:
        return networks.create_outlines(compute(), [_drawn(value) for value in values])
    for wanted in values:
        _check_of_member(wanted)
    return networks.create_for_project(compute(), [value["name"] for value in values], caller().project_id)


def _check_of_member(values: Values) -> None:
    bodies.project(values)
    named = {
        bodies.TYPE: values["type"],
        bodies.SEGMENT: values["segment"],
        bodies.PHYSICAL: values["physical"],
        bodies.OUTSIDE: values["is_external"] or None,
        "shared": values["shared"] or None,
    }
    refused = next((key for key, value in named.items() if value is not None), None)
    if refused is not None:
        raise Forbidden(f"Only administrators set {refused} of a network.")


@blueprint.put("/networks/<network_id>")
def change(network_id: str) -> Body:
    """Update the name of a network that a project created; administrators make one without a subnet external."""
    before = one(_all(), network_id, "Network")
    validation.may_write()
    given = bodies.CHANGED_NETWORK.read(read_object())
    if given.get("is_external") and not before["router:external"]:
        validation.may_administer()
        networks.set_external(compute(), network_id)
    else:
        networks.rename(compute(), network_id, validation.own_project(), given.get("name", str(before["name"])))
    return {"network": one(_all(), network_id, "Network")}


@blueprint.delete("/networks/<network_id>")
def delete(network_id: str) -> tuple[str, int]:
    """Delete an unused network with its subnet."""
    one(_all(), network_id, "Network")
    validation.may_write()
    if caller().is_admin:
        networks.delete_any(compute(), validation.path_id(network_id, "Network"))
    else:
        networks.delete_of_project(compute(), network_id, caller().project_id)
    return "", 204


def _all() -> list[Body]:
    """Return all networks that the caller may see; networks without a subnet only for administrators."""
    validation.may_read()
    listed = networks.listed(compute(), validation.own_project())
    outside = [*map(views.pool, listed.pools), *map(views.outline, listed.outlines)]
    return [*map(views.network, listed.inside), *outside]


def _drawn(values: Values) -> NetworkFields:
    manager = None if values["is_external"] else _manager(values["type"])
    if manager is None and values["type"] not in (None, views.FLAT_TYPE):
        raise InvalidInput(f"{bodies.TYPE} of an external network must be {views.FLAT_TYPE}")
    if values["shared"] is not None and values["shared"] != _shared(manager):
        right = "everybody's" if _shared(manager) else "one project's" if manager == VLAN else "nobody's to boot in"
        raise InvalidInput(f"shared: a network of this type must be {right}")
    return NetworkFields(values["name"], manager, values["physical"], values["segment"], bodies.project(values))


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
