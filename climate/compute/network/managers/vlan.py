"""VLAN manager: a network with its own VLAN, bridge and DHCP server for each project."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

from sqlalchemy import Connection

from climate.compute.errors import BadRequest, NoMoreNetworks
from climate.compute.network import subnetting
from climate.compute.network.creation_request import CreationRequest
from climate.compute.network.driver import Entry, Link, Nat, NetworkServices, Vpn
from climate.compute.network.managers import dhcp_common
from climate.compute.network.models import VLAN, Draft, Network
from climate.compute.network.network_options import NetworkOptions
from climate.compute.store.networks import networks as rows

NAME = VLAN
FLOATING = True
DHCP = True

LAST_VLAN, LAST_PORT = 4094, 65535

BOTTOM = 3
"""Reserved addresses at the beginning of a network: network, gateway and cloudpipe."""


def reserved_count(options: NetworkOptions) -> int:
    """Return the number of addresses of a network that no pool assigns."""
    return BOTTOM + 1 + options.vpn_clients


def drafts(request: CreationRequest, options: NetworkOptions, cut: Sequence[IPv4Network]) -> list[Draft]:
    """Return the networks to create for these subnets; the address after the gateway's is the cloudpipe's."""
    vlan = options.vlan_start if request.vlan_start is None else request.vlan_start
    port = options.vpn_start if request.vpn_start is None else request.vpn_start
    if vlan < 1 or len(cut) + vlan - 1 > LAST_VLAN:
        raise BadRequest(f"{len(cut)} VLANs from {vlan} on are not all between 1 and {LAST_VLAN}")
    if port < 1 or len(cut) + port - 1 > LAST_PORT:
        raise BadRequest(f"{len(cut)} ports from {port} on are not all between 1 and {LAST_PORT}")
    if reserved_count(options) >= min(subnet.num_addresses for subnet in cut):
        raise BadRequest(
            f"{reserved_count(options)} addresses of each network are reserved, so none would be left for servers"
        )
    return [
        replace(
            request.draft(options, NAME, index, subnet),
            dns=request.dns or (),
            vlan=vlan + index,
            bridge=f"br{vlan + index}",
            bridge_interface=request.bridge_interface or options.vlan_interface,
            vpn_private_address=subnet[2],
            vpn_public_port=port + index,
            dhcp_start=subnet[3],
            reserved=subnetting.reserved(subnet, BOTTOM, 1 + options.vpn_clients),
        )
        for index, subnet in enumerate(cut)
    ]


def attached(conn: Connection, project_id: str) -> list[Network]:
    """Return the served networks of the project; one without any gets the lowest unowned network.

    Raise NoMoreNetworks, BadRequest while no network host serves any of its own.
    """
    own = rows.of_project(conn, project_id)
    if own:
        return own
    if rows.has_any(conn, project_id):
        raise BadRequest("The project's network is not served by any network host yet: try again soon.")
    result = rows.assign_vlan(conn, project_id)
    if result is None:
        raise NoMoreNetworks("No more networks: all belong to other projects, or no network host serves them yet.")
    return [result]


def claimed(network: Network, options: NetworkOptions) -> Mapping[str, object]:
    """Return the columns to change when a host claims a network: its cloudpipe's public address."""
    if network.vpn_public_address is not None or options.vpn_address is None:
        return {}
    return {"vpn_public_address": str(options.vpn_address)}


def address(network: Network, vpn: bool) -> IPv4Address | None:
    """Return the fixed address of a server: a cloudpipe has its own. None: any address of the pool."""
    return network.vpn_private_address if vpn else None


def link(network: Network, options: NetworkOptions, *, own: bool) -> Link:
    """Return the link of a network on a host; `own`: this host serves it."""
    interface = network.bridge_interface or options.vlan_interface
    made = Link(network.id, network.bridge or f"br{network.vlan}", interface, network.vlan, options.mtu)
    return dhcp_common.with_gateway(made, network) if own else made


def served(network: Network, options: NetworkOptions, entries: Sequence[Entry]) -> NetworkServices | None:
    """Return the services of the network on its host: DHCP, DNS, and router advertisements with IPv6."""
    return dhcp_common.served(link(network, options, own=True), network, options, entries)


def translated(network: Network, options: NetworkOptions, nat: Nat) -> Nat:
    """Return the host's translation with the rules of this network: the port of its cloudpipe, if it is public here."""
    made = replace(nat, bridges=(*nat.bridges, network.bridge or f"br{network.vlan}"))
    here = network.vpn_public_address is not None and network.vpn_public_address == options.vpn_address
    if not here or network.vpn_private_address is None or network.vpn_public_port is None:
        return made
    way = Vpn(network.vpn_private_address, options.vpn_address or network.gateway, network.vpn_public_port)
    return replace(made, vpns=(*made.vpns, way))
