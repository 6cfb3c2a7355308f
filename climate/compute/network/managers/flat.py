"""Flat manager: the operator provides bridge, routing, DHCP and DNS; climate only allocates addresses.

A guest's address is injected, fetched by an agent, or not configured at all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

from sqlalchemy import Connection

from climate.compute.network.creation_request import CreationRequest
from climate.compute.network.driver import Entry, Link, Nat, NetworkServices
from climate.compute.network.models import FLAT, Draft, Network
from climate.compute.network.network_options import NetworkOptions
from climate.compute.store.networks import networks as rows

NAME = FLAT

FLOATING = False
"""True if fixed addresses can have floating ones."""

DHCP = False
"""True if addresses are leased by DHCP, and become free only when their lease ends."""


def drafts(request: CreationRequest, options: NetworkOptions, cut: Sequence[IPv4Network]) -> list[Draft]:
    """Return the networks to create for these subnets."""
    bridge = request.bridge or options.flat_bridge
    interface = request.bridge_interface or options.flat_interface
    made = [request.draft(options, NAME, index, subnet) for index, subnet in enumerate(cut)]
    return [replace(draft, bridge=bridge, bridge_interface=interface) for draft in made]


def attached(conn: Connection, project_id: str) -> list[Network]:
    """Return the default networks of a project's new server: all shared ones."""
    return rows.shared(conn)


def claimed(network: Network, options: NetworkOptions) -> Mapping[str, object]:
    """Return the columns to change when a host claims a network."""
    return {"injected": options.flat_injected}


def address(network: Network, vpn: bool) -> IPv4Address | None:
    """Return the fixed address of a server; None: any address of the pool."""
    return None


def link(network: Network, options: NetworkOptions, *, own: bool) -> Link:
    """Return the link of a network on a host; `own`: this host serves it. The operator created the bridge."""
    return Link(network.id, network.bridge or options.flat_bridge, mtu=options.mtu, ours=False)


def served(network: Network, options: NetworkOptions, entries: Sequence[Entry]) -> NetworkServices | None:
    """Return the services of the network on its host: none."""
    return None


def translated(network: Network, options: NetworkOptions, nat: Nat) -> Nat:
    """Return the host's translation with the rules of this network: none."""
    return nat
