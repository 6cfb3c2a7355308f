"""Networks that get a name first and their range later, as clients of OpenStack's Network API make them.

Nothing but the outline is there before the range is: no half-made network is in the way of the engine.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from ipaddress import IPv4Address, IPv4Network

from sqlalchemy import Connection

from climate.compute.errors import BadRequest, Conflict
from climate.compute.network import floating_ips, networks
from climate.compute.network.managers import MANAGERS
from climate.compute.network.models import FLAT_DHCP, VLAN, Network
from climate.compute.network.network_options import NetworkOptions
from climate.compute.network.network_request import Wanted
from climate.compute.store.networks import floating_pools
from climate.compute.store.networks import networks as network_rows
from climate.compute.store.networks import pending_networks as rows
from climate.compute.store.networks.pending_networks import Outline

Stretch = tuple[IPv4Address, IPv4Address]
"""First and last of addresses that stand in a row."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """What is said of a network before its range is."""

    label: str
    manager: str | None
    """None: it is outside, and becomes a pool of floating addresses."""
    interface: str | None = None
    vlan: int | None = None
    project_id: str | None = None


@dataclass(frozen=True, slots=True)
class Range:
    """What makes a network of an outline."""

    cidr: IPv4Network
    gateway: IPv4Address | None = None
    """Outside: where the pool's own network leads; None: nowhere that is known."""
    dns: tuple[IPv4Address, ...] | None = None
    stretches: Sequence[Stretch] = ()
    """Outside: what the pool hands out; none: all of the range."""


def draw(conn: Connection, drawn: Drawn) -> Outline:
    """Write down a network that has no range yet.

    Raises BadRequest for what its manager does not have, Conflict for a name or VLAN in use.
    """
    if drawn.manager != VLAN and drawn.vlan is not None:
        raise BadRequest(f"Only networks of the manager {VLAN} have a VLAN")
    if drawn.manager != VLAN and drawn.project_id is not None:
        raise BadRequest(f"Only networks of the manager {VLAN} have a project: all others are everybody's")
    if drawn.manager is not None and drawn.manager not in MANAGERS:
        raise BadRequest(f"There is no network manager {drawn.manager!r}, only {', '.join(MANAGERS)}")
    network_rows.taken(conn)
    _check(conn, drawn)
    return rows.make(conn, asdict(drawn))


def _check(conn: Connection, drawn: Drawn) -> None:
    there, outlined = network_rows.listed(conn), rows.listed(conn)
    labels = {one.label for one in there} | {one.label for one in outlined}
    labels |= {str(pool["name"]) for pool in floating_pools.pools(conn)}
    vlans = {one.vlan for one in there} | {one.vlan for one in outlined}
    if drawn.label in labels:
        raise Conflict(f"There is a network {drawn.label} already")
    if drawn.vlan is not None and drawn.vlan in vlans:
        raise Conflict(f"VLAN {drawn.vlan} is another network's")


def complete(conn: Connection, options: NetworkOptions, outline: Outline, given: Range) -> None:
    """Make the network, or the pool, that an outline is of; it keeps its id.  Raises BadRequest, Conflict."""
    rows.drop(conn, outline.id)
    if outline.manager is None:
        _complete_pool(conn, options, outline, given)
        return
    there = network_rows.listed(conn)
    wanted = Wanted(
        outline.label,
        given.cidr,
        network_id=outline.id,
        bridge=_free_bridge(options.flat_bridge, there) if outline.manager == FLAT_DHCP else None,
        bridge_interface=outline.interface,
        dns=given.dns,
        vlan_start=outline.vlan,
        project_id=outline.project_id,
    )
    networks.create(conn, options, wanted, outline.manager)


def _complete_pool(conn: Connection, options: NetworkOptions, outline: Outline, given: Range) -> None:
    floating_ips.make_pool(
        conn, outline.label, given.cidr, gateway=given.gateway, interface=outline.interface, pool_id=outline.id
    )
    for first, last in given.stretches or [(given.cidr[0], given.cidr[-1])]:
        floating_ips.add(conn, outline.id, first, last, options.own)


def _free_bridge(name: str, there: Sequence[Network]) -> str:
    """The name, or that of the first bridge counted on from it that no network has."""
    taken = {network.bridge for network in there}
    stem = name.rstrip("0123456789")
    first = int(name.removeprefix(stem) or 0)
    names = (name if place == 0 else f"{stem}{first + place}" for place in range(len(taken) + 1))
    return next(one for one in names if one not in taken)
