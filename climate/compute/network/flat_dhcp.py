"""The flat manager with DHCP: one bridge for all projects; its host hands addresses out and routes (cloud.md D.7)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from sqlalchemy import Connection

from climate.compute.errors import BadRequest
from climate.compute.network.driver import Entry, Link, Nat, Served
from climate.compute.network.models import FLAT_DHCP, Draft, Network
from climate.compute.network.network_options import NetworkOptions
from climate.compute.network.network_request import Wanted
from climate.compute.network.service import dhcp_link
from climate.compute.store.networks import networks as rows

NAME = FLAT_DHCP
FLOATING = True
DHCP = True


def drafts(wanted: Wanted, options: NetworkOptions, cut: Sequence[IPv4Network]) -> list[Draft]:
    """The network to be made of this subnet: each has a bridge and a DHCP server of its own, so it is one at a time."""
    bridge = wanted.bridge or options.flat_bridge
    interface = wanted.bridge_interface or options.flat_interface
    if len(cut) > 1:
        raise BadRequest(
            f"{len(cut)} networks would share bridge {bridge}: create each by itself, with a bridge of its own"
        )
    made = wanted.draft(options, NAME, 0, cut[0])
    return [replace(made, bridge=bridge, bridge_interface=interface)]


def attached(conn: Connection, project_id: str) -> list[Network]:
    """The networks that a new server of a project gets an interface in, when it asks for none: all shared ones."""
    return rows.shared(conn)


def claimed(network: Network, options: NetworkOptions) -> Mapping[str, Any]:
    """What changes of a network when a host begins to serve it: its guests are never injected anything."""
    return {"injected": False}


def address(network: Network, vpn: bool) -> IPv4Address | None:
    """The very address that a server gets; None: any one of the pool."""
    return None


def link(network: Network, options: NetworkOptions, *, own: bool) -> Link:
    """What a host needs of it; `own`: the one that serves it."""
    bridge = network.bridge or options.flat_bridge
    made = Link(network.id, bridge, network.bridge_interface or options.flat_interface, mtu=options.mtu)
    return dhcp_link.with_gateway(made, network) if own else made


def served(network: Network, options: NetworkOptions, entries: Sequence[Entry]) -> Served | None:
    """What the host that it belongs to does for it: DHCP, DNS, and router advertisements with IPv6."""
    return dhcp_link.served(link(network, options, own=True), network, options, entries)


def translated(network: Network, options: NetworkOptions, nat: Nat) -> Nat:
    """A host's translation, with what this network needs of it."""
    return replace(nat, bridges=(*nat.bridges, network.bridge or options.flat_bridge))
