"""Addresses of a server: list, attach and detach fixed and floating IPs."""

from collections.abc import Sequence

from flask import Response

from api.body import read_object
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.servers import view
from api.compute.servers.actions import action_bodies
from api.compute.servers.attachment_bodies import INTERFACE
from api.compute.servers.servers import find, who
from api.request_context import compute
from api.schema.body import Values
from climate.compute import server_operations
from climate.compute.errors import Conflict, NoMoreAddresses, NotFound
from climate.compute.servers.interfaces.interfaces import Port
from climate.domain.errors import InvalidInput

Body = dict[str, object]

blueprint = compute_blueprint("server-addresses")

ATTACHMENT = "interfaceAttachment"


@blueprint.get("/servers/<server_id>/ips")
def addresses(server_id: str) -> Body:
    """List the addresses of a server by network."""
    return {"addresses": _addresses(server_id)}


@blueprint.get("/servers/<server_id>/ips/<label>")
def of_network(server_id: str, label: str) -> Body:
    """List the addresses of a server in the network of this name."""
    addresses = _addresses(server_id)
    if label not in addresses:
        raise NotFound(f"Instance {server_id} has no network {label[:80]}.")
    return {label: addresses[label]}


@blueprint.get("/servers/<server_id>/os-interface")
def interfaces(server_id: str) -> Body:
    """List the interfaces of a server."""
    return {"interfaceAttachments": [_view(port) for port in _ports(server_id)]}


@blueprint.get("/servers/<server_id>/os-interface/<port_id>")
def interface(server_id: str, port_id: str) -> Body:
    """Show an interface of a server."""
    for port in _ports(server_id):
        if port.id == port_id:
            return {ATTACHMENT: _view(port)}
    raise NotFound(f"Instance {server_id} has no interface {port_id[:80]}")


@blueprint.post("/servers/<server_id>/os-interface")
def attach(server_id: str) -> Body:
    """Attach a port to a server, or an address of a network: with an interface if it has none in that network."""
    validation.may_write()
    given = INTERFACE.read(read_object())
    return {ATTACHMENT: _view(_attached(server_id, given))}


def _attached(server_id: str, values: Values) -> Port:
    network_id, port_id = values["network_id"], values["port_id"]
    if port_id is None and network_id is None:
        raise InvalidInput("interfaceAttachment: give net_id or port_id")
    if port_id is None:
        return server_operations.attach(compute(), who(server_id), network_id, values["fixed_ips"])
    if network_id is not None or values["fixed_ips"] is not None:
        raise InvalidInput("interfaceAttachment: a port has its network and addresses; give port_id alone")
    return server_operations.attach_port(compute(), who(server_id), port_id)


@blueprint.delete("/servers/<server_id>/os-interface/<port_id>")
def detach(server_id: str, port_id: str) -> tuple[str, int]:
    """Detach an interface and all of its addresses from a server."""
    validation.may_write()
    server_operations.detach(compute(), who(server_id), validation.path_id(port_id, "Port"))
    return "", 202


def add_fixed(server_id: str, details: object) -> Response:
    """Add one more fixed IP of a network to a server."""
    validation.may_write()
    given = action_bodies.ADD_FIXED.read_value(details, "addFixedIp")
    find(server_id)
    try:
        server_operations.attach(compute(), who(server_id), given["network_id"], None)
    except NoMoreAddresses as refusal:
        raise InvalidInput(str(refusal)) from None
    return Response(status=202)


def remove_fixed(server_id: str, details: object) -> Response:
    """Remove a fixed IP from a server."""
    validation.may_write()
    given = action_bodies.REMOVE_FIXED.read_value(details, "removeFixedIp")
    find(server_id)
    try:
        server_operations.remove_address(compute(), who(server_id), given["address"])
    except NotFound as refusal:
        raise InvalidInput(str(refusal)) from None
    return Response(status=202)


def add_floating(server_id: str, details: object) -> Response:
    """Associate a floating IP of the project with a server's address; the default is its first."""
    validation.may_write()
    given = action_bodies.ADD_FLOATING.read_value(details, "addFloatingIp")
    fixed_address = None if given["fixed_address"] is None else str(given["fixed_address"])
    try:
        server_operations.associate(compute(), who(server_id), str(given["address"]), fixed_address)
    except Conflict as refusal:
        raise InvalidInput(str(refusal)) from None
    return Response(status=202)


def remove_floating(server_id: str, details: object) -> Response:
    """Disassociate a floating IP from a server."""
    validation.may_write()
    given = action_bodies.REMOVE_FLOATING.read_value(details, "removeFloatingIp")
    server_operations.disassociate(compute(), who(server_id), str(given["address"]))
    return Response(status=202)


ACTIONS = {
    "addFixedIp": add_fixed,
    "removeFixedIp": remove_fixed,
    "addFloatingIp": add_floating,
    "removeFloatingIp": remove_floating,
}
"""Actions that are served at every microversion."""


def _ports(server_id: str) -> Sequence[Port]:
    validation.may_read()
    return server_operations.interfaces(compute(), who(server_id))


def _addresses(server_id: str) -> Body:
    return {
        label: [{"version": address["version"], "addr": address["addr"]} for address in addresses]
        for label, addresses in view.addresses(find(server_id)).items()
    }


def _view(port: Port) -> Body:
    return {
        "port_id": port.id,
        "port_state": "ACTIVE",
        "net_id": port.network_id,
        "mac_addr": port.mac,
        "fixed_ips": [{"subnet_id": port.subnet_id, "ip_address": address} for address in port.addresses],
    }
