"""Networks of Compute, below microversion 2.36."""

from flask import Response

from api.body import read_object
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import proxied
from api.compute.networks import network_bodies
from api.request_context import caller, compute
from climate.compute.network import managers
from climate.compute.network.models import Network
from climate.compute.network.operations import networks
from climate.domain.errors import NotFound

Body = dict[str, object]

blueprint = compute_blueprint("networks")
blueprint.before_request(proxied)


@blueprint.get("/os-networks")
def listing() -> Body:
    """List the networks that the caller may use; administrators see all."""
    return {"networks": [_view(row) for row in _rows()]}


@blueprint.get("/os-networks/<network_id>")
def show(network_id: str) -> Body:
    """Show one network by its id; names are not accepted."""
    for row in _rows():
        if row.id == network_id:
            return {"network": _view(row)}
    raise NotFound(f"Network {network_id[:80]} could not be found.")


@blueprint.get("/os-tenant-networks")
def of_project() -> Body:
    """List the networks that the caller may use, by name and range only."""
    return {"networks": [_short(row) for row in _rows()]}


@blueprint.get("/os-tenant-networks/<network_id>")
def one_of_project(network_id: str) -> Body:
    """Show the name and the range of one network."""
    for row in _rows():
        if row.id == network_id:
            return {"network": _short(row)}
    raise NotFound(f"Network {network_id[:80]} could not be found.")


@blueprint.post("/os-networks")
def create() -> Body:
    """Create networks out of a range: `network` is the first of them, `networks` are all."""
    validation.may_administer()
    wanted, manager = network_bodies.networks(read_object())
    made = networks.create(compute(), wanted, manager)
    return {"network": _view(made[0]), "networks": [_view(row) for row in made]}


@blueprint.delete("/os-networks/<network_id>")
def delete(network_id: str) -> tuple[str, int]:
    """Delete a network that belongs to no project and that nobody uses."""
    validation.may_administer()
    networks.delete(compute(), validation.path_id(network_id, "Network"))
    return "", 202


@blueprint.post("/os-networks/<network_id>/action")
def act(network_id: str) -> Response:
    """Associate a network with a project, or disassociate it."""
    validation.may_administer()
    action, given = network_bodies.ACTIONS.read(read_object())
    own = validation.path_id(network_id, "Network")
    if action == "associate":
        networks.associate(compute(), own, given["project_id"])
    else:
        networks.disassociate(compute(), own)
    return Response(status=202)


@blueprint.post("/os-networks/add")
def add() -> Response:
    """Associate one more network with a project: this one, or with null the first free one."""
    validation.may_administer()
    given = network_bodies.ADDED.read(read_object())
    project_id = given["project_id"] or caller().project_id
    if given["id"] is None:
        networks.add_to_project(compute(), project_id)
    else:
        networks.associate(compute(), given["id"], project_id)
    return Response(status=202)


def _rows() -> list[Network]:
    validation.may_read()
    return networks.of_servers(compute(), validation.own_project())


def _view(row: Network) -> Body:
    seen: Body = {
        "id": row.id,
        "label": row.label,
        "cidr": str(row.cidr),
        "netmask": str(row.cidr.netmask),
        "broadcast": str(row.cidr.broadcast_address),
        "gateway": str(row.gateway),
        "cidr_v6": _text(row.cidr_v6),
        "netmask_v6": None if row.cidr_v6 is None else str(row.cidr_v6.prefixlen),
        "gateway_v6": _text(row.gateway_v6),
        "dns1": _text(row.dns[0] if row.dns else None),
        "dns2": _text(row.dns[1] if len(row.dns) > 1 else None),
    }
    return seen | (_admin_keys(row) if caller().is_admin else {})


def _admin_keys(row: Network) -> Body:
    """Return the keys that only administrators see."""
    return {
        "manager": row.manager,
        "project_id": row.project_id,
        "host": row.host,
        "bridge": row.bridge,
        "bridge_interface": row.bridge_interface,
        "vlan": row.vlan,
        "dhcp_start": str(row.dhcp_start),
        "enable_dhcp": managers.of(row).DHCP,
        "injected": row.injected,
        "multi_host": False,
        "mtu": compute().network.mtu,
        "vpn_private_address": _text(row.vpn_private_address),
        "vpn_public_address": _text(row.vpn_public_address),
        "vpn_public_port": row.vpn_public_port,
        "created_at": f"{row.created_at:%Y-%m-%dT%H:%M:%S.%f}",
    }


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _short(row: Network) -> Body:
    return {"id": row.id, "label": row.label, "cidr": str(row.cidr)}
