"""The flat manager: bridge, routing, DHCP and DNS are somebody else's; it keeps the books of addresses (cloud.md D.7).

A guest gets its address injected, asks an agent for it, or has an interface and no more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from sqlalchemy import Connection

from climate.compute.network.driver import Entry, Link, Nat, Served
from climate.compute.network.models import FLAT, Draft, Network
from climate.compute.network.network_options import NetworkOptions
from climate.compute.network.network_request import Wanted
from climate.compute.store.networks import networks as rows

NAME = FLAT

FLOATING = False
"""Whether its fixed addresses can have floating ones."""

DHCP = False
"""Whether addresses are leased, and wait for their leases' end when they are given up."""


def drafts(wanted: Wanted, options: NetworkOptions, cut: Sequence[IPv4Network]) -> list[Draft]:
    """The networks to be made of these subnets."""
    bridge = wanted.bridge or options.flat_bridge
    interface = wanted.bridge_interface or options.flat_interface
    made = [wanted.draft(options, NAME, place, subnet) for place, subnet in enumerate(cut)]
    return [replace(draft, bridge=bridge, bridge_interface=interface) for draft in made]


def attached(conn: Connection, project_id: str) -> list[Network]:
    """The networks that a new server of a project gets an interface in, when it asks for none: all shared ones."""
    return rows.shared(conn)


def claimed(network: Network, options: NetworkOptions) -> Mapping[str, Any]:
    """What changes of a network when a host begins to serve it."""
    return {"injected": options.flat_injected}


def address(network: Network, vpn: bool) -> IPv4Address | None:
    """The very address that a server gets; None: any one of the pool."""
    return None


def link(network: Network, options: NetworkOptions, *, own: bool) -> Link:
    """What a host needs of it; `own`: the one that serves it.  The operator has made the bridge."""
    return Link(network.id, network.bridge or options.flat_bridge, mtu=options.mtu, ours=False)


def served(network: Network, options: NetworkOptions, entries: Sequence[Entry]) -> Served | None:
    """What the host that it belongs to does for it: nothing."""
    return None


def translated(network: Network, options: NetworkOptions, nat: Nat) -> Nat:
    """A host's translation, with what this network needs of it: nothing."""
    return nat
