"""Flat manager with DHCP: one bridge for all projects; its host runs DHCP and routes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

from sqlalchemy import Connection

from climate.compute.errors import BadRequest
from climate.compute.network.creation_request import CreationRequest
from climate.compute.network.driver import Entry, Link, Nat, NetworkServices
from climate.compute.network.managers import dhcp_common
from climate.compute.network.models import FLAT_DHCP, Draft, Network
from climate.compute.network.network_options import NetworkOptions
from climate.compute.store.networks import networks as rows

NAME = FLAT_DHCP
FLOATING = True
DHCP = True


def drafts(request: CreationRequest, options: NetworkOptions, cut: Sequence[IPv4Network]) -> list[Draft]:
    """Return the network to create for this subnet; one at a time, because each needs its own bridge
    and DHCP server.
    """
    bridge = request.bridge or options.flat_bridge
    interface = request.bridge_interface or options.flat_interface
    if len(cut) > 1:
        raise BadRequest(
            f"{len(cut)} networks would share bridge {bridge}: create them one at a time, each with its own bridge"
        )
    made = request.draft(options, NAME, 0, cut[0])
    return [replace(made, bridge=bridge, bridge_interface=interface)]


def attached(conn: Connection, project_id: str) -> list[Network]:
    """Return the default networks of a project's new server: all shared ones."""
    return rows.shared(conn)


def claimed(network: Network, options: NetworkOptions) -> Mapping[str, object]:
    """Return the columns to change when a host claims a network: addresses are not injected."""
    return {"injected": False}


def address(network: Network, vpn: bool) -> IPv4Address | None:
    """Return the fixed address of a server; None: any address of the pool."""
    return None


def link(network: Network, options: NetworkOptions, *, own: bool) -> Link:
    """Return the link of a network on a host; `own`: this host serves it."""
    bridge = network.bridge or options.flat_bridge
    made = Link(network.id, bridge, network.bridge_interface or options.flat_interface, mtu=options.mtu)
    return dhcp_common.with_gateway(made, network) if own else made


def served(network: Network, options: NetworkOptions, entries: Sequence[Entry]) -> NetworkServices | None:
    """Return the services of the network on its host: DHCP, DNS, and router advertisements with IPv6."""
    return dhcp_common.served(link(network, options, own=True), network, options, entries)


def translated(network: Network, options: NetworkOptions, nat: Nat) -> Nat:
    """Return the host's translation with the rules of this network."""
    return replace(nat, bridges=(*nat.bridges, network.bridge or options.flat_bridge))
